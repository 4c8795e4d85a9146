import assert from "node:assert/strict";
import { mkdirSync, readdirSync, renameSync, rmSync, utimesSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { suite, test } from "node:test";
import { systemClock } from "#core/clock.ts";
import { tempDir } from "../../../test/support.ts";
import { Application, look, openAll } from "../database/fixtures.ts";
import { REPLICATION_LIMITS } from "../limits.ts";
import { Directory } from "./directory.ts";

const nothing = (): void => undefined;

function directoryAt(dir: string, clock = systemClock, log: (message: string) => void = nothing): Directory {
  const options = { dir, node_id: 1n, clock, onTransactions: nothing, onUndone: nothing, log };
  return new Directory({ ...options, onFailure: (error) => assert.fail(String(error)) });
}

const LOCKED = 10;

suite("databases of a node", () => {
  test("a large database is opened in slices, and others are opened before it", () => {
    const dir = tempDir();
    const large = new Application(join(dir, "a-large"));
    for (let i = 0; i < 30; i++) large.write(500_000);
    large.db.exec("PRAGMA wal_checkpoint(TRUNCATE)");
    const small = new Application(join(dir, "small"));
    // Every look at the clock is a millisecond: what takes long takes many.
    let now_ms = 0;
    const clock = { ...systemClock, monotonic: () => now_ms++ };
    const directory = directoryAt(dir, clock);
    assert.deepEqual(directory.discover(), []);
    assert.equal(directory.problems.get("a-large")?.state, "opening");
    const order: string[] = [];
    for (let slice = 0; order.length < 2; slice++) {
      assert.ok(slice < 100);
      order.push(...directory.advance().map(({ name }) => name));
    }
    assert.deepEqual(order, ["small", "a-large"]);
    assert.equal(directory.problems.size, 0);
    directory.close();
    for (const app of [large, small]) app.close();
  });

  test("a failing database is set apart with a reason and reopened; others go on", () => {
    const dir = tempDir();
    const [bad, good] = ["bad", "good"].map((name) => new Application(join(dir, name)));
    assert.ok(bad && good);
    const directory = directoryAt(dir);
    for (const database of openAll(directory)) database.release();
    const before = directory.get("bad")?.position.txid ?? 0;
    directory.quarantine("bad", Object.assign(new Error("no space left on device"), { code: "ENOSPC" }));
    assert.equal(directory.get("bad"), undefined);
    assert.deepEqual(directory.unusable, ["bad"]);
    assert.equal(directory.problems.get("bad")?.state, "full");
    good.write();
    bad.write();
    const other = directory.get("good");
    assert.ok(other && other.capture().transactions > 0);
    openAll(directory);
    assert.equal(directory.problems.size, 0);
    assert.equal(directory.get("bad")?.position.txid, before + 1);
    directory.close();
    for (const app of [bad, good]) app.close();
  });

  test("databases that applications hold locked are tried in passing, and opened when they are free", () => {
    const dir = tempDir();
    const apps = Array.from({ length: LOCKED }, (_, i) => {
      const app = new Application(join(dir, `locked-${i}`));
      // Even a connection that only reads is kept out.
      app.db.exec("PRAGMA journal_mode = DELETE; BEGIN EXCLUSIVE");
      return app;
    });
    const free = new Application(join(dir, "free"));
    const directory = directoryAt(dir);
    const began_ms = performance.now();
    const opened = Array.from({ length: LOCKED + 2 }, () => directory.discover()).flat();
    const took_ms = performance.now() - began_ms;
    assert.deepEqual(
      opened.map(({ name }) => name),
      ["free"],
    );
    // Waiting for each of them as applications do would take this long.
    assert.ok(took_ms < LOCKED * 5000 * 0.8, `${took_ms} ms`);
    for (const [i, app] of apps.entries()) {
      assert.equal(directory.problems.get(`locked-${i}`)?.state, "busy");
      app.db.exec("COMMIT");
    }
    openAll(directory);
    assert.equal(directory.count, LOCKED + 1);
    assert.equal(directory.problems.size, 0);
    directory.close();
    for (const app of [...apps, free]) app.close();
  });

  test("a file that is renamed over another one while it is opened ends neither, nor the node", () => {
    const dir = tempDir();
    const [target, other] = ["target", "other"].map((name) => new Application(join(dir, name)));
    assert.ok(target && other);
    target.write();
    let renamed = false;
    // Every look at the clock is a millisecond, so a large one takes several slices.
    let now_ms = 0;
    const clock = { ...systemClock, monotonic: () => now_ms++ };
    const directory = directoryAt(dir, clock, (message) => {
      // It is open, and not yet among the databases.
      if (!message.startsWith("fresh: opening") || renamed) return;
      renameSync(join(dir, "fresh"), join(dir, "target"));
      renamed = true;
    });
    for (const database of openAll(directory)) database.release();
    const made = new Application(join(dir, "fresh"), 1024);
    for (let i = 0; i < 30; i++) made.write(500_000);
    made.close();
    for (let slice = 0; !renamed; slice++) {
      assert.ok(slice < 100, "it was open at once");
      directory.discover();
    }
    for (const database of openAll(directory)) database.release();
    const dropped = directory.findDropped().map(({ name }) => name);
    assert.deepEqual(dropped, ["fresh"]);
    openAll(directory);
    assert.deepEqual([...directory].map(({ name }) => name).sort(), ["other", "target"]);
    assert.equal(directory.get("target")?.page_size, 1024);
    assert.deepEqual(look(join(dir, "target")), { integrity: "ok", sum: 3000, entries: 30 });
    directory.close();
    for (const app of [target, other]) app.close();
  });

  test("a deletion that cannot be logged leaves the database missing, not deleted, and the others go on", () => {
    const dir = tempDir();
    const [gone, other] = ["gone", "other"].map((name) => new Application(join(dir, name)));
    assert.ok(gone && other);
    const directory = directoryAt(dir);
    for (const database of openAll(directory)) database.release();
    const database = directory.get("gone");
    assert.ok(database);
    database.drop = () => {
      throw Object.assign(new Error("no space left on device"), { code: "ENOSPC" });
    };
    rmSync(join(dir, "gone"));
    assert.deepEqual(directory.findDropped(), []);
    directory.discover();
    assert.equal(directory.problems.get("gone")?.state, "missing");
    assert.equal(directory.deletedAt("gone"), undefined);
    other.write();
    assert.ok((directory.get("other")?.capture().transactions ?? 0) > 0);
    directory.close();
    for (const app of [gone, other]) app.close();
  });

  test("copies aside are limited per database, also when one name is a prefix of another", () => {
    const dir = tempDir();
    const aside = join(dir, ".replication", "aside");
    mkdirSync(aside, { recursive: true });
    const others = ["db-1-5-abc.db", "db-2.sqlite-7-abc.db"];
    const own = Array.from({ length: REPLICATION_LIMITS.copies_aside + 2 }, (_, i) => `db-${i + 1000}-abc.db`);
    for (const [i, name] of [...others, ...own].entries()) {
      writeFileSync(join(aside, name), "");
      utimesSync(join(aside, name), 1000 + i, 1000 + i);
    }
    const app = new Application(join(dir, "db"));
    const directory = directoryAt(dir);
    const [database] = openAll(directory);
    assert.ok(database);
    directory.aside.copy(database);
    const left = readdirSync(aside);
    assert.deepEqual(
      left.filter((name) => others.includes(name)),
      others,
    );
    assert.equal(left.length, others.length + REPLICATION_LIMITS.copies_aside);
    directory.close();
    app.close();
  });
});
