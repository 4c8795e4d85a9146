import { compact, type FloatHistogram, withHint } from "../../histogram/histogram.ts";
import { detectReset } from "../../histogram/reset.ts";
import { divided, scaled } from "./histogram-sum.ts";
import {
  Accumulator,
  hasChanged,
  haveOneLayout,
  type NativeCall,
  notCounter,
  notGauge,
  type Pair,
  wasReset,
} from "./native-rollups.ts";
import type { NativePoint } from "./rollups.ts";

/** `anchored` and `smoothed` ranges of native histograms: see `boundaries.ts`, which has the same of numbers. */

export interface NativeWindow {
  /** Samples of the range, and of the lookback on one or both sides of it. */
  points: readonly NativePoint[];
  start_ms: number;
  end_ms: number;
  smoothed: boolean;
}

/** The places of the samples that stand for both ends. */
interface Ends {
  first: number;
  last: number;
}

const COMPUTED = new Set(["delta", "increase", "rate"]);

export function boundedNative(call: NativeCall, window: NativeWindow): FloatHistogram | undefined {
  const ends = COMPUTED.has(call.name) ? endsOf(window) : undefined;
  if (!ends) return undefined;
  const isCounter = call.name !== "delta";
  const used = window.points.slice(ends.first, ends.last + 1).map(({ histogram }) => histogram);
  if (!haveOneLayout(call, used)) return undefined;
  if (isCounter && used.some(({ hint }) => hint === "gauge")) notCounter(call);
  const [left, right] = edgesOf(call, window, ends, isCounter);
  if (!isCounter && !(left.hint === "gauge" && right.hint === "gauge")) notGauge(call);
  const change = new Accumulator(call, right);
  change.add(left, -1);
  if (isCounter) for (const lost of lostBetween(window, ends, left, right)) change.add(lost, 1);
  const value = compact(withHint(change.value, "gauge"));
  return call.name === "rate" ? divided(value, (window.end_ms - window.start_ms) / 1000) : value;
}

function endsOf({ points, start_ms, end_ms, smoothed }: NativeWindow): Ends | undefined {
  const newest = points.length - 1;
  const search = (holds: (time: number) => boolean): number => {
    const found = points.findIndex(({ time }) => holds(time));
    return found < 0 ? newest : Math.min(found, newest);
  };
  const first = Math.max(0, search((time) => time > start_ms) - 1);
  const last = smoothed ? search((time) => time >= end_ms) : newest;
  if (timeOf(points, last) <= start_ms || (smoothed && timeOf(points, first) > end_ms)) return undefined;
  return { first, last };
}

const timeOf = (points: readonly NativePoint[], i: number): number => (points[i] as NativePoint).time;
const at = (points: readonly NativePoint[], i: number): FloatHistogram => (points[i] as NativePoint).histogram;

function edgesOf(
  call: NativeCall,
  { points, start_ms, end_ms, smoothed }: NativeWindow,
  { first, last }: Ends,
  isCounter: boolean,
): [FloatHistogram, FloatHistogram] {
  const cutLeft = smoothed && timeOf(points, first) < start_ms;
  const cutRight = smoothed && last > 0 && timeOf(points, last) > end_ms;
  return [
    cutLeft ? between(call, points, first, start_ms, isCounter) : at(points, first),
    cutRight ? between(call, points, last - 1, end_ms, isCounter) : at(points, last),
  ];
}

/** The histogram at a moment between two neighbours. A counter that was reset meanwhile is taken to have begun at 0. */
function between(
  call: NativeCall,
  points: readonly NativePoint[],
  i: number,
  moment_ms: number,
  isCounter: boolean,
): FloatHistogram {
  const [time, next] = [timeOf(points, i), timeOf(points, i + 1)];
  const [before, after] = [at(points, i), at(points, i + 1)];
  if (moment_ms === time) return before;
  if (moment_ms === next) return after;
  const share = (moment_ms - time) / (next - time);
  if (isCounter && detectReset(after, before)) return scaled(after, share);
  const change = new Accumulator(call, after);
  change.add(before, -1);
  const sum = new Accumulator(call, scaled(change.value, share));
  sum.add(before, 1);
  return sum.value;
}

/** What a counter had reached each time before it was reset. */
function lostBetween(
  { points, start_ms, smoothed }: NativeWindow,
  { first, last }: Ends,
  left: FloatHistogram,
  right: FloatHistogram,
): FloatHistogram[] {
  // The value at the left end has begun anew already when it lies behind a reset.
  const isBehind =
    smoothed && timeOf(points, first) < start_ms && detectReset(at(points, first + 1), at(points, first));
  const from = isBehind ? first + 2 : first + 1;
  if (from > last) return [];
  const lost: FloatHistogram[] = [];
  let before = isBehind ? at(points, first + 1) : left;
  for (const now of [...points.slice(from, last).map(({ histogram }) => histogram), right]) {
    if (detectReset(now, before)) lost.push(before);
    before = now;
  }
  return lost;
}

/** The value at a moment: of a sample, between its neighbours, or of the last one before. */
export function smoothedNative(
  call: NativeCall,
  points: readonly NativePoint[],
  moment_ms: number,
): FloatHistogram | undefined {
  const found = points.findIndex(({ time }) => time >= moment_ms);
  const next = points[found];
  if (next?.time === moment_ms) return next.histogram;
  const before = points.at(next ? found - 1 : -1);
  if (!before || found === 0) return undefined;
  if (!next) return withHint(before.histogram, before.histogram.hint === "gauge" ? "gauge" : "unknown");
  if (!haveOneLayout(call, [before.histogram, next.histogram])) return undefined;
  const isCounter = before.histogram.hint !== "gauge" || next.histogram.hint !== "gauge";
  return between(call, points, found - 1, moment_ms, isCounter);
}

const COUNTED: Record<string, Pair> = { changes: hasChanged, resets: wasReset };

interface Sample {
  time: number;
  value: number | FloatHistogram;
}

/** Changes or resets of an anchored range, numbers and histograms together. */
export function countedNative(name: string, samples: readonly Sample[], start_ms: number): number | undefined {
  const counts = COUNTED[name];
  const inOrder = [...samples].sort((a, b) => a.time - b.time);
  const inside = inOrder.findIndex(({ time }) => time > start_ms);
  if (!counts || inside < 0) return undefined;
  const counted = inOrder.slice(Math.max(0, inside - 1)).map(({ value }) => value);
  return counted.slice(1).filter((now, i) => counts(now, counted[i] as number | FloatHistogram)).length;
}
