import assert from "node:assert/strict";
import { suite, test } from "node:test";
import { systemClock } from "./clock.ts";
import { randomIds, repeatableIds } from "./ids.ts";

suite("ids", () => {
  const random = randomIds(systemClock);

  test("random ids have their format and do not repeat", () => {
    const seen = new Set<string>();
    for (let i = 0; i < 5000; i++) {
      const [ulid, short] = [random.ulid(), random.short()];
      assert.match(ulid, /^[0-9A-HJKMNP-TV-Z]{26}$/);
      assert.match(short, /^[0-9a-z]{16}$/);
      seen.add(ulid).add(short);
      const number = random.numeric();
      assert.ok(Number.isInteger(number) && number > 0 && number < 2 ** 31);
    }
    assert.equal(seen.size, 10_000);
  });

  test("random bytes have the requested length and are not reused", () => {
    for (const count of [1, 32, 4095, 4096, 4097, 10_000]) {
      const [one, two] = [random.bytes(count), random.bytes(count)];
      assert.deepEqual([one.length, two.length], [count, count]);
      if (count >= 32) assert.notDeepEqual(one, two);
      assert.ok(count < 32 || one.some((byte) => byte !== 0), "what is given out is not what was wiped");
    }
  });

  test("ids from the same seed repeat, call by call", () => {
    const make = (seed: number): string[] => {
      const ids = repeatableIds(Buffer.alloc(32, seed), 1_700_000_000_000);
      const bytes = Buffer.from(ids.bytes(100)).toString("hex");
      return [ids.ulid(), ids.ulid(), ids.short(), String(ids.numeric()), bytes];
    };
    assert.deepEqual(make(1), make(1));
    assert.equal(new Set([...make(1), ...make(2)]).size, 10, "and nothing of it with another seed");
  });

  test("ULIDs sort by their time", () => {
    const at = (ms: number): string => repeatableIds(Buffer.from("s"), ms).ulid();
    assert.ok(at(1) < at(2) && at(1_700_000_000_000) < at(1_700_000_000_001));
  });
});
