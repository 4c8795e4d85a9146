import assert from "node:assert/strict";
import { suite, test } from "node:test";
import { systemClock } from "#core/clock.ts";
import { randomIds } from "#core/ids.ts";
import { RequestIds } from "./request-ids.ts";

suite("request ids", () => {
  test("request ids are ULIDs of the current time, increasing and unique", () => {
    let now = Date.UTC(2026, 10, 17, 1, 2, 3, 4);
    const clock = { ...systemClock, now: () => now };
    const others = randomIds(clock);
    const [one, another] = [new RequestIds(clock, others), new RequestIds(clock, others)];
    const made: string[] = [];
    for (let i = 0; i < 5000; i++) {
      if (i % 1000 === 999) now += 7_777_777;
      const id = one.next();
      assert.match(id, /^[0-9A-HJKMNP-TV-Z]{26}$/);
      assert.equal(id.slice(0, 10), others.ulid().slice(0, 10));
      made.push(id);
    }
    assert.deepEqual(made.toSorted(), made);
    for (let i = 0; i < 5000; i++) made.push(another.next());
    assert.equal(new Set(made).size, made.length);
  });
});
