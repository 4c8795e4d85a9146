import type { Clock } from "./clock.ts";

/** Drift between wall and monotonic clock that counts as a jump. */
const JUMP_MS = 60_000;

/**
 * Whether the wall clock can be trusted for deletions. A clock set a year ahead would make all data look expired; so
 * after a jump or a start it must first run evenly for a while.
 */
export class SteadyClock {
  readonly #clock: Clock;
  readonly #steady_ms: number;
  #offset: number;
  #since: number;

  constructor(clock: Clock, steady_ms: number) {
    this.#clock = clock;
    this.#steady_ms = steady_ms;
    this.#since = clock.monotonic();
    this.#offset = clock.now() - this.#since;
  }

  /** Must be called regularly; a jump is seen at the first call after it. */
  isSteady(): boolean {
    const monotonic = this.#clock.monotonic();
    const offset = this.#clock.now() - monotonic;
    if (Math.abs(offset - this.#offset) > JUMP_MS) this.#since = monotonic;
    this.#offset = offset;
    return monotonic - this.#since >= this.#steady_ms;
  }
}
