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
  /** How much of the time since it was last asked was spent working, from 0 to 1. */
  busy(): number;
  /** Bytes that are taken from the host, garbage and empty room included. */
  taken(): number;
  collect(): void;
}

const LOOK_MS = 5000;
/** Looking after hundreds of machines takes less of the time than this; requests in a row take more. */
const IDLE = 0.2;
/** Less is not worth the pause: 0.1 to 0.3 s, in which traffic to machines goes on and the API waits. */
const WORTH_BYTES = 32 * 1024 * 1024;

/** Never ends, and holds nothing open. */
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

/** Those of this process, or rather of its first thread: that is where requests and machines are. */
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
  // The way to have it without a flag on the command line, which not everybody who starts us would set.
  setFlagsFromString("--expose-gc");
  const gc = runInNewContext("gc") as (how: { type: "major"; flavor: "last-resort" }) => void;
  setFlagsFromString("--no-expose-gc");
  // The other flavor keeps the room for young objects as large as it ever was.
  return () => gc({ type: "major", flavor: "last-resort" });
}
