/** Elections, most of them simulated: see the fixtures. */
import assert from "node:assert/strict";
import { availableParallelism } from "node:os";
import { suite, test } from "node:test";
import { runs, seed } from "../../../test/support.ts";
import { Elector } from "./elector.ts";
import { clockOf, remote, SimulatedNode, Store, type Sums, simulateInThread, World } from "./simulation.fixtures.ts";

/** The runs of `count` seeds, in as many threads as there are cores; one seed after the other in each. */
async function simulateRuns(first: number, count: number, margin_ms: number): Promise<Sums> {
  const threads = Math.min(availableParallelism(), count);
  const starts = Array.from({ length: threads + 1 }, (_, i) => first + Math.floor((i * count) / threads));
  const parts = starts.slice(0, -1).map((start, i) => {
    return simulateInThread({ first: start, count: (starts[i + 1] ?? start) - start, margin_ms });
  });
  const sums: Sums = { terms: 0, cuts: 0, stalls: 0, wrong: [] };
  for (const part of await Promise.all(parts)) {
    for (const key of ["terms", "cuts", "stalls"] as const) sums[key] += part[key];
    sums.wrong.push(...part.wrong);
  }
  return sums;
}

suite("simulated elections", () => {
  test("no term and no moment has two primaries, whatever fails (R3)", async (t) => {
    const rounds = runs(15, 6000, 100_000);
    const { wrong, terms, cuts, stalls } = await simulateRuns(seed(t), rounds, 2000);
    assert.deepEqual(wrong, []);
    assert.ok(terms > rounds && cuts > 0 && stalls > 0, "the faults did happen");
    t.diagnostic(`${rounds} runs, ${terms} terms, ${cuts} cuts, ${stalls} stalls`);
  });

  test("control: without the safety margin the simulation finds two primaries", async (t) => {
    const { wrong } = await simulateRuns(seed(t), 200, -3000);
    assert.ok(wrong.length > 0);
  });

  test("a node that acquires by timer and as named successor at once gets one term", async () => {
    const world = new World();
    const store = new Store(world);
    const node = new SimulatedNode("a");
    const elector = new Elector({
      node,
      url: "http://a",
      leases: remote(world, store, { cut: false, delay_ms: () => 20 }),
      clock: clockOf(world, 1, () => 0),
      candidate: true,
      log: () => undefined,
    });
    const stop = new AbortController();
    const running = elector.run(stop.signal);
    // The loop has found no holder by now; another caller may request the lease at any moment of its attempt.
    const attempts: Promise<boolean>[] = [];
    for (let at_ms = 0; at_ms < 200; at_ms += 7) world.at(at_ms, () => attempts.push(elector.stand()));
    await world.runUntil(5000);
    assert.deepEqual(
      await Promise.all(attempts),
      attempts.map(() => true),
    );
    assert.deepEqual([store.given.length, node.term, node.primary], [1, 1, true]);
    stop.abort();
    await world.runUntil(6000);
    await running;
  });
});
