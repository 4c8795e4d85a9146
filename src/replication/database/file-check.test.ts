import assert from "node:assert/strict";
import { closeSync, openSync, readFileSync, writeSync } from "node:fs";
import { join } from "node:path";
import { test } from "node:test";
import { tempDir } from "../../../test/support.ts";
import type { ReplicatedDatabase } from "./database.ts";
import { Application, captureAll, open } from "./fixtures.ts";

const PARTS = 20;

/** Whether the comparison of the whole file finds a page written outside SQLite. */
const found = (database: ReplicatedDatabase): boolean =>
  Array.from({ length: PARTS }, (_, part) => database.hasForeignPage(part === 0)).includes(true);

test("a page is compared as soon as its last frame is copied, also when every page is in the WAL", async (t) => {
  const dir = tempDir();
  const path = join(dir, "db");
  const app = new Application(path);
  t.after(() => app.close());
  const { database } = open(dir, "db");
  database.release();
  // A writer's own connection keeps the WAL, of which nothing is copied yet.
  app.db.exec("PRAGMA wal_autocheckpoint = 0");
  for (let n = 0; n < 10; n++) app.write();
  captureAll(database);
  await database.durable();
  const fd = openSync(path, "r+");
  const before = readFileSync(path);
  writeSync(fd, Buffer.from([(before[200] ?? 0) ^ 1]), 0, 1, 200);
  assert.equal(found(database), false, "the WAL has a newer page 1");
  writeSync(fd, Buffer.from([before[200] ?? 0]), 0, 1, 200);
  database.capture();
  app.db.exec("PRAGMA wal_checkpoint(PASSIVE)");
  assert.equal(found(database), false, "as it was copied");
  const copied = readFileSync(path);
  writeSync(fd, Buffer.from([(copied[4096 + 500] ?? 0) ^ 1]), 0, 1, 4096 + 500);
  assert.equal(found(database), true);
  database.abandon();
  closeSync(fd);
});

test("a page written past SQLite is found wherever it is, and no page that SQLite wrote", async (t) => {
  const dir = tempDir();
  const path = join(dir, "db");
  const app = new Application(path);
  t.after(() => app.close());
  const { database } = open(dir, "db");
  database.release();
  // Several times what is compared at once.
  for (let n = 0; n < 300; n++) app.write(8000);
  captureAll(database);
  // Until it is all copied, and the node's read transaction has left it: the next commit begins the WAL anew.
  const checkpoint = async (): Promise<void> => {
    for (let times = 0; times < 3; times++) {
      app.db.exec("PRAGMA wal_checkpoint(PASSIVE)");
      await database.durable();
      captureAll(database);
    }
  };
  for (let round = 0; round < 3; round++) {
    await checkpoint();
    assert.equal(found(database), false, "after a checkpoint");
    for (let n = 0; n < 5; n++) app.write();
    captureAll(database);
    assert.equal(found(database), false, "with pages in the WAL that the file does not have");
    app.db.exec("DELETE FROM entry WHERE n > 290; VACUUM");
    captureAll(database);
    assert.equal(found(database), false, "after VACUUM");
  }
  await checkpoint();
  app.write();
  captureAll(database);
  const before = readFileSync(path);
  const fd = openSync(path, "r+");
  for (const at of [4096 * 20, before.length >> 1]) {
    writeSync(fd, Buffer.from([(before[at] ?? 0) ^ 1]), 0, 1, at);
    assert.equal(found(database), true, `byte ${at}`);
    writeSync(fd, Buffer.from([before[at] ?? 0]), 0, 1, at);
    assert.equal(found(database), false, `byte ${at} as it was`);
  }
  // POSIX locks: closed only at the end, as the node has the file open itself.
  database.abandon();
  closeSync(fd);
});
