/**
 * Memory goes back to the host when there is nothing to do. V8 collects when it needs room, and keeps the room it once
 * needed: after two hundred starts the platform had 140 MB of heap for 50 MB of things, and would have kept it.
 */
import { performance } from "node:perf_hooks";
import { setFlagsFromString } from "node:v8";
import { runInNewContext } from "node:vm";
import type { Clock } from "#core/clock.ts";

export interface IdleParts {
  clock: Clock;
  /** Fraction of time spent working since the last call, from 0 to 1. */
  busy(): number;
  /** Resident bytes, including garbage and free heap. */
  taken(): number;
  collect(): void;
}

const LOOK_MS = 5000;
/** Managing hundreds of machines stays below this; serving requests exceeds it. */
const IDLE = 0.2;
/** Less is not worth the pause of 0.1 to 0.3 s, during which the API waits but proxied traffic continues. */
const WORTH_BYTES = 32 * 1024 * 1024;

/** Never ends, and keeps nothing alive. */
export async function collectWhenIdle({ clock, busy, taken, collect }: IdleParts, signal: AbortSignal): Promise<void> {
  let least = taken();
  busy();
  while (!signal.aborted) {
    await clock.sleep(LOOK_MS, signal).catch(() => {});
    const idle = busy() < IDLE;
    least = Math.min(least, taken());
    if (signal.aborted || !idle || taken() - least < WORTH_BYTES) continue;
    collect();
    least = taken();
  }
}

/** Reads the main thread, which serves requests and machines. */
export function idleParts(clock: Clock): IdleParts {
  let before = performance.eventLoopUtilization();
  return {
    clock,
    busy() {
      const now = performance.eventLoopUtilization();
      const { utilization } = performance.eventLoopUtilization(now, before);
      before = now;
      return utilization;
    },
    taken: () => process.memoryUsage().heapTotal,
    collect: collector(),
  };
}

function collector(): () => void {
  // Enables gc() without a command-line flag.
  setFlagsFromString("--expose-gc");
  const gc = runInNewContext("gc") as (how: { type: "major"; flavor: "last-resort" }) => void;
  setFlagsFromString("--no-expose-gc");
  // The other flavor keeps the young generation at its largest size.
  return () => gc({ type: "major", flavor: "last-resort" });
}
