import { type Clock, systemClock } from "./clock.ts";

interface Sleeper {
  at: number;
  order: number;
  wake(): void;
}

interface MovingClockOptions {
  /** Initial wall time; the current time when absent. */
  start_ms?: number;
  /** Does not advance by itself. */
  frozen?: boolean;
  /** Runs everything that is ready; by default two turns of the event loop. */
  drain?: () => Promise<void>;
}

/**
 * A clock that can be moved forward, for tests of what happens in a week. Unless frozen it also advances in real time,
 * so that deadlines are reached.
 */
export class MovingClock implements Clock {
  readonly #drain: () => Promise<void>;
  readonly #sleepers = new Set<Sleeper>();
  /** Elapsed milliseconds when real time was last read. */
  #elapsed = 0;
  #offset: number;
  #order = 0;
  /** Real time at that reading; undefined while frozen. */
  #looked_at: number | undefined;
  #alarm: { at: number; timer: NodeJS.Timeout } | undefined;

  constructor({ start_ms = systemClock.now(), frozen = false, drain = turns }: MovingClockOptions = {}) {
    this.#offset = start_ms;
    this.#drain = drain;
    if (!frozen) this.flow();
  }

  now(): number {
    // Whole milliseconds, like the real wall clock.
    return Math.floor(this.#offset + this.monotonic());
  }

  monotonic(): number {
    return this.#looked_at === undefined ? this.#elapsed : this.#elapsed + systemClock.monotonic() - this.#looked_at;
  }

  get sleepers(): number {
    return this.#sleepers.size;
  }

  get frozen(): boolean {
    return this.#looked_at === undefined;
  }

  sleep(ms: number, signal?: AbortSignal): Promise<void> {
    return new Promise((resolve, reject) => {
      const sleeper: Sleeper = {
        at: this.monotonic() + Math.max(0, ms),
        order: this.#order++,
        wake: () => {
          signal?.removeEventListener("abort", abort);
          this.#sleepers.delete(sleeper);
          resolve();
        },
      };
      const abort = (): void => {
        this.#sleepers.delete(sleeper);
        reject(signal?.reason as Error);
      };
      if (signal?.aborted) return abort();
      signal?.addEventListener("abort", abort, { once: true });
      this.#sleepers.add(sleeper);
      if (!this.#alarm || sleeper.at < this.#alarm.at) this.#arm();
    });
  }

  /** Advances by `ms`, waking sleepers in order; what they cause completes before the next one wakes. */
  async advance(ms: number): Promise<void> {
    const until = this.monotonic() + ms;
    await this.#drain();
    for (let first = this.#first(); first && first.at <= until; first = this.#first()) {
      this.#reach(first.at);
      first.wake();
      await this.#drain();
    }
    this.#reach(until);
    this.#arm();
  }

  /** Shifts the wall clock; sleepers are not affected. */
  jump(ms: number): void {
    this.#offset += ms;
  }

  /** Stops the clock. */
  freeze(): void {
    this.#elapsed = this.monotonic();
    this.#looked_at = undefined;
    this.#arm();
  }

  /** Lets the clock advance in real time. */
  flow(): void {
    this.#elapsed = this.monotonic();
    this.#looked_at = systemClock.monotonic();
    this.#arm();
  }

  #reach(at: number): void {
    // Real time may have advanced further.
    if (at <= this.monotonic()) return;
    this.#elapsed = at;
    if (this.#looked_at !== undefined) this.#looked_at = systemClock.monotonic();
  }

  #first(): Sleeper | undefined {
    let first: Sleeper | undefined;
    for (const one of this.#sleepers) {
      if (!first || one.at < first.at || (one.at === first.at && one.order < first.order)) first = one;
    }
    return first;
  }

  /** One real timer for the next sleeper, while not frozen. */
  #arm(): void {
    const first = this.#looked_at === undefined ? undefined : this.#first();
    if (first?.at === this.#alarm?.at) return;
    clearTimeout(this.#alarm?.timer);
    this.#alarm = undefined;
    if (!first) return;
    const left = Math.min(MAX_TIMER_MS, Math.ceil(first.at - this.monotonic()));
    // Unreferenced: a sleeping loop must not keep the process alive.
    const timer = setTimeout(() => this.#ring(), left).unref();
    this.#alarm = { at: first.at, timer };
  }

  #ring(): void {
    this.#alarm = undefined;
    const now = this.monotonic();
    for (let first = this.#first(); first && first.at <= now; first = this.#first()) first.wake();
    this.#arm();
  }
}

/** Runtime timers hold 31 bits of milliseconds; longer sleeps are split. */
const MAX_TIMER_MS = 2 ** 31 - 1;

async function turns(): Promise<void> {
  for (let i = 0; i < 2; i++) await new Promise((resolve) => setImmediate(resolve));
}
