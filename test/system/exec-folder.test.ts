/** Where commands and terminals inside a machine begin: in the image's working directory, and never outside the machine. */
import assert from "node:assert/strict";
import { spawnSync } from "node:child_process";
import { randomBytes } from "node:crypto";
import { cpSync, mkdirSync, mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { text } from "node:stream/consumers";
import { after, before, suite, test } from "node:test";
import { systemClock } from "#core/clock.ts";
import { silentLog } from "#core/log.ts";
import { takeDown } from "#drivers/runtime/runc/down.ts";
import { openRuncDriver } from "#drivers/runtime/runc/driver.ts";
import { nativeProgram } from "#drivers/runtime/runc/native-programs.ts";
import { aLaunchIn } from "#machines/fixtures.ts";
import type { Ref, RuntimeDriver } from "#machines/runtime/driver.ts";
import { busyboxLayer, fixtureImages, MEMORY_KEY, realMachinesMissing } from "../rootfs.ts";

const never = new AbortController().signal;

suite("working directory of commands in a machine", { skip: realMachinesMissing() }, () => {
  const dir = mkdtempSync(join(tmpdir(), "hangar-folder-"));
  const installation = { data_dir: join(dir, "data"), node_id: randomBytes(8).toString("hex") };
  const layer = join(dir, "busybox");
  let driver: RuntimeDriver;
  let ref: Ref;

  const run = async (...command: string[]) => await driver.exec(ref, { command, timeout_ms: 20_000 }, never);
  const inTerminal = async (...command: string[]): Promise<string> => {
    const terminal = await driver.terminal(ref, { command, rows: 24, cols: 80, term: "xterm" }, never);
    return await text(terminal.stream);
  };

  before(async () => {
    mkdirSync(installation.data_dir);
    busyboxLayer(layer);
    const images = fixtureImages({ busybox: { layers: [layer], config: { working_dir: "/home/app" } } });
    driver = await openRuncDriver({
      ...installation,
      memory_key: MEMORY_KEY,
      clock: systemClock,
      log: silentLog,
      images,
    });
    const wanted = aLaunchIn(installation.node_id, { image: "busybox", init: { cmd: ["sleep", "3600"] } });
    ref = { id: wanted.id, boot: wanted.boot, handle: (await driver.start(wanted, never)).handle };
  });

  after(async () => {
    await driver.close();
    await takeDown({ ...installation, clock: systemClock, log: silentLog });
    rmSync(dir, { recursive: true, force: true });
  });

  test("exec and terminals begin in the image's working directory, and keep exit codes", async () => {
    const { exit_code, stdout } = await run("sh", "-c", "pwd; exit 7");
    assert.deepEqual([exit_code, stdout], [7, "/home/app\n"]);
    assert.equal(await inTerminal("pwd"), "/home/app\r\n");
    const none = await run("nosuch");
    assert.deepEqual(
      [none.exit_code, none.stderr],
      [127, "hangar: cannot run nosuch: there is no such program in the image\n"],
    );
  });

  test("a folder that is gone is said, and the root takes its place", async () => {
    await run("rmdir", "/home/app");
    const { exit_code, stdout, stderr } = await run("pwd");
    assert.deepEqual([exit_code, stdout, stderr], [0, "/\n", "hangar: no folder /home/app, this starts in /\n"]);
  });

  test("a folder that became a link to descriptors does not lead to the host (CVE-2024-21626)", async () => {
    for (const target of [...Array.from({ length: 12 }, (_, fd) => `/proc/self/fd/${fd + 3}`), "/proc/1/cwd", ".."]) {
      await run("sh", "-c", `rm -rf /home/app; ln -s ${target} /home/app`);
      const { stdout } = await run("sh", "-c", "pwd -P; cd ../../../../../..; ls -d bin/busybox .svc/init");
      assert.match(stdout, /^\/(home)?\n\.svc\/init\nbin\/busybox\n$/, target);
    }
  });

  test("the helper refuses a folder that is not below its root", () => {
    const root = join(dir, "root");
    cpSync(layer, root, { recursive: true, verbatimSymlinks: true });
    for (const folder of ["proc", "inside"]) mkdirSync(join(root, folder));
    cpSync(nativeProgram("terminal"), join(root, "helper"));
    const helper = (folder: string) => {
      const script = `mount --rbind /proc "$1/proc"; exec 7<"$2"; exec chroot "$1" /helper exec "$3" /bin/pwd`;
      const args = ["--mount", "sh", "-c", script, "sh", root, dir, folder];
      const { status, stdout, stderr } = spawnSync("unshare", args, { encoding: "utf8" });
      return [status, stdout, stderr];
    };
    assert.deepEqual(helper("/inside"), [0, "/inside\n", ""]);
    assert.deepEqual(helper("/proc/self/fd/7"), [126, "", "hangar: the working directory is not in the machine\n"]);
  });
});
