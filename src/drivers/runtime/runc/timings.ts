import type { Clock } from "#core/clock.ts";

/** Where the time of one start went, in milliseconds by the name of the step. */
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

  /** The time since the last lap was this. */
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
