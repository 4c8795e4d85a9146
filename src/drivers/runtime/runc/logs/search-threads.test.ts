/** Searches in threads: the same lines as without, while the main thread is free, few at a time, and until cancelled. */
import assert from "node:assert/strict";
import { writeFileSync } from "node:fs";
import { suite, type TestContext, test } from "node:test";
import { type Clock, systemClock } from "#core/clock.ts";
import { silentLog } from "#core/log.ts";
import { KEPT_LOGS } from "#core/log-settings.ts";
import type { LogSearch } from "#machines/logs/search.ts";
import { RUNC_LIMITS } from "../limits.ts";
import { AT, logHost, logLine } from "./fixtures.ts";
import { LogKeeper } from "./log-keeper.ts";
import { searchLogs } from "./search.ts";
import { SearchThreads } from "./search-threads.ts";

const MACHINES = ["m1", "m2", "m3", "m4"];
const LINES = 50_000;

/** Machines with an archived log each. */
async function host(t: TestContext) {
  const { layout, machine } = logHost();
  const clock: Clock = systemClock;
  const keeper = new LogKeeper(layout, KEPT_LOGS, { clock, log: silentLog });
  for (const [at, id] of MACHINES.entries()) {
    const lines = Array.from({ length: LINES }, (_, n) =>
      logLine(
        AT + n,
        `{"n":${n * 7919 + at},"level":"${n % 100 === 0 ? "error" : "info"}","msg":"request ${n} served"}`,
      ),
    );
    writeFileSync(machine(id).log, lines.join(""));
  }
  // Rotated, then archived.
  await keeper.look();
  for (const id of MACHINES) writeFileSync(machine(id).log, "");
  await keeper.look();
  const parts = { paths: (id: string) => machine(id), clock, onDamage: keeper.onDamage };
  const threads = new SearchThreads(parts);
  t.after(() => threads.close());
  const search: LogSearch = {
    ids: MACHINES,
    filter: { level: "error", text: "served" },
    order: "newest",
    limit: 10_000,
  };
  return { parts, threads, search };
}

suite("log search threads", () => {
  test("a search takes no time of the main thread, and finds what one there finds", async (t) => {
    const { parts, threads, search } = await host(t);
    const expected = await searchLogs(search, parts);
    assert.ok(expected.lines.length >= (MACHINES.length * LINES) / 100, `${expected.lines.length}`);
    await threads.search({ ...search, limit: 1 });
    const measured = async <T>(work: () => Promise<T>): Promise<{ result: T; share: number }> => {
      const [own, all] = [process.threadCpuUsage(), process.cpuUsage()];
      const result = await work();
      const [main, total] = [process.threadCpuUsage(own), process.cpuUsage(all)];
      return { result, share: (main.user + main.system) / (total.user + total.system) };
    };
    const here = await measured(() => searchLogs(search, parts));
    const there = await measured(() => threads.search(search));
    assert.deepEqual(there.result, expected);
    t.diagnostic(
      `${(here.share * 100).toFixed(0)} % of its processor time in the main thread, now ${(there.share * 100).toFixed(0)} %`,
    );
    assert.ok(here.share > 0.5 && there.share < 0.25, `${here.share}, ${there.share}`);
  });

  test("a cancelled search ends its thread at once, also while it waits, and the next one works", async (t) => {
    const { threads, search } = await host(t);
    const cancel = new AbortController();
    const many = Array.from({ length: RUNC_LIMITS.log_search_threads + 2 }, () =>
      threads.search(search, cancel.signal),
    );
    assert.equal(threads.threads, RUNC_LIMITS.log_search_threads, "the others wait");
    cancel.abort(new Error("the client is gone"));
    for (const { status, reason } of (await Promise.allSettled(many)) as PromiseRejectedResult[])
      assert.deepEqual([status, (reason as Error).message], ["rejected", "the client is gone"]);
    assert.equal(threads.threads, 0);
    assert.equal((await threads.search({ ...search, limit: 5 })).lines.length, 5);
    assert.equal(threads.threads, 1);
  });

  test("searches wait for their turn, share threads, and end with the platform", async (t) => {
    const { threads, search } = await host(t);
    const found = await Promise.all(Array.from({ length: 5 }, () => threads.search({ ...search, limit: 3 })));
    assert.deepEqual(
      found.map(({ lines }) => lines.length),
      [3, 3, 3, 3, 3],
    );
    assert.ok(threads.threads <= RUNC_LIMITS.log_search_threads);
    const last = assert.rejects(threads.search(search), /stopping/);
    await threads.close();
    await last;
    await assert.rejects(threads.search(search), /stopping/);
    assert.equal(threads.threads, 0);
  });
});
