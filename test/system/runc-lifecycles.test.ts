/** Two hundred lives of machines (a few at every push) leave no descriptor, no memory and nothing else behind. */
import assert from "node:assert/strict";
import { randomBytes } from "node:crypto";
import { mkdirSync, mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { test } from "node:test";
import { systemClock } from "#core/clock.ts";
import { silentLog } from "#core/log.ts";
import { takeDown } from "#drivers/runtime/runc/down.ts";
import { openRuncDriver } from "#drivers/runtime/runc/driver.ts";
import { RUNC_LIMITS } from "#drivers/runtime/runc/limits.ts";
import type { Timings } from "#drivers/runtime/runc/timings.ts";
import { aLaunchIn, resumedOf } from "#machines/fixtures.ts";
import { busyboxLayer, fixtureImages, MEMORY_KEY, realMachinesMissing } from "../rootfs.ts";
import { runs, until } from "../support.ts";
import { leftBehind, targetsOf, zombiesOf } from "./leaks.ts";

const LIVES = runs(8, 200, 2000);
const never = new AbortController().signal;
const skip = realMachinesMissing();

test("machine lifecycles leak nothing in the kernel or the process (O1)", { skip }, async (t) => {
  const dir = mkdtempSync(join(tmpdir(), "hangar-lives-"));
  const installation = { data_dir: join(dir, "data"), node_id: randomBytes(8).toString("hex") };
  mkdirSync(installation.data_dir);
  const timings: Timings[] = [];
  const driver = await openRuncDriver({
    ...installation,
    memory_key: MEMORY_KEY,
    clock: systemClock,
    log: silentLog,
    images: fixtureImages({ web: { layers: [busyboxLayer(join(dir, "busybox"))] } }),
    onTimings: (_, found) => timings.push(found),
  });
  t.after(async () => {
    await driver.close();
    await takeDown({ ...installation, clock: systemClock, log: silentLog });
    rmSync(dir, { recursive: true, force: true });
  });

  const live = async (life: number): Promise<void> => {
    const config = {
      image: "web",
      init: { exec: ["sh", "-c", "trap 'exit 0' TERM; echo up; while :; do sleep 0.1; done"] },
    };
    const launch = aLaunchIn(installation.node_id, config);
    const { id } = launch;
    let { handle } = await driver.start(launch, never);
    const ref = { id, boot: "b1", handle };
    assert.equal((await driver.exec(ref, { command: ["true"], timeout_ms: 20_000 }, never)).exit_code, 0);
    if (life % 4 === 0) {
      ({ handle } = await driver.suspend(ref, never));
      resumedOf(await driver.resume(launch, handle, never));
    }
    assert.equal((await driver.stop(ref, { signal: "SIGTERM", timeout_ms: 20_000 }, never))?.exit_code, 0);
    await driver.destroy(id, never);
  };

  // The first ones load what is loaded once.
  for (let life = 0; life < 4; life++) await live(life);
  globalThis.gc?.();
  await until("as many disks are ready as are kept", areDisksReady);
  const before = { open: targetsOf(process.pid), rss: process.memoryUsage().rss };
  for (let life = 0; life < LIVES; life++) await live(life);
  globalThis.gc?.();
  // What the last one had open is closed behind it, not in its sight.
  await until("as many disks are ready as are kept", areDisksReady);
  const isSettled = (): boolean => targetsOf(process.pid).length <= before.open.length;
  await until("open files are as many as before", isSettled).catch((thrown: unknown) => {
    t.diagnostic(`open before: ${before.open.join(" ")}`);
    t.diagnostic(`open now: ${targetsOf(process.pid).join(" ")}`);
    throw thrown;
  });
  const grown = (process.memoryUsage().rss - before.rss) / 1024 / 1024;
  // What a few lives warm up is more than what many leave.
  assert.ok(grown < 60, `memory grew by ${grown.toFixed(1)} MB`);
  assert.deepEqual(zombiesOf(process.pid), []);
  assert.deepEqual(await leftBehind(installation, "driver is open"), {});
  t.diagnostic(`${LIVES} lives, memory ${grown.toFixed(1)} MB more; a start, by the median: ${divided(timings)}`);
});

/** Each disk that is ready is a mount without a place, open as its root. Some time after a start there is one more. */
const areDisksReady = (): boolean =>
  targetsOf(process.pid).filter((target) => target === "/").length === RUNC_LIMITS.disks_ready;

/** Where the time of a start goes. */
function divided(timings: readonly Timings[]): string {
  const names = [...new Set(timings.flatMap((one) => Object.keys(one)))];
  const median = (name: string): number => {
    const values = timings.flatMap((one) => one[name] ?? []).sort((a, b) => a - b);
    return values[Math.floor(values.length / 2)] ?? 0;
  };
  return names.map((name) => `${name} ${median(name)} ms`).join(", ");
}
