import type { Clock } from "#core/clock.ts";
import { fail } from "#core/errors.ts";

/** Maximum number of buckets; the oldest is dropped for a new one, which only ever favours its owner. */
const BUCKETS = 10_000;

/** Token bucket: a number of requests per second for each API token, with a burst of one second. */
export class RateLimiter {
  readonly #per_second: number;
  /** The error message past the limit. */
  readonly #bound: string;
  readonly #clock: Clock;
  readonly #buckets = new Map<string, { left: number; at: number }>();

  constructor(
    per_second: number,
    clock: Clock,
    bound = `this token may make ${per_second} requests a second (setting rate_limit)`,
  ) {
    this.#bound = bound;
    this.#per_second = per_second;
    this.#clock = clock;
  }

  /** Counts one request of `owner`; fails with `rate_limited` when none is left. Returns the headers to send. */
  acquire(owner: string): Record<string, string> {
    const at = this.#clock.monotonic();
    const before = this.#buckets.get(owner) ?? { left: this.#per_second, at };
    const left = Math.min(this.#per_second, before.left + ((at - before.at) / 1000) * this.#per_second);
    this.#buckets.delete(owner);
    this.#buckets.set(owner, { left: left < 1 ? left : left - 1, at });
    if (this.#buckets.size > BUCKETS) {
      const [oldest] = this.#buckets.keys();
      if (oldest !== undefined) this.#buckets.delete(oldest);
    }
    const headers = {
      "x-ratelimit-limit": String(this.#per_second),
      "x-ratelimit-remaining": String(Math.max(0, Math.floor(left - 1))),
    };
    if (left >= 1) return headers;
    const wait_s = Math.ceil((1 - left) / this.#per_second);
    fail("rate_limited", this.#bound, {
      retry_after_s: wait_s,
      headers,
    });
  }
}
