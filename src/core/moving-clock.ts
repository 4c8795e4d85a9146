import { type Clock, systemClock } from "./clock.ts";

interface Sleeper {
  at: number;
  order: number;
  wake(): void;
}

interface MovingClockOptions {
  /** What the wall clock says at first; the time it is when left out. */
  start_ms?: number;
  /** Stands still until it is moved. */
  frozen?: boolean;
  /** Lets everything that can run, run; by default two turns of the event loop. */
  drain?: () => Promise<void>;
}

/**
 * Time that can be moved: forward at once, for those who test what happens in a week, or not at all. Unless it is
 * frozen it also passes by itself, as fast as the real one, so that whoever waits for a deadline reaches it.
 */
export class MovingClock implements Clock {
  readonly #drain: () => Promise<void>;
  readonly #sleepers = new Set<Sleeper>();
  /** Milliseconds that had passed when real time was last looked at. */
  #elapsed = 0;
  #offset: number;
  #order = 0;
  /** Real time at that look; undefined while frozen. */
  #looked_at: number | undefined;
  #alarm: { at: number; timer: NodeJS.Timeout } | undefined;

  constructor({ start_ms = systemClock.now(), frozen = false, drain = turns }: MovingClockOptions = {}) {
    this.#offset = start_ms;
    this.#drain = drain;
    if (!frozen) this.flow();
  }

  now(): number {
    // Whole milliseconds, as every wall clock tells them.
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

  /** Moves on by `ms`, waking sleepers in order; what they set off is finished before the next one wakes. */
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

  /** Puts the wall clock forward or back; nobody who sleeps notices. */
  jump(ms: number): void {
    this.#offset += ms;
  }

  /** Time stands still from now on. */
  freeze(): void {
    this.#elapsed = this.monotonic();
    this.#looked_at = undefined;
    this.#arm();
  }

  /** Time passes by itself from now on. */
  flow(): void {
    this.#elapsed = this.monotonic();
    this.#looked_at = systemClock.monotonic();
    this.#arm();
  }

  #reach(at: number): void {
    // Real time may have come further by itself.
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

  /** One real timer for whoever wakes first, while time passes by itself. */
  #arm(): void {
    const first = this.#looked_at === undefined ? undefined : this.#first();
    if (first?.at === this.#alarm?.at) return;
    clearTimeout(this.#alarm?.timer);
    this.#alarm = undefined;
    if (!first) return;
    const left = Math.min(MAX_TIMER_MS, Math.ceil(first.at - this.monotonic()));
    // Unreferenced, like the real clock's: a sleeping loop must never hold the process open.
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

/** A timer of the runtime holds 31 bits of milliseconds; a longer sleep is taken in steps. */
const MAX_TIMER_MS = 2 ** 31 - 1;

async function turns(): Promise<void> {
  for (let i = 0; i < 2; i++) await new Promise((resolve) => setImmediate(resolve));
}
