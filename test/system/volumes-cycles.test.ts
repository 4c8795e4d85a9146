/** Volumes come and go and leave nothing behind (V1); what is written while one grows is all there (V3). */
import assert from "node:assert/strict";
import { randomBytes } from "node:crypto";
import { readFile, writeFile } from "node:fs/promises";
import { join } from "node:path";
import { suite, test } from "node:test";
import { run } from "#drivers/disk/programs.ts";
import { runs, until } from "../support.ts";
import { openVolumeHarness, traces, type VolumeHarness, volumesMissing } from "../volumes.ts";
import { startProgram } from "./child.ts";
import { ownMounts } from "./own-mounts.ts";
import { checkRecords } from "./volume-writer.ts";

const CYCLES = runs(4, 50, 200);

/** Create, write, extend, snapshot, fork, restore, compare, delete all three. */
async function cycle({ module, create, settled, snapshot, ids }: VolumeHarness, encrypted: boolean): Promise<void> {
  const volume = await create({ name: "data", size_gb: 1, encrypted });
  assert.equal(volume.state, "created");
  const content = randomBytes(100_000);
  const read = async (id: string): Promise<Buffer> => await readFile(join((await module.mount(id)).dir, "file"));
  await writeFile(join((await module.mount(volume.id)).dir, "file"), content);
  const { needs_restart } = await module.volumes.extend(volume.id, 2, ids);
  const kept = await snapshot(volume.id);
  const fork = await create({ name: "fork", source_volume_id: volume.id });
  const restored = await create({ name: "copy", region: "local", snapshot_id: kept.id });
  assert.equal((await settled(restored.id)).state, "created");
  for (const { id } of [volume, fork, restored]) {
    assert.ok((await read(id)).equals(content), id);
    await module.unmount(id);
    if (needs_restart) await module.mount(id);
    await module.unmount(id);
    await module.volumes.delete(id);
  }
  await module.snapshots.delete(kept);
}

if (await ownMounts(import.meta.filename)) {
  suite("volumes: repeated cycles", { skip: volumesMissing() }, () => {
    test(`${CYCLES} cycles leave loop devices, mounts and files as they were (V1)`, async (t) => {
      const harness = await openVolumeHarness(t);
      // The first question makes the pool, which stays.
      const { reflink, encryption } = await harness.module.parts.disk.capabilities();
      const before = traces(harness.dir);
      for (let i = 0; i < CYCLES; i++) await cycle(harness, i % 5 === 0);
      await harness.module.scheduler.round();
      await until("everything is purged", () => harness.module.executor.idle);
      const after = traces(harness.dir);
      assert.deepEqual(after.loops, before.loops);
      assert.deepEqual(after.mounts, before.mounts);
      const own = (files: string[]) => files.filter((file) => !file.endsWith("encryption.json")).toSorted();
      assert.deepEqual(own(after.files), own(before.files));
      t.diagnostic(`${CYCLES} cycles, shared blocks: ${reflink}, encryption: ${encryption}`);
      await harness.close();
      const { loops, mounts } = traces(harness.dir);
      assert.deepEqual([loops, mounts], [[], []], "a clean stop takes the pool away");
    });

    test("no byte is lost while a volume grows under a writer (V3)", async (t) => {
      const { module, create, ids } = await openVolumeHarness(t);
      const { id } = await create({ name: "data", size_gb: 1, encrypted: false });
      const { dir } = await module.mount(id);
      const writer = startProgram(t, "test/system/volume-writer.ts", [dir]);
      await writer.until(/^\d+$/);
      for (const size_gb of [2, 3, 4]) await module.volumes.extend(id, size_gb, ids);
      const seen = writer.lines.length;
      await until("it writes on", () => writer.lines.length > seen + 20);
      await writer.kill();
      const last = Number(writer.lines.at(-1));
      await run("sync", ["--file-system", dir]);
      await module.unmount(id);
      const again = (await module.mount(id)).dir;
      assert.ok(checkRecords(again) >= last, "everything that was acknowledged is there");
      const usage = await module.parts.disk.usage({ id, size_gb: 4, fstype: "ext4", encryption: null, key: null });
      assert.ok((usage?.blocks ?? 0) * (usage?.block_size ?? 0) > 3.8 * 1024 ** 3);
      await module.unmount(id);
      t.diagnostic(`${last} records, none lost`);
    });
  });
}
