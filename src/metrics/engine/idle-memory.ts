/**
 * Returns the worker's memory to the host while it has no requests. V8 keeps the heap it once needed, with the garbage
 * of past reads and writes, until it needs the space: after a load of millions of samples that was a tenth of the
 * whole program.
 */
import { Session } from "node:inspector";
import { getHeapStatistics } from "node:v8";
import type { Clock } from "#core/clock.ts";

export interface IdleParts {
  clock: Pick<Clock, "monotonic">;
  /** Calls back once after this many milliseconds. */
  later(ms: number, check: () => void): void;
  /** Resident bytes, including garbage and free heap. */
  taken(): number;
  collect(): Promise<void>;
  /** CPU time in milliseconds: on a busy host wall time says little. */
  spent(): number;
}

/** Less, or less than a quarter, is not worth the pause of 30 ms, which grows with the live heap. */
const WORTH_BYTES = 8 * 1024 * 1024;
const WORTH_PART = 1 / 4;
/** Maximum fraction of time spent collecting. */
const TIME_PART = 1 / 100;

export class IdleMemory {
  readonly #parts: IdleParts;
  /** Lowest resident size seen. */
  #least: number;
  /** Nothing is done before this time. */
  #rest_ms = 0;
  #looking = false;

  constructor(parts: IdleParts) {
    this.#parts = parts;
    this.#least = parts.taken();
  }

  /** Work was done; the thread counts as idle `quiet_ms` from now without further work. */
  worked(quiet_ms: number): void {
    this.#rest_ms = Math.max(this.#rest_ms, this.#parts.clock.monotonic() + quiet_ms);
    if (this.#looking) return;
    this.#looking = true;
    this.#parts.later(quiet_ms, () => void this.#look());
  }

  async #look(): Promise<void> {
    const { clock, later, taken, collect, spent } = this.#parts;
    const left = this.#rest_ms - clock.monotonic();
    if (left > 0) {
      later(left, () => void this.#look());
      return;
    }
    this.#least = Math.min(this.#least, taken());
    if (taken() - this.#least >= Math.max(WORTH_BYTES, this.#least * WORTH_PART)) {
      const before = spent();
      await collect();
      this.#least = taken();
      this.#rest_ms = Math.max(this.#rest_ms, clock.monotonic() + (spent() - before) / TIME_PART);
    }
    this.#looking = false;
  }
}

/** For the calling thread. */
export function idleParts(clock: Clock): IdleParts {
  return {
    clock,
    later: (ms, check) => void setTimeout(check, ms).unref(),
    taken() {
      const { total_heap_size, external_memory } = getHeapStatistics();
      return total_heap_size + external_memory;
    },
    collect,
    spent() {
      const { user, system } = process.threadCpuUsage();
      return (user + system) / 1000;
    },
  };
}

/** Through the inspector. The usual flag affects all threads, and discards code compiled while it is set. */
async function collect(): Promise<void> {
  const session = new Session();
  session.connect();
  try {
    // An error means that this Node does not support it; then the memory stays.
    await new Promise<void>((resolve) => session.post("HeapProfiler.collectGarbage", () => resolve()));
  } finally {
    session.disconnect();
  }
}
