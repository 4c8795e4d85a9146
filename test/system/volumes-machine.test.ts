/** A real machine with a real volume: what it writes is there after a stop, a suspend, and another machine's life. */
import assert from "node:assert/strict";
import { randomBytes } from "node:crypto";
import { mkdirSync } from "node:fs";
import { join } from "node:path";
import { suite, test } from "node:test";
import { systemClock } from "#core/clock.ts";
import { silentLog } from "#core/log.ts";
import { takeDown } from "#drivers/runtime/runc/down.ts";
import { openRuncDriver } from "#drivers/runtime/runc/driver.ts";
import { aLaunch, resumedOf } from "#machines/fixtures.ts";
import type { Launch, RuntimeDriver } from "#machines/runtime/driver.ts";
import { busyboxLayer, fixtureImages, MEMORY_KEY, realMachinesMissing } from "../rootfs.ts";
import { until } from "../support.ts";
import { openVolumeHarness, traces, type VolumeHarness, volumesMissing } from "../volumes.ts";

const never = new AbortController().signal;
const HOW = { signal: "SIGTERM", timeout_ms: 5000 };
const WAIT = ["sh", "-c", "trap 'exit 0' TERM; while :; do sleep 1 & wait; done"];

async function openDriver(ends: AsyncDisposableStack, { module, dir }: VolumeHarness): Promise<RuntimeDriver> {
  const images = fixtureImages({ web: { layers: [busyboxLayer(join(dir, "busybox"))] } });
  const data_dir = join(dir, "machines");
  mkdirSync(data_dir);
  const node_id = randomBytes(8).toString("hex");
  const options = {
    data_dir,
    node_id,
    memory_key: MEMORY_KEY,
    clock: systemClock,
    log: silentLog,
    images,
    volumes: module,
  };
  const driver = await openRuncDriver(options);
  ends.defer(async () => {
    await driver.close();
    await takeDown(options);
  });
  return driver;
}

function launch(id: string, boot: string, volume: string): Launch {
  const config = { image: "web", init: { exec: WAIT }, mounts: [{ volume, path: "/data" }] };
  return aLaunch({ id, boot, config });
}

suite("machine with a volume", { skip: volumesMissing() ?? realMachinesMissing() }, () => {
  for (const encrypted of [false, true]) {
    test(`a volume keeps its data through stop, start, suspend, destroy and re-create, encrypted: ${encrypted}`, async (t) => {
      // The last one begun is ended first; hooks of a test would run the other way, and take volumes from under machines.
      await using ends = new AsyncDisposableStack();
      const harness = await openVolumeHarness(
        { after: (end) => ends.defer(end as () => Promise<void>) },
        { pool: "plain" },
      );
      const able = await harness.module.parts.disk.capabilities();
      if (encrypted && able.encryption === undefined) return t.skip(able.encryption_reason);
      const driver = await openDriver(ends, harness);
      const { id: volume, encryption } = await harness.create({ name: "data", size_gb: 1, encrypted });
      const [first, second] = [randomBytes(7).toString("hex"), randomBytes(7).toString("hex")];
      const handles = new Map<string, Awaited<ReturnType<RuntimeDriver["start"]>>["handle"]>();
      const sh = async (id: string, boot: string, script: string): Promise<string> => {
        const ref = { id, boot, handle: handles.get(boot) ?? null };
        const result = await driver.exec(ref, { command: ["sh", "-c", script], timeout_ms: 20_000 }, never);
        assert.equal(result.exit_code, 0, result.stderr);
        return result.stdout.trim();
      };
      ends.defer(async () => {
        for (const id of [first, second]) await driver.destroy(id, never);
      });
      const start = async (id: string, boot: string): Promise<void> => {
        handles.set(boot, (await driver.start(launch(id, boot, volume), never)).handle);
      };

      await start(first, "b1");
      await sh(first, "b1", "echo kept > /data/file && chown 1000:1000 /data/file && sync");
      await driver.stop({ id: first, boot: "b1", handle: handles.get("b1") ?? null }, HOW, never);
      await start(first, "b2");
      assert.equal(await sh(first, "b2", "cat /data/file; stat -c %u:%g /data/file"), "kept\n1000:1000");
      const ref = { id: first, boot: "b2", handle: handles.get("b2") ?? null };
      const { handle } = await driver.suspend(ref, never);
      const resumed = resumedOf(await driver.resume(launch(first, "b2", volume), handle, never));
      handles.set("b2", resumed.handle);
      assert.equal(await sh(first, "b2", "cat /data/file"), "kept");
      await driver.destroy(first, never);
      await start(second, "b3");
      assert.equal(await sh(second, "b3", "cat /data/file"), "kept");
      await driver.destroy(second, never);
      await until("nothing is mounted any more", () => traces(join(harness.dir, "volumes")).loops.length === 0);
      t.diagnostic(`encryption ${encryption}, suspend ${driver.capabilities().suspend}`);
    });
  }
});
