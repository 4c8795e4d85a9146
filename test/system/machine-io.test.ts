/** How fast machines may read and write their disks: held to by the kernel, against the dd of this box. */
import assert from "node:assert/strict";
import { randomBytes } from "node:crypto";
import { mkdirSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { suite, type TestContext, test } from "node:test";
import { systemClock } from "#core/clock.ts";
import { silentLog } from "#core/log.ts";
import { type IoLimits, NO_IO_LIMITS } from "#core/machine-settings.ts";
import { cgroupDirs, isUnified } from "#drivers/runtime/runc/cgroup.ts";
import { ioProblem } from "#drivers/runtime/runc/cgroup-io.ts";
import { machinesCgroup } from "#drivers/runtime/runc/delegation.ts";
import { takeDown } from "#drivers/runtime/runc/down.ts";
import { openRuncDriver } from "#drivers/runtime/runc/driver.ts";
import { aLaunchIn, resumedOf } from "#machines/fixtures.ts";
import type { Launch, Ref, RuntimeDriver } from "#machines/runtime/driver.ts";
import { busyboxLayer, fixtureImages, MEMORY_KEY, programLayer, realMachinesMissing } from "../rootfs.ts";
import { until } from "../support.ts";

const never = new AbortController().signal;
const MIB = 1024 * 1024;
const SLOW: IoLimits = { ...NO_IO_LIMITS, read_bytes: 2 * MIB, write_bytes: 2 * MIB };
/** At 2 MiB a second. The kernel lets what one of its slices allows go at once, a tenth of a second of it. */
const [MIBS, AT_LEAST_MS] = [3, 1000];

interface Installation {
  dir: string;
  cgroup(id: string): string;
  open(io_limits: IoLimits): Promise<RuntimeDriver>;
}

function installation(t: TestContext): Installation {
  const dir = mkdtempSync(join(tmpdir(), "hangar-io-"));
  const [data_dir, node_id] = [join(dir, "data"), randomBytes(8).toString("hex")];
  const layer = programLayer(busyboxLayer(join(dir, "layer")), "/usr/bin/dd", "dd");
  writeFileSync(join(layer, "image-file"), randomBytes(MIBS * MIB));
  const options = {
    data_dir,
    node_id,
    memory_key: MEMORY_KEY,
    suspend: "freeze",
    clock: systemClock,
    log: silentLog,
    images: fixtureImages({ web: { layers: [layer] } }),
  } as const;
  mkdirSync(data_dir);
  let driver: RuntimeDriver | undefined;
  t.after(async () => {
    await driver?.close();
    await takeDown(options);
    rmSync(dir, { recursive: true, force: true });
  });
  return {
    dir,
    cgroup: (id) => `${machinesCgroup(node_id)}/${id}`,
    async open(io_limits) {
      await driver?.close();
      driver = await openRuncDriver({ ...options, io_limits });
      return driver;
    },
  };
}

const CONFIG: Launch["config"] = { image: "web", init: { exec: ["sleep", "100000"] } };
const WRITE = `dd if=/dev/zero of=/root/file bs=256k count=${MIBS * 4} oflag=direct`;
const READ = `dd if=/root/file of=/dev/null bs=256k iflag=direct`;
const READ_IMAGE = `dd if=/image-file of=/dev/null bs=256k iflag=direct`;

async function start(driver: RuntimeDriver, launch: Launch): Promise<Ref> {
  const { handle } = await driver.start(launch, never);
  return { id: launch.id, boot: launch.boot, handle };
}

async function took(driver: RuntimeDriver, ref: Ref, script: string): Promise<number> {
  const began = performance.now();
  const command = { command: ["/bin/sh", "-c", script.replace(/^dd/, "/usr/bin/dd")], timeout_ms: 120_000 };
  const { exit_code, stderr } = await driver.exec(ref, command, never);
  assert.equal(exit_code, 0, `${script}: ${stderr}`);
  return performance.now() - began;
}

/** The limits that the kernel holds for a cgroup, in the words of this host's version. */
function inForce(cgroup: string): string[] {
  const { blkio = "", unified = "" } = cgroupDirs(cgroup);
  const files = isUnified()
    ? [join(unified, "io.max")]
    : ["read_bps", "write_bps", "read_iops", "write_iops"].map((name) => join(blkio, `blkio.throttle.${name}_device`));
  return files.flatMap((file) => readFileSync(file, "utf8").split("\n").filter(Boolean));
}

suite("disk I/O limits of machines", { skip: realMachinesMissing() ?? ioProblem(SLOW) ?? false }, () => {
  test("direct reads and writes stay within the configured rate, also after a suspend", async (t) => {
    const { open } = installation(t);
    const driver = await open(SLOW);
    const launch = aLaunchIn("io", CONFIG);
    const ref = await start(driver, launch);
    for (const script of [WRITE, READ, READ_IMAGE]) {
      const ms = await took(driver, ref, script);
      assert.ok(ms >= AT_LEAST_MS, `${script} took ${ms.toFixed(0)} ms`);
      t.diagnostic(`${script}: ${(MIBS / (ms / 1000)).toFixed(2)} MiB/s of 2`);
    }
    await driver.suspend(ref, never);
    const { handle } = resumedOf(await driver.resume(launch, ref.handle ?? {}, never));
    const ms = await took(driver, { ...ref, handle }, WRITE);
    assert.ok(ms >= AT_LEAST_MS, `after the suspend it took ${ms.toFixed(0)} ms`);
  });

  test("operations per second have a limit of their own", async (t) => {
    const driver = await installation(t).open({ ...NO_IO_LIMITS, write_operations: 20 });
    const ref = await start(driver, aLaunchIn("io", CONFIG));
    const ms = await took(driver, ref, "dd if=/dev/zero of=/root/file bs=4k count=30 oflag=direct");
    assert.ok(ms >= AT_LEAST_MS, `30 operations at 20 a second took ${ms.toFixed(0)} ms`);
  });

  test("a restart of the platform applies new limits to running machines and removes old ones", async (t) => {
    const { open, cgroup } = installation(t);
    const launch = aLaunchIn("io", CONFIG);
    await start(await open(NO_IO_LIMITS), launch);
    assert.deepEqual(inForce(cgroup(launch.id)), []);
    await open(SLOW);
    const limits = inForce(cgroup(launch.id));
    assert.ok(limits.length > 0 && limits.every((line) => line.includes(String(2 * MIB))), limits.join(", "));
    await open(NO_IO_LIMITS);
    assert.deepEqual(inForce(cgroup(launch.id)), []);
  });

  test("a machine with throttled I/O is frozen and stopped without waiting for it", async (t) => {
    const { open, cgroup } = installation(t);
    const driver = await open({ ...NO_IO_LIMITS, write_operations: 2 });
    const launch = aLaunchIn("io", CONFIG);
    const ref = await start(driver, launch);
    // Forty writers, each of which would have its turn once in twenty seconds.
    const writers = "for i in $(seq 40); do /usr/bin/dd if=/dev/zero of=/root/$i bs=4k count=50 oflag=direct & done";
    // A box that is emulated takes seconds to start each of them.
    const limit_ms = 15 * 60_000;
    const command = { command: ["/bin/sh", "-c", `(${writers}) > /dev/null 2>&1`], timeout_ms: limit_ms };
    await driver.exec(ref, command, never);
    const waiting = async (): Promise<number> => {
      const all = await driver.ps(ref);
      return all.filter(({ command: words }) => words.includes("oflag=direct")).length;
    };
    await until("forty writers wait", async () => (await waiting()) >= 40, { limit_ms });
    assert.equal((await driver.suspend(ref, never)).kind, "freeze");
    const { handle } = resumedOf(await driver.resume(launch, ref.handle ?? {}, never));
    assert.notDeepEqual(inForce(cgroup(launch.id)), []);
    await driver.stop({ ...ref, handle }, { signal: "SIGKILL", timeout_ms: 0 }, never);
    await driver.destroy(launch.id, never);
  });
});
