import type { Clock } from "#core/clock.ts";

/** Duration of each step of a start, in milliseconds. */
export type Timings = Record<string, number>;

export class Stopwatch {
  readonly #clock: Clock;
  readonly #begin: number;
  #last: number;
  readonly laps: Timings = {};

  constructor(clock: Clock) {
    this.#clock = clock;
    this.#begin = clock.monotonic();
    this.#last = this.#begin;
  }

  /** Records the time since the last lap. */
  lap(name: string): void {
    const now = this.#clock.monotonic();
    this.laps[name] = round((this.laps[name] ?? 0) + now - this.#last);
    this.#last = now;
  }

  end(): Timings {
    return { ...this.laps, total: round(this.#clock.monotonic() - this.#begin) };
  }
}

const round = (ms: number): number => Math.round(ms * 100) / 100;
