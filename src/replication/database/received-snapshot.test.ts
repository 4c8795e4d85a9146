import assert from "node:assert/strict";
import { existsSync, statSync } from "node:fs";
import { join } from "node:path";
import { suite, test } from "node:test";
import { tempDir } from "../../../test/support.ts";
import type { PageRun } from "../wal/scan.ts";
import { Application, look, open, receive } from "./fixtures.ts";
import { readPartial, sameBlocks } from "./partial-snapshot.ts";
import { createFromSnapshot, SnapshotFile } from "./received-snapshot.ts";
import { Snapshot } from "./snapshot.ts";
import { PositionMismatch } from "./state.ts";

/** A snapshot of a database with several blocks of pages, as it is sent. */
function taken(): { snapshot: Snapshot; runs: PageRun[]; dir: string } {
  const dir = tempDir();
  const app = new Application(join(dir, "db"));
  app.db.exec("CREATE TABLE large (bytes BLOB); INSERT INTO large VALUES (randomblob(12582912))");
  app.close();
  const { database } = open(dir, "db");
  const snapshot = Snapshot.take(database);
  assert.ok(snapshot);
  const runs = [...snapshot.runs(Buffer.alloc)];
  snapshot.close();
  database.close();
  return { snapshot, runs, dir };
}

suite("a snapshot that is received", () => {
  test("is opened without being read again, and is what was sent", () => {
    const [here, there] = [tempDir(), tempDir()];
    const app = new Application(join(here, "db"));
    for (let i = 0; i < 20; i++) app.write();
    app.close();
    const { database } = open(here, "db");
    const state = join(there, ".replication", "db");
    createFromSnapshot(receive(database, join(there, "incoming")), join(there, "db"), state);
    const copy = open(there, "db").database;
    assert.equal(copy.found_by, "mark");
    assert.deepEqual(copy.position, database.position);
    assert.equal(existsSync(join(state, "mark.json")), false, "it is for the first time only");
    assert.equal(statSync(join(there, "db")).mode & 0o777, 0o644);
    for (const one of [database, copy]) one.close();
    assert.deepEqual(look(join(there, "db")), look(join(here, "db")));
  });

  test("is refused when a byte is another, a page is missing, or pages come that are not the next", () => {
    const { snapshot, runs, dir } = taken();
    const sent = (change: (runs: PageRun[]) => PageRun[]): (() => unknown) => {
      const file = new SnapshotFile(join(dir, "incoming"), snapshot.head);
      return () => {
        try {
          for (const run of change(runs)) file.write(run);
          return file.verify();
        } finally {
          file.close();
        }
      };
    };
    assert.ok(sent((all) => all)());
    const flipped = (run: PageRun): PageRun => ({ ...run, data: Buffer.from(run.data).fill(1, 5000, 5001) });
    const changes: ((all: PageRun[]) => PageRun[])[] = [
      (all) => all.map((run, i) => (i === 3 ? flipped(run) : run)),
      (all) => all.slice(0, -1),
      (all) => all.filter((_, i) => i !== 3),
      (all) => [...all, { first: 0, data: Buffer.alloc(4096) }],
      (all) => [...all, { first: snapshot.head.pages + 1, data: Buffer.alloc(4096) }],
      (all) => [{ first: 1, data: Buffer.alloc(100) }, ...all],
      (all) => [{ first: 4_000_000_000, data: Buffer.alloc(4096) }, ...all],
    ];
    for (const change of changes) assert.throws(sent(change), PositionMismatch);
  });

  test("that broke off has the blocks that came, of a smaller database, too", () => {
    const { snapshot, runs, dir } = taken();
    const path = join(dir, "incoming");
    const begun = new SnapshotFile(path, snapshot.head);
    for (const run of runs.slice(0, Math.floor(runs.length * 0.8))) begun.write(run);
    begun.close();
    const known = readPartial(path);
    assert.ok(known);
    const kept = sameBlocks({ page_size: 4096, blocks: known.blockSums() }, 4096, snapshot.blocks);
    assert.deepEqual([...kept], [0, 1]);
    known.keepOnly((page) => page <= 2048);
    const rest = new SnapshotFile(path, snapshot.head, known);
    for (const run of runs) if (run.first > 2048) rest.write(run);
    assert.deepEqual(rest.verify().position, snapshot.position);
    // One that was large and is not any more: what is too much of the file goes.
    const small = { ...snapshot.head, pages: 1 };
    const larger = readPartial(path);
    larger?.keepOnly(() => false);
    const file = new SnapshotFile(path, small, larger);
    file.write({ first: 1, data: runs[0]?.data.subarray(0, 4096) ?? Buffer.alloc(0) });
    assert.throws(() => file.verify(), PositionMismatch);
    file.close();
  });
});
