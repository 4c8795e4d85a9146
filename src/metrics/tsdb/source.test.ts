/** The database as a source of samples, and a damaged length in its WAL. */
import assert from "node:assert/strict";
import { mkdtempSync, readdirSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { suite, test } from "node:test";
import { tempDir } from "../../../test/support.ts";
import { sampleSourceSuite } from "../source.suite.ts";
import { contents, HandClock, labelsOf, NOON, openPartition, put } from "./fixtures.ts";
import { GrowingBatch } from "./ingest/batch.ts";

for (const compacted of [false, true]) {
  sampleSourceSuite(`tsdb, ${compacted ? "blocks" : "head"}`, async (data) => {
    const dir = mkdtempSync(join(tmpdir(), "hangar-source-"));
    const partition = openPartition(dir, new HandClock(), { retention_ms: 1e15, out_of_order_ms: 1e15 });
    const batch = new GrowingBatch();
    for (const { labels, timestamps, values } of data) {
      const ref = partition.admission.series(labels);
      assert.ok(ref !== undefined);
      const bits = new Uint32Array(values.buffer, values.byteOffset, values.length * 2);
      for (const [i, time] of timestamps.entries()) batch.push(ref, time, bits[2 * i] ?? 0, bits[2 * i + 1] ?? 0);
    }
    partition.append(batch);
    if (compacted) await partition.compact();
    return {
      source: partition.source,
      close: async () => {
        await partition.close();
        rmSync(dir, { recursive: true, force: true });
      },
    };
  });
}

suite("WAL damage", () => {
  test("a damaged length is reported as damage: records before it are read, the file is quarantined", async () => {
    const dir = tempDir();
    let db = openPartition(dir, new HandClock());
    for (let n = 0; n < 3; n++) put(db, [[labelsOf({ __name__: "up" }), NOON + n * 15_000, n]]);
    await db.close();
    const [name = ""] = readdirSync(join(dir, "wal"));
    const bytes = readFileSync(join(dir, "wal", name));
    const second = 8 + 12 + bytes.readUInt32LE(8);
    // The length of the second record now reaches past the end of the file, as if that had been cut off.
    bytes.writeUInt32LE(bytes.readUInt32LE(second) | 0x4000, second);
    writeFileSync(join(dir, "wal", name), bytes);
    db = openPartition(dir, new HandClock());
    assert.equal([...contents(db.source).values()][0]?.length, 1);
    assert.deepEqual(readdirSync(join(dir, "quarantine")), [name]);
    await db.close();
  });
});
