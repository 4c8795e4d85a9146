import assert from "node:assert/strict";
import { join } from "node:path";
import { suite, test } from "node:test";
import { tempDir } from "../../../test/support.ts";
import { leaseStoreSuite } from "./lease-store.suite.ts";
import { RowLeases } from "./row-leases.ts";
import { SqliteRows } from "./sqlite-rows.ts";

const TTL_MS = 10_000;

/** A clock for both: what each makes of it is its own. */
function handClock() {
  let now_ms = 1000;
  const clock = { now: () => now_ms, monotonic: () => now_ms, sleep: () => Promise.resolve() };
  const pass = (ms: number): Promise<void> => {
    now_ms += ms;
    return Promise.resolve();
  };
  return { clock, pass };
}

leaseStoreSuite("a row in SQLite", TTL_MS, async () => {
  const path = join(tempDir(), "lease.db");
  const { clock, pass } = handClock();
  const [a, b] = [new RowLeases(new SqliteRows(path), clock), new RowLeases(new SqliteRows(path), clock)];
  return { a, b, pass, close: async () => void (await Promise.all([a.close(), b.close()])) };
});

suite("leases without a common clock", () => {
  test("who has just come waits a whole time to live before it takes the lease of somebody who is gone", async (t) => {
    const path = join(tempDir(), "lease.db");
    const { clock, pass } = handClock();
    const first = new RowLeases(new SqliteRows(path), clock);
    t.after(() => first.close());
    assert.ok(await first.acquire({ node: "one", url: "http://one", term: 0, complete_term: 0 }, TTL_MS));
    await pass(100 * TTL_MS);
    const second = new RowLeases(new SqliteRows(path), clock);
    t.after(() => second.close());
    const candidate = { node: "two", url: "http://two", term: 1, complete_term: 1 };
    assert.equal(await second.acquire(candidate, TTL_MS), undefined);
    await pass(TTL_MS - 1);
    assert.equal(await second.acquire(candidate, TTL_MS), undefined);
    await pass(1);
    assert.equal((await second.acquire(candidate, TTL_MS))?.term, 2);
  });
});
