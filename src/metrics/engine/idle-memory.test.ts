import assert from "node:assert/strict";
import { suite, test } from "node:test";
import { systemClock } from "#core/clock.ts";
import { ChunkSlabs, freeSpareSlabs } from "../tsdb/chunk/slabs.ts";
import { IdleMemory, idleParts } from "./idle-memory.ts";

const MB = 1024 * 1024;

/** A thread whose time and memory are set by hand: collecting leaves `live` bytes and takes 30 ms. */
function thread(live = 20 * MB) {
  const state = { now: 0, taken: live, spent: 0, collected: [] as number[] };
  let timer: { at: number; check: () => void } | undefined;
  const idle = new IdleMemory({
    clock: { monotonic: () => state.now },
    later(ms, check) {
      assert.equal(timer, undefined, "one timer at a time");
      timer = { at: state.now + ms, check };
    },
    taken: () => state.taken,
    spent: () => state.spent,
    async collect() {
      state.collected.push(state.now);
      state.taken = live;
      state.spent += 30;
    },
  });
  /** Advances the clock, check by check; the work of a check ends before the next one. */
  const pass = async (ms: number): Promise<void> => {
    const end = state.now + ms;
    while (timer && timer.at <= end) {
      const { at, check } = timer;
      timer = undefined;
      state.now = at;
      check();
      await new Promise<void>((resolve) => setImmediate(resolve));
    }
    state.now = end;
  };
  return { idle, state, pass };
}

suite("garbage collection of the idle metrics worker", () => {
  test("memory is collected once after work, and not during it", async () => {
    const { idle, state, pass } = thread();
    state.taken = 50 * MB;
    for (let i = 0; i < 20; i++) {
      idle.worked(500);
      await pass(400);
    }
    assert.deepEqual(state.collected, []);
    await pass(10_000);
    assert.deepEqual(state.collected, [8100], "half a second after the last");
  });

  test("memory is collected later after work that is likely to repeat", async () => {
    const { idle, state, pass } = thread();
    state.taken = 50 * MB;
    idle.worked(60_000);
    await pass(1000);
    idle.worked(500);
    await pass(100_000);
    assert.deepEqual(state.collected, [60_000]);
  });

  test("memory is not collected for little garbage, nor for a small fraction", async () => {
    for (const [live, worth] of [
      [20 * MB, 8 * MB],
      [200 * MB, 50 * MB],
    ] as const) {
      const { idle, state, pass } = thread(live);
      for (const more of [worth - 1, worth]) {
        state.taken = live + more;
        idle.worked(500);
        await pass(10_000);
        assert.equal(state.collected.length, more < worth ? 0 : 1, `${more} more than ${live}`);
      }
    }
  });

  test("collecting takes at most a hundredth of the time", async () => {
    const { idle, state, pass } = thread();
    for (let i = 0; i < 100; i++) {
      state.taken = 50 * MB;
      idle.worked(100);
      await pass(100);
    }
    // After 30 ms of collecting there is a pause of 3 s.
    assert.deepEqual(state.collected, [100, 3100, 6100, 9100]);
  });

  test("collecting frees garbage that was counted before", async () => {
    const { taken, collect, spent } = idleParts(systemClock);
    let garbage: unknown = Array.from({ length: 500_000 }, (_, index) => ({ index }));
    const [full, before] = [taken(), spent()];
    garbage = undefined;
    await collect();
    assert.ok(full - taken() > 8 * MB, `${full} and then ${taken()}, without ${String(garbage)}`);
    assert.ok(spent() > before);
  });

  test("cached slabs are released at once", () => {
    const slabs = new ChunkSlabs();
    for (let i = 0; i < 8; i++) slabs.add(new Uint8Array(200 * 1024), 0, 0, 0);
    const { bytes } = slabs;
    slabs.release();
    const live = process.memoryUsage().arrayBuffers;
    freeSpareSlabs();
    assert.equal(bytes, 2 * MB);
    assert.ok(live - process.memoryUsage().arrayBuffers >= bytes);
    assert.ok(new ChunkSlabs().add(new Uint8Array(8), 0, 1, 2) > 0, "new ones are made when they are needed");
  });
});
