import { setTimeout as delay } from "node:timers/promises";

/**
 * The one place time is read. Two clocks, because they answer different questions: `now` is the wall clock,
 * for what people see and it may jump; `monotonic` only ever goes forward and measures how long.
 */
export interface Clock {
  /** Wall clock, milliseconds since 1970. */
  now(): number;
  /** Milliseconds since some fixed moment; never jumps. */
  monotonic(): number;
  /** Resolves after `ms`, or rejects with the signal's reason when aborted first. */
  sleep(ms: number, signal?: AbortSignal): Promise<void>;
}

export const systemClock: Clock = {
  now: () => Date.now(),
  monotonic: () => performance.now(),
  sleep: async (ms, signal) => {
    // An unreferenced timer: a sleeping loop must never hold the process open.
    await delay(ms, undefined, { ref: false, ...(signal ? { signal } : {}) });
  },
};

/** Timestamp as it goes over the wire. */
export function isoTime(ms: number): string {
  return new Date(ms).toISOString();
}
