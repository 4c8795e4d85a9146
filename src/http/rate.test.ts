import assert from "node:assert/strict";
import { suite, test } from "node:test";
import { ApiError } from "#core/errors.ts";
import { virtualClock } from "#core/fixtures.ts";
import { RateLimiter } from "./rate.ts";

/** The remaining requests after each request, and the wait once there are none. */
function taken(limiter: RateLimiter, owner: string, times: number): (string | undefined | number)[] {
  return Array.from({ length: times }, () => {
    try {
      return limiter.acquire(owner)["x-ratelimit-remaining"];
    } catch (thrown) {
      assert.ok(thrown instanceof ApiError && thrown.code === "rate_limited");
      assert.equal(thrown.extras.headers?.["x-ratelimit-remaining"], "0");
      return thrown.extras.retry_after_s;
    }
  });
}

suite("rate limiter", () => {
  test("a burst of one second's requests is allowed, then the refill, per owner", async () => {
    const clock = virtualClock();
    const limiter = new RateLimiter(4, clock);
    assert.deepEqual(taken(limiter, "a", 6), ["3", "2", "1", "0", 1, 1]);
    assert.deepEqual(taken(limiter, "b", 1), ["3"], "another owner has its own");
    await clock.advance(249);
    assert.deepEqual(taken(limiter, "a", 1), [1], "not a whole one yet");
    await clock.advance(1);
    assert.deepEqual(taken(limiter, "a", 2), ["0", 1]);
    await clock.advance(500);
    assert.deepEqual(taken(limiter, "a", 3), ["1", "0", 1]);
    await clock.advance(3_600_000);
    assert.deepEqual(taken(limiter, "a", 5), ["3", "2", "1", "0", 1], "an hour saves up no more than a second does");
  });

  test("a rate below one per second works, and the limiter uses its own message", () => {
    const clock = virtualClock();
    const slow = new RateLimiter(1, clock, "one is enough");
    assert.equal(slow.acquire("a")["x-ratelimit-limit"], "1");
    assert.throws(() => slow.acquire("a"), { message: "one is enough" });
    assert.deepEqual(taken(new RateLimiter(0.25, clock), "a", 1), [3]);
    assert.throws(() => new RateLimiter(0, clock).acquire("a"), /may make 0 requests a second \(setting rate_limit\)/);
  });

  test("when there are too many owners, the one idle longest starts with a full bucket", () => {
    const limiter = new RateLimiter(2, virtualClock());
    const few = ["first", "second"];
    for (const owner of few) assert.deepEqual(taken(limiter, owner, 2), ["1", "0"]);
    assert.deepEqual(taken(limiter, "first", 1), [1], "it was here just now, so it is the youngest");
    for (let i = 0; i < 9_998; i++) limiter.acquire(`other ${i}`);
    assert.deepEqual(taken(limiter, "second", 1), [1], "ten thousand are remembered");
    limiter.acquire("one more");
    assert.deepEqual(taken(limiter, "first", 1), ["1"]);
    assert.deepEqual(taken(limiter, "second", 1), [1]);
  });
});
