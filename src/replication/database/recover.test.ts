import assert from "node:assert/strict";
import { execFileSync } from "node:child_process";
import { readFileSync, rmSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { backup, DatabaseSync } from "node:sqlite";
import { suite, test } from "node:test";
import { systemClock } from "#core/clock.ts";
import { tempDir } from "../../../test/support.ts";
import { NO_PAGES } from "../position.ts";
import {
  Application,
  assertTrue,
  captureAll,
  look,
  makeOther,
  missing,
  type Opened,
  open,
  replicaOf,
} from "./fixtures.ts";
import type { DatabaseOptions } from "./state.ts";

interface Written {
  dir: string;
  app: Application;
  first: Opened;
}

/** Transactions are logged at a later time than the test touches the database file, which a power cut never does. */
const LATER: Partial<DatabaseOptions> = {
  clock: { ...systemClock, now: () => systemClock.now() + 60 * 60 * 1000 },
};

suite("recovery of a replicated database", () => {
  function written(count = 20, options: Partial<DatabaseOptions> = {}): Written {
    const dir = tempDir();
    const app = new Application(join(dir, "db"));
    const first = open(dir, "db", options);
    first.database.release();
    for (let i = 0; i < count; i++) app.write();
    captureAll(first.database);
    return { dir, app, first };
  }

  test("after a crash the log gives the position, and writes made meanwhile become transactions", () => {
    const { dir, app, first } = written();
    const { txid } = first.database.position;
    first.database.abandon();
    for (let i = 0; i < 5; i++) app.write();
    const again = open(dir, "db");
    assert.equal(again.database.found_by, "log");
    assert.equal(again.database.position.txid, txid + 5);
    assertTrue(again);
    again.database.close();
    app.close();
  });

  test("after a clean close the mark gives the position", () => {
    const { dir, app, first } = written();
    app.close();
    const { position } = first.database;
    first.database.close();
    const again = open(dir, "db");
    assert.equal(again.database.found_by, "mark");
    assert.deepEqual(again.database.position, position);
    assertTrue(again);
    again.database.close();
  });

  test("after a clean close and new writes the mark and the WAL give each transaction", () => {
    const { dir, app, first } = written();
    app.close();
    const { txid } = first.database.position;
    first.database.close();
    const next = new DatabaseSync(join(dir, "db"));
    next.exec("DELETE FROM entry WHERE n = 1");
    next.exec("DELETE FROM entry WHERE n = 2");
    const again = open(dir, "db");
    assert.equal(again.database.found_by, "mark");
    assert.equal(again.database.position.txid, txid + 2);
    assertTrue(again);
    again.database.close();
    next.close();
  });

  test("when nothing matches, the difference becomes one transaction that replicas can apply", () => {
    const there = tempDir();
    makeOther(there);
    const { dir, app, first } = written();
    const replica = replicaOf(first.database, there);
    first.database.close();
    app.write();
    app.db.exec("PRAGMA wal_checkpoint(TRUNCATE)");
    app.close();
    const again = open(dir, "db");
    assert.equal(again.database.found_by, "difference");
    assert.equal(again.database.position.txid, replica.database.position.txid + 1);
    replica.database.apply(missing(again.database, replica.database), 1);
    assert.equal(look(join(there, "db")).entries, 21);
    assertTrue(again);
    for (const { database } of [again, replica]) database.close();
  });

  test("transactions in a WAL that was begun anew while no node ran are captured one by one", () => {
    const { dir, app, first } = written();
    const { txid } = first.database.position;
    // A long WAL that the next node has no cursor in.
    first.database.abandon();
    app.db.exec("PRAGMA wal_checkpoint(PASSIVE)");
    for (let i = 0; i < 3; i++) app.write();
    const again = open(dir, "db");
    assert.equal(again.database.found_by, "scan");
    assert.equal(again.database.position.txid, txid + 3);
    assertTrue(again);
    again.database.close();
    app.close();
  });

  test("without its mark the database is scanned", () => {
    const { dir, app, first } = written();
    app.close();
    const { position } = first.database;
    first.database.close();
    rmSync(join(dir, ".replication", "db", "mark.json"));
    const again = open(dir, "db");
    assert.equal(again.database.found_by, "scan");
    assert.deepEqual(again.database.position, position);
    again.database.close();
  });

  test("with garbage in all metadata files the database counts as new", () => {
    const { dir, app, first } = written();
    app.close();
    first.database.close();
    writeFileSync(join(dir, ".replication", "db", "pages"), "nonsense");
    const again = open(dir, "db");
    assert.equal(again.database.found_by, "nothing");
    assertTrue(again);
    again.database.close();
  });

  test("transactions that SQLite's WAL lost are restored from the transaction log", () => {
    const { dir, app, first } = written(20, LATER);
    const files = ["db", "db-wal"].map((name) => join(dir, name));
    const saved = files.map((file) => readFileSync(file));
    for (let i = 0; i < 10; i++) app.write();
    captureAll(first.database);
    const { position } = first.database;
    first.database.abandon();
    app.close();
    // A power cut of an application that does not sync: the end of its WAL is lost.
    rmSync(join(dir, "db-shm"), { force: true });
    for (const [i, file] of files.entries()) writeFileSync(file, saved[i] ?? "");
    const again = open(dir, "db");
    assert.equal(again.database.found_by, "log");
    assert.deepEqual(again.database.position, position);
    assert.equal(look(join(dir, "db")).entries, 30);
    assertTrue(again);
    again.database.close();
  });

  test("when the application went on from an older state, the lost transactions are dropped and counted", () => {
    const { dir, app, first } = written(20, LATER);
    const files = ["db", "db-wal"].map((name) => join(dir, name));
    const saved = files.map((file) => readFileSync(file));
    const { txid } = first.database.position;
    for (let i = 0; i < 10; i++) app.write();
    captureAll(first.database);
    first.database.abandon();
    app.close();
    rmSync(join(dir, "db-shm"), { force: true });
    for (const [i, file] of files.entries()) writeFileSync(file, saved[i] ?? "");
    const next = new Application(join(dir, "db"));
    next.write(1);
    const again = open(dir, "db");
    assert.equal(again.database.cut, 10);
    // The application looks whether its accounts are there, and then writes once.
    assert.equal(again.database.position.txid, txid + 1);
    assertTrue(again);
    again.database.close();
    next.close();
  });

  // A file of the same inode, and one in its place; alone, as a backup is, and with the log it had then.
  for (const [how, place, ends] of [
    ["copied over it", "cp", [""]],
    ["renamed over it", "mv", [""]],
    ["copied over it with its log", "cp", ["", "-wal"]],
    ["renamed over it with its log", "mv", ["", "-wal"]],
  ] as const) {
    test(`an older file that was ${how} stays: the rollback becomes one more transaction`, () => {
      const there = tempDir();
      makeOther(there);
      const { dir, app, first } = written();
      const replica = replicaOf(first.database, there);
      if (ends.length === 1) app.db.exec("PRAGMA busy_timeout = 0; PRAGMA wal_checkpoint(PASSIVE)");
      const older = tempDir();
      for (const end of ends) execFileSync("cp", [join(dir, `db${end}`), older]);
      const { txid } = first.database.position;
      for (let i = 0; i < 10; i++) app.write();
      captureAll(first.database);
      replica.database.apply(missing(first.database, replica.database), 1);
      first.database.close();
      app.close();
      for (const end of ends) execFileSync(place, [join(older, `db${end}`), join(dir, `db${end}`)]);
      const again = open(dir, "db");
      assert.equal(again.database.found_by, "restored");
      assert.equal(again.database.position.txid, txid + 11);
      assert.deepEqual(again.database.undone?.after, txid);
      assert.equal(look(join(dir, "db")).entries, 20);
      assertTrue(again);
      replica.database.apply(missing(again.database, replica.database), 1);
      assert.equal(look(join(there, "db")).entries, 20);
      assertTrue(replica);
      for (const { database } of [again, replica]) database.close();
    });
  }

  for (const rows of [1, 400]) {
    test(`a copy by SQLite's backup API of ${rows} rows is recognized: what it undoes is counted`, async () => {
      const { dir, app, first } = written(rows);
      const copy = join(tempDir(), "copy");
      await backup(app.db, copy);
      const { txid } = first.database.position;
      for (let i = 0; i < 10; i++) app.write();
      captureAll(first.database);
      first.database.close();
      app.close();
      execFileSync("mv", [copy, join(dir, "db")]);
      const again = open(dir, "db");
      assert.equal(again.database.found_by, "restored");
      assert.equal(again.database.position.txid, txid + 11);
      assert.equal(again.database.undone?.after, txid);
      assert.equal(look(join(dir, "db")).entries, rows);
      assertTrue(again);
      again.database.close();
    });
  }

  test("a copy by SQLite's backup API of the last transaction undoes nothing", async () => {
    const { dir, app, first } = written();
    const copy = join(tempDir(), "copy");
    await backup(app.db, copy);
    const { txid } = first.database.position;
    first.database.close();
    app.close();
    execFileSync("mv", [copy, join(dir, "db")]);
    const again = open(dir, "db");
    assert.equal(again.database.found_by, "difference");
    assert.equal(again.database.undone, undefined);
    assert.equal(again.database.position.txid, txid + 1);
    assertTrue(again);
    again.database.close();
  });

  test("a deleted database is a transaction, and a new one of that name continues the count", () => {
    const { dir, app, first } = written();
    app.close();
    const { txid } = first.database.position;
    const info = first.database.drop();
    assert.deepEqual(info.position, { txid: txid + 1, checksum: NO_PAGES });
    rmSync(join(dir, "db"));
    const next = new Application(join(dir, "db"), 1024);
    const again = open(dir, "db");
    assert.equal(again.database.position.txid, txid + 2);
    assert.equal(again.database.page_size, 1024);
    assertTrue(again);
    again.database.close();
    next.close();
  });

  for (const wal of ["removed", "left"] as const) {
    test(`a file that is there again after its deletion was logged is the next transaction (WAL ${wal})`, () => {
      // Without the time of the file, as after a power cut that undid its removal.
      const { dir, app, first } = written(20, LATER);
      const { txid } = first.database.position;
      const copies = tempDir();
      if (wal === "left") execFileSync("cp", [join(dir, "db-wal"), join(dir, "db-shm"), copies]);
      else app.close();
      first.database.drop();
      if (wal === "left") execFileSync("cp", [join(copies, "db-wal"), join(copies, "db-shm"), dir]);
      const again = open(dir, "db");
      assert.equal(again.database.position.txid, txid + 2);
      assert.equal(look(join(dir, "db")).entries, 20);
      assertTrue(again);
      again.database.close();
      if (wal === "left") app.close();
    });
  }
});
