import assert from "node:assert/strict";
import { suite, test } from "node:test";
import { systemClock } from "#core/clock.ts";
import { Listening } from "./listening.ts";

suite("listening ports of machines", () => {
  test("concurrent callers share one lookup, and later ones make another", async () => {
    let looks = 0;
    let now = 0;
    const listening = new Listening({
      clock: { ...systemClock, monotonic: () => now },
      read: async () => {
        looks++;
        return [{ proto: "tcp", address: "127.0.0.1:80" }];
      },
    });
    const reasons = await Promise.all([80, 81].map((port) => listening.reason("m1", "tcp", port)));
    assert.match(reasons[0] ?? "", /listens on 127\.0\.0\.1:80 only/);
    assert.match(reasons[1] ?? "", /nothing listens on port 81/);
    assert.equal(looks, 1);
    now = 60_000;
    await listening.reason("m1", "tcp", 80);
    assert.equal(looks, 2);
  });

  test("a machine whose ports cannot be read has no reason", async () => {
    for (const read of [async () => undefined, async () => Promise.reject(new Error("gone"))]) {
      const listening = new Listening({ clock: systemClock, read });
      assert.equal(await listening.reason("m1", "tcp", 80), undefined);
    }
  });
});
