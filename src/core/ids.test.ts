import assert from "node:assert/strict";
import { suite, test } from "node:test";
import { systemClock } from "./clock.ts";
import { randomIds, repeatableIds } from "./ids.ts";

suite("ids", () => {
  const random = randomIds(systemClock);

  test("random ones have their form and do not come twice", () => {
    const seen = new Set<string>();
    for (let i = 0; i < 5000; i++) {
      const [ulid, short] = [random.ulid(), random.short()];
      assert.match(ulid, /^[0-9A-HJKMNP-TV-Z]{26}$/);
      assert.match(short, /^[0-9a-z]{16}$/);
      seen.add(ulid).add(short);
      assert.ok(random.numeric() > 0);
    }
    assert.equal(seen.size, 10_000);
  });

  test("random bytes are as many as asked for, and fresh", () => {
    for (const count of [1, 32, 4095, 4096, 4097, 10_000]) {
      const [one, two] = [random.bytes(count), random.bytes(count)];
      assert.deepEqual([one.length, two.length], [count, count]);
      if (count >= 32) assert.notDeepEqual(one, two);
      assert.ok(count < 32 || one.some((byte) => byte !== 0), "what is given out is not what was wiped");
    }
  });

  test("repeatable ones repeat, call by call", () => {
    const make = (seed: number): string[] => {
      const ids = repeatableIds(Buffer.alloc(32, seed), 1_700_000_000_000);
      return [ids.ulid(), ids.ulid(), ids.short(), String(ids.numeric())];
    };
    assert.deepEqual(make(1), make(1));
    assert.notDeepEqual(make(1), make(2));
    assert.notEqual(make(1)[0], make(1)[1]);
  });
});
