import type { Columns } from "../../source.ts";
import type { Batch } from "./batches.ts";
import type { Steps } from "./steps.ts";

/**
 * What a rollup function sees at one step: the samples `from` up to `to` (not included) of the series, and what lies
 * around them. One object is used again for all steps and series, so a kernel must not keep it.
 */
export interface Window {
  values: Float64Array;
  times: Float64Array;
  from: number;
  to: number;
  /** The last sample before the window if it is recent enough to belong to the same run of samples, else NaN. */
  previous: number;
  previousTime: number;
  /** The last sample before the window and the first after it, however far away; NaN when there is none. */
  realPrevious: number;
  realNext: number;
  /** The moment the window ends, and how long it is, in milliseconds. */
  now: number;
  length: number;
  /** Which step this is. */
  index: number;
}

export type Kernel = (w: Window) => number;

const GAPS = 20;
const gaps = new Float64Array(GAPS);

/** How often the series usually has a sample: the 0.6 quantile of its newest gaps. */
function usualGap(samples: Columns, fallback: number): number {
  const { timestamps, length } = samples;
  if (length < 2) return fallback;
  const first = Math.max(1, length - GAPS);
  const count = length - first;
  for (let i = 0; i < count; i++) gaps[i] = (timestamps[first + i] as number) - (timestamps[first + i - 1] as number);
  const sorted = gaps.subarray(0, count).sort();
  const rank = 0.6 * (count - 1);
  const low = Math.floor(rank);
  const weight = rank - low;
  const gap = (sorted[low] as number) * (1 - weight) + (sorted[Math.min(low + 1, count - 1)] as number) * weight;
  return gap > 0 ? Math.trunc(gap) : fallback;
}

/** Short gaps jitter more in proportion, so they get more room: [up to ms, times]. */
const ROOM: readonly [number, number][] = [
  [2_000, 5],
  [4_000, 3],
  [8_000, 2],
  [16_000, 1.5],
  [32_000, 1.25],
  [Number.POSITIVE_INFINITY, 1.125],
];

/** The longest gap after which the sample before still counts as the previous one. */
function longestGap(samples: Columns, steps: Steps): number {
  if (steps.instant) return steps.step_ms;
  const gap = usualGap(samples, steps.step_ms);
  const factor = ROOM.find(([upTo]) => gap <= upTo)?.[1] ?? 1;
  return Math.trunc(gap * factor);
}

const window: Window = {
  values: new Float64Array(0),
  times: new Float64Array(0),
  from: 0,
  to: 0,
  previous: Number.NaN,
  previousTime: 0,
  realPrevious: Number.NaN,
  realNext: Number.NaN,
  now: 0,
  length: 0,
  index: 0,
};

/** The length of the window: as given, or the step, or long enough to see two samples. */
function windowLength(steps: Steps, room: number): number {
  if (steps.window_ms > 0) return steps.window_ms;
  return steps.adjusts ? Math.max(steps.step_ms, room) : steps.step_ms;
}

/**
 * Runs the kernel at every step. Windows are open on the left: (now - length, now]. Both ends only move forward, so
 * the whole costs the samples plus the steps, whatever the window.
 */
export function rollUp(samples: Columns, steps: Steps, kernel: Kernel, into: Float64Array): void {
  const { timestamps, values, length } = samples;
  const room = longestGap(samples, steps);
  const w = window;
  w.values = values;
  w.times = timestamps;
  w.length = windowLength(steps, room);
  let from = 0;
  let to = 0;
  for (let step = 0; step < steps.points; step++) {
    const now = steps.start_ms + step * steps.step_ms;
    const start = now - w.length;
    while (from < length && (timestamps[from] as number) <= start) from++;
    if (to < from) to = from;
    while (to < length && (timestamps[to] as number) <= now) to++;
    w.from = from;
    w.to = to;
    w.now = now;
    w.index = step;
    w.realNext = to < length ? (values[to] as number) : Number.NaN;
    lookBack(w, from, length, start - room);
    into[step] = kernel(w);
  }
}

/** The sample before the window, which also counts as previous when it is newer than `oldest`. */
function lookBack(w: Window, from: number, length: number, oldest: number): void {
  w.previous = Number.NaN;
  w.previousTime = oldest;
  w.realPrevious = Number.NaN;
  if (from === 0) return;
  w.realPrevious = w.values[from - 1] as number;
  const time = w.times[from - 1] as number;
  if (from === length || time <= oldest) return;
  w.previous = w.realPrevious;
  w.previousTime = time;
}

export function rollUpAtOnce(samples: Columns, steps: Steps, batch: Batch, into: Float64Array): void {
  const room = longestGap(samples, steps);
  batch(samples, steps, windowLength(steps, room), room, into);
}
