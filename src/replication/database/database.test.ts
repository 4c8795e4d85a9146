import assert from "node:assert/strict";
import { readdirSync, rmSync, statSync, truncateSync } from "node:fs";
import { join } from "node:path";
import { DatabaseSync } from "node:sqlite";
import { suite, test } from "node:test";
import { systemClock } from "#core/clock.ts";
import { tempDir } from "../../../test/support.ts";
import { RECORD_HEADER_BYTES } from "../log/record.ts";
import {
  Application,
  assertTrue,
  captureAll,
  look,
  makeOther,
  missing,
  type Opened,
  open,
  receive,
  replicaOf,
} from "./fixtures.ts";
import { receivedPages, SnapshotFile } from "./received-snapshot.ts";
import { Snapshot } from "./snapshot.ts";

/** A primary that is `count` transactions ahead of its replica. */
function followed(count: number): { primary: Opened; replica: Opened; app: Application; there: string } {
  const [here, there] = [tempDir(), tempDir()];
  makeOther(there);
  const app = new Application(join(here, "db"));
  const primary = open(here, "db");
  primary.database.release();
  const replica = replicaOf(primary.database, there);
  for (let i = 0; i < count; i++) app.write();
  captureAll(primary.database);
  return { primary, replica, app, there };
}

suite("replicated database", () => {
  for (const page_size of [512, 1024, 4096, 16384, 65536]) {
    test(`every transaction reaches a replica, pages of ${page_size} bytes`, async () => {
      const [here, there] = [tempDir(), tempDir()];
      makeOther(there);
      const app = new Application(join(here, "db"), page_size);
      const primary = open(here, "db");
      const start = primary.database.position.txid;
      primary.database.release();
      const replica = replicaOf(primary.database, there);
      for (let i = 0; i < 40; i++) {
        app.write(page_size);
        if (i % 7 === 0) app.db.exec("BEGIN; DELETE FROM entry; ROLLBACK");
        if (i % 3 === 0) captureAll(primary.database);
      }
      app.db.exec("CREATE INDEX entry_pad ON entry(pad); VACUUM");
      captureAll(primary.database);
      replica.database.apply(missing(primary.database, replica.database), 1);
      assert.deepEqual(replica.database.position, primary.database.position);
      // 40 writes, an index, a VACUUM.
      assert.equal(primary.database.position.txid, start + 42);
      assert.deepEqual(look(join(there, "db")), { integrity: "ok", sum: 3000, entries: 40 });
      assertTrue(primary);
      assertTrue(replica);
      await primary.database.log.sync();
      const ids = primary.announced.map((info) => info.position.txid);
      assert.deepEqual(
        ids,
        ids.map((_, i) => i + 1),
      );
      for (const { database } of [primary, replica]) database.close();
      app.close();
    });
  }

  test("no transaction is missed through checkpoints of the node and of applications", () => {
    const dir = tempDir();
    const app = new Application(join(dir, "db"));
    const primary = open(dir, "db", { sizes: { checkpoint_frames: 60 } });
    const start = primary.database.position.txid;
    primary.database.release();
    // It would wait for our read transaction, in vain.
    app.db.exec("PRAGMA busy_timeout = 0");
    let others = 0;
    for (let i = 0; i < 500; i++) {
      app.write();
      if (i % 5 === 0) captureAll(primary.database);
      if (i % 11 === 0) app.db.exec(`PRAGMA wal_checkpoint(${["PASSIVE", "RESTART", "TRUNCATE"][others++ % 3]})`);
    }
    captureAll(primary.database);
    assert.equal(primary.database.position.txid - start, 500);
    assertTrue(primary);
    primary.database.close();
    app.close();
  });

  test("a transaction is announced when it is durable, not with one before it", async () => {
    const dir = tempDir();
    const app = new Application(join(dir, "db"));
    const announced: number[] = [];
    const early: number[] = [];
    const { database } = open(dir, "db", {
      onTransactions(infos) {
        const txids = infos.map(({ position }) => position.txid);
        announced.push(...txids);
        early.push(...txids.filter((txid) => txid > database.log.durable));
      },
    });
    database.release();
    for (let i = 0; i < 5; i++) {
      // The second is written to the log while the first is synced.
      for (let n = 0; n < 2; n++) {
        app.write();
        captureAll(database);
      }
      await database.durable();
    }
    assert.deepEqual(early, []);
    assert.equal(announced.at(-1), database.position.txid);
    database.close();
    app.close();
  });

  test("a WAL restarted between two polls is captured from its beginning, once", () => {
    const dir = tempDir();
    const app = new Application(join(dir, "db"));
    const { database } = open(dir, "db", { sizes: { checkpoint_frames: 8 } });
    const start = database.position.txid;
    database.release();
    const { files } = database.source;
    const look = files.walHeader.bind(files);
    let asked = 0;
    // The index already has the next WAL generation, but its header is missing, or is still that of the one before.
    files.walHeader = () => {
      const header = look();
      asked++;
      if (asked % 3 === 0) return header;
      return asked % 3 === 1 ? undefined : header && { ...header, salt1: header.salt1 - 1 };
    };
    for (let i = 0; i < 60; i++) {
      app.write();
      captureAll(database);
    }
    while (database.position.txid < start + 60) captureAll(database);
    assert.ok(asked > 6, "the log was begun anew several times");
    assert.equal(database.position.txid, start + 60);
    assertTrue({ database, announced: [] });
    database.close();
    app.close();
  });

  test("a WAL that grows under constant writes is restarted all the same", () => {
    const dir = tempDir();
    const app = new Application(join(dir, "db"));
    let now = 0;
    let rests_at = Number.POSITIVE_INFINITY;
    // A writer that releases the lock once, at that time.
    const monotonic = (): number => {
      if (++now === rests_at) app.db.exec("COMMIT");
      return now;
    };
    const clock = { ...systemClock, monotonic };
    const { database } = open(dir, "db", { clock, sizes: { checkpoint_frames: 16 } });
    database.release();
    const writesOn = (rests_ms: number): void => {
      app.write();
      app.db.exec("BEGIN IMMEDIATE");
      rests_at = now + rests_ms;
      captureAll(database);
      if (app.db.isTransaction) app.db.exec("COMMIT");
    };
    for (let i = 0; database.wal_frames < 32; i++) {
      assert.ok(i < 100);
      writesOn(50);
    }
    writesOn(50);
    app.write();
    assert.ok(database.wal_frames < 32, "the lock was requested for long enough");
    captureAll(database);
    assert.equal(look(join(dir, "db")).entries, app.written);
    database.close();
    app.close();
  });

  test("a long reader prevents the checkpoint, but writers do not wait for it", () => {
    const dir = tempDir();
    const app = new Application(join(dir, "db"));
    const { database } = open(dir, "db", { sizes: { checkpoint_frames: 16 } });
    database.release();
    app.write();
    const reader = new DatabaseSync(join(dir, "db"), { readOnly: true });
    reader.exec("BEGIN");
    reader.prepare("SELECT count(*) FROM entry").get();
    const before = app.written;
    const looks = 300;
    const look = (): void => database.slowWriters(database.capture().too_fast ?? false);
    for (let i = 0; i < looks; i++) {
      if (!database.paused) app.write();
      look();
    }
    assert.ok(app.written - before > looks / 2, `${app.written - before} writes in ${looks} looks`);
    reader.close();
    // Without it the WAL is checkpointed, and restarted.
    const long = database.wal_frames;
    for (let i = 0; i < 40; i++) {
      if (!database.paused) app.write();
      look();
    }
    assert.ok(long > 100 && database.wal_frames < 100, `${long} frames, then ${database.wal_frames}`);
    database.close();
    app.close();
  });

  test("a snapshot is consistent when the WAL restarts while it is read", () => {
    const dir = tempDir();
    const app = new Application(join(dir, "db"));
    const { database } = open(dir, "db");
    database.release();
    for (let i = 0; i < 300; i++) app.write(3000);
    captureAll(database);
    // Everything is in the file, and the WAL still has it, until the next writer restarts it.
    captureAll(database);
    app.db.exec("PRAGMA wal_checkpoint(PASSIVE)");
    const snapshot = Snapshot.take(database);
    assert.ok(snapshot);
    const before = database.wal_frames;
    captureAll(database);
    // Differently in each: the checksum of a database is the exclusive or of those of its pages.
    app.db.exec("UPDATE entry SET pad = substr(pad, 9) || (n * n) WHERE n % 2 = 1");
    assert.ok(before > 0 && database.wal_frames < before, "it was begun anew");
    const file = new SnapshotFile(join(dir, "incoming"), snapshot.head);
    for (const run of snapshot.runs(Buffer.alloc)) file.write(run);
    assert.deepEqual(file.verify().position, snapshot.position);
    snapshot.close();
    database.close();
    app.close();
  });

  test("an open read transaction keeps its view while the replica applies transactions", () => {
    const [here, there] = [tempDir(), tempDir()];
    makeOther(there);
    const app = new Application(join(here, "db"));
    const primary = open(here, "db");
    primary.database.release();
    const replica = replicaOf(primary.database, there);
    const reader = new DatabaseSync(join(there, "db"), { readOnly: true });
    const count = reader.prepare("SELECT count(*) AS n FROM entry");
    reader.exec("BEGIN");
    assert.equal(count.get()?.["n"], 0);
    for (let i = 0; i < 30; i++) {
      app.write();
      captureAll(primary.database);
      replica.database.apply(missing(primary.database, replica.database), 1);
    }
    assert.equal(count.get()?.["n"], 0);
    reader.exec("COMMIT");
    assert.equal(count.get()?.["n"], 30);
    assert.throws(() => new DatabaseSync(join(there, "db")).exec("DELETE FROM entry"), /locked/);
    reader.close();
    for (const { database } of [primary, replica]) database.close();
    app.close();
  });

  test("a snapshot replaces a live database at once, in front of an open reader", () => {
    const [here, there] = [tempDir(), tempDir()];
    const app = new Application(join(here, "db"));
    for (let i = 0; i < 300; i++) app.write(3000);
    const other = new Application(join(there, "db"));
    other.write();
    const primary = open(here, "db");
    const replica = open(there, "db");
    other.db.exec("BEGIN");
    const count = other.db.prepare("SELECT count(*) AS n FROM entry");
    assert.equal(count.get()?.["n"], 1);
    const snapshot = receive(primary.database, join(there, "incoming"));
    replica.database.replace(receivedPages(snapshot), snapshot);
    assert.equal(count.get()?.["n"], 1);
    other.db.exec("COMMIT");
    assert.equal(count.get()?.["n"], 300);
    assert.deepEqual(replica.database.position, primary.database.position);
    assertTrue(replica);
    other.close();
    for (const { database } of [primary, replica]) database.close();
    app.close();
  });

  test("a snapshot of a database that is deleted meanwhile fails instead of mixing pages", () => {
    const dir = tempDir();
    const app = new Application(join(dir, "db"));
    for (let i = 0; i < 300; i++) app.write(3000);
    app.close();
    const { database } = open(dir, "db");
    const snapshot = Snapshot.take(database);
    assert.ok(snapshot);
    const pieces = snapshot.runs(Buffer.alloc);
    for (let i = 0; i < 2; i++) assert.ok(pieces.next().value);
    for (const end of ["", "-wal", "-shm"]) rmSync(join(dir, `db${end}`), { force: true });
    database.drop();
    // The descriptors that were closed are given out again.
    const other = new Application(join(dir, "db"));
    const again = open(dir, "db");
    assert.throws(() => [...pieces], /db was closed while it was read/);
    snapshot.close();
    again.database.close();
    other.close();
  });

  test("transactions applied together are announced and logged separately, in one WAL write", () => {
    const { primary, replica, app, there } = followed(20);
    const files = missing(primary.database, replica.database);
    const { txid } = replica.database.position;
    const frames = replica.database.wal_frames;
    // As long as a connection is open, SQLite's WAL stays as a crash leaves it.
    const reader = new DatabaseSync(join(there, "db"), { readOnly: true });
    reader.prepare("SELECT count(*) FROM entry").get();
    replica.database.apply(files, 1);
    // Each writes at least the accounts and an entry, most of them the same two pages.
    assert.ok(replica.database.wal_frames - frames < 20, `${replica.database.wal_frames - frames} frames`);
    const expected = files.map((_, i) => txid + 1 + i);
    assert.deepEqual(
      replica.announced.map(({ position }) => position.txid),
      expected,
    );
    for (const [i, file] of files.entries()) assert.deepEqual(replica.database.log.read(expected[i] ?? 0), file);
    assert.deepEqual(look(join(there, "db")), { integrity: "ok", sum: 3000, entries: 20 });
    replica.database.abandon();
    const again = open(there, "db");
    assert.equal(again.database.found_by, "log");
    assert.deepEqual(again.database.position, primary.database.position);
    assertTrue(again);
    reader.close();
    for (const { database } of [primary, again]) database.close();
    app.close();
  });

  for (const wal of ["still there", "copied back"]) {
    test(`a log that lost part of a batch claims none of it, SQLite's ${wal}`, () => {
      const { primary, replica, app, there } = followed(20);
      const files = missing(primary.database, replica.database);
      const { txid } = replica.database.position;
      replica.database.apply(files, 1);
      // The last connection to close a database checkpoints its WAL.
      const reader = new DatabaseSync(join(there, "db"), { readOnly: true });
      reader.prepare("SELECT count(*) FROM entry").get();
      if (wal === "copied back") reader.close();
      replica.database.abandon();
      const folder = join(there, ".replication", "db", "log");
      const [segment = ""] = readdirSync(folder);
      const path = join(folder, segment);
      const lost = files.slice(-7).reduce((sum, { length }) => sum + RECORD_HEADER_BYTES + length, 0);
      truncateSync(path, statSync(path).size - lost);
      const again = open(there, "db");
      // The content becomes one transaction after the known ones: how many it was is unknown here.
      assert.equal(again.database.position.txid, txid + 13 + 1);
      assertTrue(again);
      assert.deepEqual(look(join(there, "db")), { integrity: "ok", sum: 3000, entries: 20 });
      if (reader.isOpen) reader.close();
      for (const { database } of [primary, again]) database.close();
      app.close();
    });
  }

  test("a transaction out of sequence is refused, and those before it are applied", () => {
    const { primary, replica, app, there } = followed(4);
    const files = missing(primary.database, replica.database);
    const gap = files.filter((_, i) => i !== 2);
    const before = replica.database.position.txid;
    assert.throws(() => replica.database.apply(gap, 1), { name: "PositionMismatch" });
    assert.equal(replica.database.position.txid, before + 2);
    const [damaged = Buffer.alloc(0)] = missing(primary.database, replica.database).map((b) => Buffer.from(b));
    damaged[200] = (damaged[200] ?? 0) ^ 1;
    assert.throws(() => replica.database.apply([damaged], 1), { name: "LtxError" });
    replica.database.apply(missing(primary.database, replica.database), 1);
    assert.equal(look(join(there, "db")).entries, 4);
    for (const { database } of [primary, replica]) database.close();
    app.close();
  });
});
