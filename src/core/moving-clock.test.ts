import assert from "node:assert/strict";
import { suite, test } from "node:test";
import { systemClock } from "./clock.ts";
import { MovingClock } from "./moving-clock.ts";

suite("movable clock", () => {
  test("a frozen clock wakes sleepers in order, and only when it is moved", async () => {
    const clock = new MovingClock({ start_ms: 1000, frozen: true });
    const woken: string[] = [];
    const sleep = async (name: string, ms: number): Promise<void> => {
      await clock.sleep(ms);
      woken.push(`${name} at ${clock.now()}`);
      if (name === "b") await sleep("b again", 5);
    };
    void Promise.all([sleep("c", 30), sleep("a", 10), sleep("b", 20), sleep("late", 100)]);
    assert.equal(clock.sleepers, 4);
    await clock.advance(50);
    assert.deepEqual(woken, ["a at 1010", "b at 1020", "b again at 1025", "c at 1030"]);
    assert.equal(clock.now(), 1050);
    clock.jump(-1000);
    assert.equal(clock.now(), 50);
    assert.equal(clock.monotonic(), 50);
    await clock.advance(50);
    assert.equal(clock.sleepers, 0);
  });

  test("a running clock wakes sleepers by itself and never goes back when it is moved", async () => {
    const clock = new MovingClock();
    assert.ok(Math.abs(clock.now() - systemClock.now()) < 60_000);
    const keep = setInterval(() => {}, 1000);
    const before = clock.monotonic();
    await clock.sleep(5);
    clearInterval(keep);
    const after = clock.monotonic();
    assert.ok(after - before >= 5);
    const day = clock.sleep(86_400_000);
    await clock.advance(86_400_000);
    await day;
    assert.ok(clock.monotonic() >= after + 86_400_000);
    clock.freeze();
    const still = clock.now();
    await Promise.all([clock.sleep(0), clock.advance(0)]);
    assert.equal(clock.now(), still);
    clock.flow();
    assert.ok(clock.now() >= still);
  });

  test("an aborted sleep ends and leaves no sleeper behind", async () => {
    const clock = new MovingClock({ frozen: true });
    const stopping = new AbortController();
    const sleep = clock.sleep(10, stopping.signal);
    stopping.abort(new Error("enough"));
    await assert.rejects(sleep, /enough/);
    await assert.rejects(clock.sleep(10, stopping.signal), /enough/);
    assert.equal(clock.sleepers, 0);
  });
});
