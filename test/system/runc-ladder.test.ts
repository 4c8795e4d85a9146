/** Hosts that lack something: what a machine gives up there is never what keeps it apart from others. */
import assert from "node:assert/strict";
import { spawnSync } from "node:child_process";
import { randomBytes } from "node:crypto";
import { existsSync, lstatSync, mkdirSync, mkdtempSync, readdirSync, readFileSync, rmSync, symlinkSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { after, before, suite, test } from "node:test";
import { systemClock } from "#core/clock.ts";
import { takeDown } from "#drivers/runtime/runc/down.ts";
import { openRuncDriver } from "#drivers/runtime/runc/driver.ts";
import { aLaunchIn } from "#machines/fixtures.ts";
import type { Launch, Ref, RuntimeDriver } from "#machines/runtime/driver.ts";
import { busyboxLayer, fixtureImages, MEMORY_KEY, realMachinesMissing } from "../rootfs.ts";
import { ROOT } from "./child.ts";
import { leftBehind } from "./leaks.ts";
import { Warnings } from "./warnings.ts";

const never = new AbortController().signal;

suite("hosts with missing features", { skip: realMachinesMissing() }, () => {
  const dir = mkdtempSync(join(tmpdir(), "hangar-ladder-"));
  const installation = { data_dir: join(dir, "data"), node_id: randomBytes(8).toString("hex") };
  const layers = join(dir, "layers");
  const warnings = new Warnings();
  let driver: RuntimeDriver;

  before(async () => {
    for (const folder of [installation.data_dir, layers]) mkdirSync(folder);
    // A file system on which the kernel cannot show other owners than those that are there.
    assert.equal(spawnSync("mount", ["-t", "ramfs", "ramfs", layers]).status, 0);
    const upper = join(layers, "upper");
    mkdirSync(join(upper, "etc"), { recursive: true });
    symlinkSync("/bin/busybox", join(upper, "etc/link"));
    const images = fixtureImages({ web: { layers: [busyboxLayer(join(layers, "busybox")), upper] } });
    driver = await openRuncDriver({
      ...installation,
      memory_key: MEMORY_KEY,
      clock: systemClock,
      log: warnings.log,
      images,
    });
  });

  after(async () => {
    try {
      await driver.close();
      await takeDown({ ...installation, clock: systemClock, log: warnings.log });
    } finally {
      spawnSync("umount", [layers]);
      rmSync(dir, { recursive: true, force: true });
    }
  });

  const config = { image: "web", init: { exec: ["sh", "-c", "trap 'exit 0' TERM; while :; do sleep 0.1; done"] } };
  const wanted = (boot: string, id: string): Launch => aLaunchIn(installation.node_id, config, { id, boot });
  const run = async (ref: Ref, ...command: string[]): Promise<string> =>
    (await driver.exec(ref, { command, timeout_ms: 30_000 }, never)).stdout.trim();

  test("layers that cannot be idmapped are copied, and the machine still has its own user ids", async () => {
    const id = randomBytes(7).toString("hex");
    const { handle } = await driver.start(wanted("b1", id), never);
    const ref = { id, boot: "b1", handle };
    assert.equal(await run(ref, "stat", "-c", "%u:%g", "/bin/busybox"), "0:0", "inside it is root's");
    assert.equal(await run(ref, "readlink", "/etc/link"), "/bin/busybox");
    const base = Number(
      readFileSync(`/proc/${Number(handle["pid"])}/uid_map`, "utf8")
        .trim()
        .split(/\s+/)[1],
    );
    assert.ok(base >= 65_536, "root inside is nobody outside");
    const copies = join(installation.data_dir, "machines", id, "layers");
    const names = readdirSync(copies).sort();
    assert.equal(names.length, 2, "one for each layer, and nothing unfinished");
    const owners = new Set(names.map((name) => lstatSync(join(copies, name)).uid));
    assert.deepEqual([...owners], [base]);
    const before = names.map((name) => lstatSync(join(copies, name)).ino);
    await driver.stop(ref, { signal: "SIGTERM", timeout_ms: 20_000 }, never);
    await driver.start(wanted("b2", id), never);
    assert.deepEqual(
      names.map((name) => lstatSync(join(copies, name)).ino),
      before,
      "copied once",
    );
    await driver.destroy(id, never);
    assert.equal(existsSync(copies), false);
  });

  test("a host without user namespaces runs no containers, and says why", () => {
    const script = [
      'import { chooseDriver } from "#drivers/choice.ts";',
      "let refused; try { chooseDriver('runc'); } catch (thrown) { refused = thrown.message; }",
      "console.log(JSON.stringify({ auto: chooseDriver('auto'), refused }));",
    ].join("\n");
    const inside = 'echo 0 > /proc/sys/user/max_user_namespaces && exec "$@"';
    const words = [
      "--user",
      "--map-root-user",
      "sh",
      "-c",
      inside,
      "sh",
      process.execPath,
      "--input-type=module",
      "-e",
    ];
    const { stdout, stderr } = spawnSync("unshare", [...words, script], { cwd: ROOT, encoding: "utf8" });
    const { auto, refused } = JSON.parse(stdout || `{"auto":{},"refused":${JSON.stringify(stderr)}}`) as {
      auto: { name: string; reason: string };
      refused: string;
    };
    assert.equal(auto.name, "sim");
    assert.match(auto.reason, /user namespaces cannot be made here \(.+\)/);
    assert.match(refused, /runc cannot be used here: user namespaces cannot be made/);
  });

  test("down removes orphaned bridges of this installation", async (t) => {
    const stray = `h${installation.node_id.slice(0, 5)}b0badcafe`;
    assert.equal(spawnSync("ip", ["link", "add", stray, "type", "bridge"]).status, 0);
    t.after(() => spawnSync("ip", ["link", "del", stray]));
    await driver.close();
    await takeDown({ ...installation, clock: systemClock, log: warnings.log });
    assert.equal(existsSync(`/sys/class/net/${stray}`), false);
    assert.deepEqual(await leftBehind(installation, "driver is closed"), {}, warnings.text());
  });
});
