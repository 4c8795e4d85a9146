import type { Clock } from "./clock.ts";
import { MovingClock } from "./moving-clock.ts";

/** A clock that moves only when a test says so, and whose wall time a test may set wrong. */
export interface VirtualClock extends Clock {
  advance(ms: number): Promise<void>;
  jump(ms: number): void;
  readonly sleepers: number;
}

/** `drain` runs everything that is ready; by default two turns of the event loop. */
export function virtualClock(start_ms = 1_700_000_000_000, drain?: () => Promise<void>): VirtualClock {
  return new MovingClock({ start_ms, frozen: true, ...(drain ? { drain } : {}) });
}
