import assert from "node:assert/strict";
import { join } from "node:path";
import { suite, test } from "node:test";
import { Worker } from "node:worker_threads";
import { tempDir } from "../../../test/support.ts";
import { leaseStoreSuite } from "./lease-store.suite.ts";
import { RowLeases } from "./row-leases.ts";
import { SqliteRows } from "./sqlite-rows.ts";

const TTL_MS = 10_000;

/** A clock for both, from which each derives its own. */
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
  test("a new observer waits a whole ttl before it takes over an abandoned lease", async (t) => {
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

const ROUNDS = 50;

/** A thread that opens one new file after the other, each at the very moment the other thread does. */
function opener(dir: string, turns: SharedArrayBuffer): Promise<string[]> {
  const file = new URL("./sqlite-rows.ts", import.meta.url).href;
  const worker = new Worker(
    `const { dir, turns, rounds, file } = require("node:worker_threads").workerData;
    const count = new Int32Array(turns);
    const problems = [];
    import(file).then(async ({ SqliteRows }) => {
      for (let round = 0; round < rounds; round++) {
        Atomics.add(count, 0, 1);
        while (Atomics.load(count, 0) < 2 * (round + 1));
        try {
          await new SqliteRows(dir + "/" + round).close();
        } catch (thrown) {
          problems.push(String(thrown));
        }
      }
      require("node:worker_threads").parentPort.postMessage(problems);
    });`,
    { eval: true, workerData: { dir, turns, rounds: ROUNDS, file } },
  );
  return new Promise((resolve, reject) => {
    worker.on("message", resolve);
    worker.on("error", reject);
  });
}

suite("lease in a new file", () => {
  test("nodes that create the lease file concurrently all open it", async () => {
    const dir = tempDir();
    const turns = new SharedArrayBuffer(4);
    assert.deepEqual(await Promise.all([opener(dir, turns), opener(dir, turns)]), [[], []]);
  });
});
