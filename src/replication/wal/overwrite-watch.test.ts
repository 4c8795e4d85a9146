import assert from "node:assert/strict";
import { closeSync, mkdtempSync, openSync, rmSync, utimesSync, writeSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { DatabaseSync } from "node:sqlite";
import { test } from "node:test";
import { DatabaseFiles } from "./files.ts";
import { OverwriteWatch } from "./overwrite-watch.ts";

test("writes that bypass SQLite are detected; commits and checkpoints are not reported", (t) => {
  const dir = mkdtempSync(join(tmpdir(), "hangar-overwrite-"));
  const path = join(dir, "db");
  const db = new DatabaseSync(path);
  db.exec("PRAGMA journal_mode = WAL; PRAGMA wal_autocheckpoint = 0; CREATE TABLE t (x)");
  const files = new DatabaseFiles(path);
  t.after(() => {
    db.close();
    files.close();
    rmSync(dir, { recursive: true });
  });
  const watch = new OverwriteWatch(files);
  const insert = db.prepare("INSERT INTO t VALUES (randomblob(3000))");
  for (const mode of ["PASSIVE", "FULL", "RESTART", "TRUNCATE"]) {
    for (let n = 0; n < 5; n++) insert.run();
    assert.equal(watch.changed(), false, "a commit");
    db.exec(`PRAGMA wal_checkpoint(${mode})`);
    assert.equal(watch.changed(), false, mode);
    insert.run();
    assert.equal(watch.changed(), false, `a commit after ${mode}`);
  }
  const fd = openSync(path, "r+");
  writeSync(fd, Buffer.alloc(100, 1), 0, 100, 4096);
  closeSync(fd);
  // The clock of the file system is coarse: what is written within a tick of the last look has the same time.
  utimesSync(path, 1, 1);
  assert.equal(watch.changed(), true);
  assert.equal(watch.changed(), false, "it is said once");
});
