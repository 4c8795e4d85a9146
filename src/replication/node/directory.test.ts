import assert from "node:assert/strict";
import { mkdirSync, readdirSync, utimesSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { suite, test } from "node:test";
import { systemClock } from "#core/clock.ts";
import { tempDir } from "../../../test/support.ts";
import { Application, openAll } from "../database/fixtures.ts";
import { REPLICATION_LIMITS } from "../limits.ts";
import { Directory } from "./directory.ts";

function directoryAt(dir: string, clock = systemClock): Directory {
  const nothing = (): void => undefined;
  const options = { dir, node_id: 1n, clock, onTransactions: nothing, onUndone: nothing, log: nothing };
  return new Directory({ ...options, onFailure: (error) => assert.fail(String(error)) });
}

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
