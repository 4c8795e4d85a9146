import type { Clock } from "./clock.ts";

interface Sleeper {
  at: number;
  order: number;
  wake(): void;
}

/** Time that moves only when a test says so, and a wall clock that a test may put wrong. */
export interface VirtualClock extends Clock {
  /** Moves on by `ms`, waking sleepers in order; what they set off is finished before the next one wakes. */
  advance(ms: number): Promise<void>;
  /** Puts the wall clock forward or back; the monotonic one does not notice. */
  jump(ms: number): void;
  readonly sleepers: number;
}

/** `drain` lets everything that can run, run; by default two turns of the event loop. */
export function virtualClock(start = 1_700_000_000_000, drain: () => Promise<void> = turns): VirtualClock {
  let elapsed = 0;
  let offset = start;
  let order = 0;
  const sleepers = new Set<Sleeper>();
  const next = (): Sleeper | undefined => {
    let first: Sleeper | undefined;
    for (const one of sleepers) {
      if (!first || one.at < first.at || (one.at === first.at && one.order < first.order)) first = one;
    }
    return first;
  };
  return {
    now: () => offset + elapsed,
    monotonic: () => elapsed,
    sleep(ms, signal) {
      return new Promise((resolve, reject) => {
        const sleeper: Sleeper = {
          at: elapsed + Math.max(0, ms),
          order: order++,
          wake() {
            signal?.removeEventListener("abort", abort);
            sleepers.delete(sleeper);
            resolve();
          },
        };
        const abort = (): void => {
          sleepers.delete(sleeper);
          reject(signal?.reason as Error);
        };
        if (signal?.aborted) return abort();
        signal?.addEventListener("abort", abort, { once: true });
        sleepers.add(sleeper);
      });
    },
    async advance(ms) {
      const until = elapsed + ms;
      await drain();
      for (let first = next(); first && first.at <= until; first = next()) {
        elapsed = Math.max(elapsed, first.at);
        first.wake();
        await drain();
      }
      elapsed = until;
    },
    jump(ms) {
      offset += ms;
    },
    get sleepers() {
      return sleepers.size;
    },
  };
}

async function turns(): Promise<void> {
  for (let i = 0; i < 2; i++) await new Promise((resolve) => setImmediate(resolve));
}
