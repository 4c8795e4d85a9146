/** Snapshots of a volume that is being written to, each one restored and examined (V2), from a folder and from S3. */
import assert from "node:assert/strict";
import { suite, type TestContext, test } from "node:test";
import { systemClock } from "#core/clock.ts";
import { run } from "#drivers/disk/programs.ts";
import { S3Objects } from "#stores/objects/s3.ts";
import { s3Missing, startS3 } from "../s3.ts";
import { runs, tempDir } from "../support.ts";
import { openVolumeHarness, type VolumeHarness, volumesMissing } from "../volumes.ts";
import { startProgram } from "./child.ts";
import { ownMounts } from "./own-mounts.ts";
import { checkRecords } from "./volume-writer.ts";

const SNAPSHOTS = runs(3, 20, 50);

/** Takes so many while a program writes; answers how many records each restored one has. */
async function examine(harness: VolumeHarness, t: TestContext, encrypted: boolean) {
  const { module, create, settled, snapshot } = harness;
  const { id } = await create({ name: "data", size_gb: 1, encrypted });
  const writer = startProgram(t, "test/system/volume-writer.ts", [(await module.mount(id)).dir]);
  await writer.until(/^\d+$/);
  const found: { asked: number; records: number; stored: number }[] = [];
  for (let i = 0; i < SNAPSHOTS; i++) {
    const asked = Number(writer.lines.at(-1));
    const kept = await snapshot(id);
    const copy = await create({ name: `copy${i}`, region: "local", snapshot_id: kept.id });
    assert.equal((await settled(copy.id)).state, "created");
    const image = (await module.parts.disk.capabilities()).reflink
      ? `${harness.dir}/volumes/pool/images`
      : `${harness.dir}/volumes/images`;
    // Before anything else touches it: not even the journal has anything to say.
    await run("e2fsck", ["-f", "-n", `${image}/volumes/${copy.id}.img`]);
    const records = checkRecords((await module.mount(copy.id)).dir);
    found.push({ asked, records, stored: kept.stored });
    await module.unmount(copy.id);
    await module.volumes.delete(copy.id);
  }
  await writer.kill();
  await module.unmount(id);
  return found;
}

function inWords(found: Awaited<ReturnType<typeof examine>>): string {
  const records = found.map((one) => one.records);
  const stored = found.reduce((sum, one) => sum + one.stored, 0);
  return `${found.length} snapshots of ${Math.min(...records)} to ${Math.max(...records)} records, ${stored} bytes stored`;
}

if (await ownMounts(import.meta.filename)) {
  suite("volume snapshots under load", { skip: volumesMissing() }, () => {
    for (const pool of ["auto", "plain"] as const) {
      test(`${SNAPSHOTS} of ${SNAPSHOTS} restored snapshots are consistent, ${pool === "auto" ? "shared blocks" : "copies"} (V2)`, async (t) => {
        const harness = await openVolumeHarness(t, { pool });
        const found = await examine(harness, t, pool === "plain");
        for (const { asked, records } of found) assert.ok(records >= asked, `${records} of ${asked} acknowledged`);
        t.diagnostic(inWords(found));
        await harness.close();
      });
    }

    test("snapshots are restored from a real S3 server, byte for byte", { skip: s3Missing() }, async (t) => {
      const server = await startS3(tempDir());
      t.after(() => server.stop());
      const harness = await openVolumeHarness(t, { objects: new S3Objects(server, systemClock) });
      const found = await examine(harness, t, false);
      for (const { asked, records } of found) assert.ok(records >= asked);
      t.diagnostic(inWords(found));
      await harness.close();
    });
  });
}
