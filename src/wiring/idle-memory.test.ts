import assert from "node:assert/strict";
import { suite, test } from "node:test";
import type { Clock } from "#core/clock.ts";
import { collectWhenIdle, idleParts } from "./idle-memory.ts";

const MB = 1024 * 1024;

/** Runs the check for each sample in turn, and returns after which of them it collected. */
async function looked(looks: readonly { busy: number; taken: number }[], begin: number): Promise<number[]> {
  const stop = new AbortController();
  const collected: number[] = [];
  let [at, taken] = [-1, begin];
  const clock: Clock = {
    now: () => 0,
    monotonic: () => 0,
    async sleep() {
      at++;
      taken = looks[at]?.taken ?? taken;
      if (at >= looks.length) stop.abort();
    },
  };
  const collect = (): void => {
    collected.push(at);
    taken = begin;
  };
  await collectWhenIdle({ clock, busy: () => looks[at]?.busy ?? 0, taken: () => taken, collect }, stop.signal);
  return collected;
}

suite("garbage collection of an idle process", () => {
  test("memory is collected once after work, not during it, and not for little garbage", async () => {
    const during = { busy: 0.9, taken: 90 * MB };
    const idle = { busy: 0.01, taken: 90 * MB };
    assert.deepEqual(await looked([during, during, idle], 30 * MB), [2]);
    assert.deepEqual(await looked([{ busy: 0.01, taken: 61 * MB }], 30 * MB), []);
    assert.deepEqual(await looked([idle, { busy: 0.01, taken: 31 * MB }, idle], 30 * MB), [0, 2]);
  });

  test("collecting frees garbage, and utilization is measured as a fraction", () => {
    const { busy, taken, collect } = idleParts({ now: () => 0, monotonic: () => 0, sleep: async () => {} });
    let garbage: unknown = Array.from({ length: 500_000 }, (_, index) => ({ index }));
    const full = taken();
    garbage = undefined;
    collect();
    assert.ok(full - taken() > 8 * MB, `${full} and then ${taken()}, without ${String(garbage)}`);
    assert.ok(busy() >= 0 && busy() <= 1);
  });
});
