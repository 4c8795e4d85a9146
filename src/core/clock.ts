import { setTimeout as delay } from "node:timers/promises";

/**
 * The only source of time. `now` is the wall clock, which people see and which may jump; `monotonic` never goes back
 * and measures durations.
 */
export interface Clock {
  /** Wall clock, milliseconds since 1970. */
  now(): number;
  /** Milliseconds since a fixed moment; never jumps. */
  monotonic(): number;
  /** Resolves after `ms`, or rejects with the signal's reason when aborted first. */
  sleep(ms: number, signal?: AbortSignal): Promise<void>;
}

export const systemClock: Clock = {
  now: () => Date.now(),
  monotonic: () => performance.now(),
  sleep: async (ms, signal) => {
    // An unreferenced timer: a sleeping loop must not keep the process alive.
    await delay(ms, undefined, { ref: false, ...(signal ? { signal } : {}) });
  },
};

/** Formats a timestamp for responses. */
export function isoTime(ms: number): string {
  return new Date(ms).toISOString();
}
