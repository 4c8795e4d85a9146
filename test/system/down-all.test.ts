/**
 * `hangar down --all` and `hangar doctor` on a box where programs of others have copies of all mounts: what they hold is
 * named with their pid, and that nothing is left is only said when it is so.
 */
import assert from "node:assert/strict";
import { type ChildProcess, spawn, spawnSync } from "node:child_process";
import { once } from "node:events";
import { join } from "node:path";
import { suite, type TestContext, test } from "node:test";
import { mountAt, mounts } from "#drivers/disk/mountinfo.ts";
import { realMachinesMissing } from "../rootfs.ts";
import { until } from "../support.ts";
import { traces, volumesMissing } from "../volumes.ts";
import { install, left } from "./installed.ts";

/** A program of somebody else that has said that it is there. */
async function stranger(t: Pick<TestContext, "after">, command: string, args: string[]): Promise<ChildProcess> {
  const child = spawn(command, args, { stdio: ["pipe", "pipe", "inherit"] });
  t.after(() => child.kill("SIGKILL"));
  child.stdin?.write("in\n");
  await once(child.stdout ?? child, "data");
  return child;
}

const end = async (child: ChildProcess): Promise<void> => {
  const ended = once(child, "exit");
  child.kill("SIGKILL");
  await ended;
};

const UNSHARED = ["--mount", "--propagation", "private"];
/** Opens a file of the folder it is given, and waits to be ended. */
const OPENS = `import sys, os
files = [open(os.path.join(folder, ".held-by-stranger"), "w") for folder in sys.argv[1:]]
print("in", flush=True)
sys.stdin.read()
sys.stdin.read()`;
const python = spawnSync("sh", ["-c", "command -v /usr/bin/python3"], { encoding: "utf8" }).stdout.trim();
const missing = (): string | undefined =>
  realMachinesMissing() ?? volumesMissing() ?? (python ? undefined : "there is no Debian python3");

/** The folder in which the volume is seen in the clear on this host. */
async function clearFolder(data_dir: string, volume: string): Promise<string> {
  const point = join(data_dir, "volumes/mnt", volume);
  return (await mountAt(`${point}.clear`)) ? `${point}.clear` : join(point, "data");
}

suite("hangar down --all", { skip: missing() }, () => {
  test("down --all closes volumes and names a foreign process that keeps a file open", async (t) => {
    const { data_dir, volume, hangar } = await install(t);
    const folder = await clearFolder(data_dir, volume);
    const holder = await stranger(t, "unshare", [...UNSHARED, python, "-c", OPENS, folder]);
    const copies = await stranger(t, "unshare", [...UNSHARED, "cat"]);

    const seen = await hangar("doctor");
    for (const { pid } of [holder, copies])
      assert.match(seen.stdout, new RegExp(`! kernel objects pid ${pid} \\(.* holds .*${volume}\\.img`));

    const down = await hangar("down --all");
    assert.equal(down.status, 1, down.stdout + down.stderr);
    assert.doesNotMatch(down.stdout, /[Nn]othing of this installation is left/);
    assert.match(down.stdout, /Stopped 1 machine, closed 1 volume/);
    const object =
      down.stdout.split(/\n(?= {2}\w)/).find((one) => new RegExp(`loop device .*${volume}\\.img`).test(one)) ?? "";
    assert.match(object, new RegExp(`held by pid ${holder.pid} \\(.*python3 .*\\): it has a file open`), down.stdout);
    assert.doesNotMatch(object, new RegExp(`pid ${copies.pid} `), "removing the folder took its copy away");
    const points = (await mounts()).map(({ point }) => point).filter((point) => point.startsWith(data_dir));
    assert.deepEqual(
      points,
      points.filter((point) => point.endsWith("/pool")),
      "no volume is mounted here",
    );
    // Not of the machines: their disks are free although somebody has a copy of all mounts.
    assert.doesNotMatch(down.stdout, /root\.ext4/);

    const json = JSON.parse((await hangar("down --all --json")).stdout) as {
      objects: { held_by: { pid: number }[] }[];
    };
    assert.ok(
      json.objects.some(({ held_by }) => held_by.some(({ pid }) => pid === holder.pid)),
      JSON.stringify(json),
    );

    await end(holder);
    await until(
      "the kernel lets go of the volume",
      () => !traces(data_dir).loops.some((file) => file.includes(volume)),
    );
    // Other programs of this box may have copies of all mounts for a moment as well.
    let again = await hangar("down --all");
    await until("nobody holds anything", async () => {
      if (again.status !== 0) again = await hangar("down --all");
      return again.status === 0;
    });
    assert.match(again.stdout, /Nothing of this installation is left in the kernel \(checked: processes, mounts/);
    assert.deepEqual(left(data_dir), {}, "and that is so");
    await end(copies);
  });
});
