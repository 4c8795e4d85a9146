import type { RollupExpr } from "../ast.ts";
import { executionError } from "../errors.ts";

/**
 * `anchored` and `smoothed`: what a range begins and ends with is a value at exactly those moments. An anchored range
 * takes the last sample before each, a smoothed one the straight line between the samples around each.
 */
export type Boundary = NonNullable<RollupExpr["boundary"]>;

/** Samples of one series; those from `from` to before `to` count, the lookback on one or both sides included. */
export interface Extended {
  values: Float64Array;
  times: Float64Array;
  from: number;
  to: number;
  start_ms: number;
  end_ms: number;
}

type BoundaryFunction = (e: Extended, smoothed: boolean) => number | undefined;

const COMPUTED: Record<string, BoundaryFunction> = {
  rate: (e, smoothed) => divided(change(e, smoothed, true), (e.end_ms - e.start_ms) / 1000),
  increase: (e, smoothed) => change(e, smoothed, true),
  delta: (e, smoothed) => change(e, smoothed, false),
};
const COUNTED: Record<string, BoundaryFunction> = {
  changes: (e) => pairs(e, (now, before) => now !== before && !(Number.isNaN(now) && Number.isNaN(before))),
  resets: (e) => pairs(e, (now, before) => now < before),
};
const FUNCTIONS: Record<Boundary, Record<string, BoundaryFunction>> = {
  anchored: { ...COMPUTED, ...COUNTED },
  smoothed: COMPUTED,
};

/** The function with such a range, or an error that says which functions there are. */
export function boundaryFunction(name: string, boundary: Boundary): (e: Extended) => number | undefined {
  const known = FUNCTIONS[boundary];
  const found = Object.hasOwn(known, name) ? known[name] : undefined;
  const names = Object.keys(known).sort().join(", ");
  if (!found) throw executionError(`${boundary} modifier can only be used with: ${names} - not with ${name}`);
  return (e) => found(e, boundary === "smoothed");
}

/** How far a window reaches beyond its range on each side. */
export const reach = (
  boundary: Boundary | undefined,
  lookback_ms: number,
): { before_ms: number; after_ms: number } => ({
  before_ms: boundary ? lookback_ms : 0,
  after_ms: boundary === "smoothed" ? lookback_ms : 0,
});

const divided = (value: number | undefined, by: number): number | undefined =>
  value === undefined ? undefined : value / by;

/** The first place from `from` to before `to` whose time is past, or at, the limit; `to` when there is none. */
function search(times: Float64Array, from: number, to: number, limit_ms: number, inclusive: boolean): number {
  for (let i = from; i < to; i++) {
    const time = times[i] as number;
    if (time > limit_ms || (inclusive && time === limit_ms)) return i;
  }
  return to;
}

/** The places of the samples that stand for both ends; undefined when nothing is in the range. */
function ends({ times, from, to, start_ms, end_ms }: Extended, smoothed: boolean): [number, number] | undefined {
  const newest = to - 1;
  const first = Math.max(from, search(times, from, newest, start_ms, false) - 1);
  const last = smoothed ? search(times, from, newest, end_ms, true) : newest;
  if ((times[last] as number) <= start_ms) return undefined;
  return smoothed && (times[first] as number) > end_ms ? undefined : [first, last];
}

/** The value at a moment between two neighbours. A counter that fell meanwhile is taken to have begun at 0. */
function between({ values, times }: Extended, i: number, moment_ms: number, counter: boolean): number {
  const [time, next] = [times[i] as number, times[i + 1] as number];
  const value = values[i + 1] as number;
  const before = counter && value < (values[i] as number) ? 0 : (values[i] as number);
  return before + ((value - before) * (moment_ms - time)) / (next - time);
}

function edges(e: Extended, first: number, last: number, smoothed: boolean, counter: boolean): [number, number] {
  const { values, times, from, start_ms, end_ms } = e;
  const cutLeft = smoothed && (times[first] as number) < start_ms;
  const cutRight = smoothed && last > from && (times[last] as number) > end_ms;
  return [
    cutLeft ? between(e, first, start_ms, counter) : (values[first] as number),
    cutRight ? between(e, last - 1, end_ms, counter) : (values[last] as number),
  ];
}

/** The places of the samples that are within the range, apart from its ends. */
function inside({ times, start_ms, end_ms }: Extended, first: number, last: number): [number, number] {
  return [
    (times[first] as number) <= start_ms ? first + 1 : first,
    (times[last] as number) >= end_ms ? last - 1 : last,
  ];
}

function change(e: Extended, smoothed: boolean, counter: boolean): number | undefined {
  const found = ends(e, smoothed);
  if (!found) return undefined;
  const [left, right] = edges(e, ...found, smoothed, counter);
  return right - left + (counter ? lost(e, left, right, ...inside(e, ...found)) : 0);
}

/** What a counter had reached each time before it fell. */
function lost({ values }: Extended, left: number, right: number, first: number, last: number): number {
  let [sum, before] = [0, left];
  for (let i = first; i <= last; i++) {
    const value = values[i] as number;
    if (value < before) sum += before;
    before = value;
  }
  return right < before ? sum + before : sum;
}

/** Counts pairs of neighbours, the anchor included. */
function pairs({ values, times, from, to, start_ms }: Extended, counts: (now: number, before: number) => boolean) {
  const after = search(times, from, to, start_ms, false);
  if (after === to) return undefined;
  let n = 0;
  for (let i = Math.max(from, after - 1) + 1; i < to; i++)
    if (counts(values[i] as number, values[i - 1] as number)) n++;
  return n;
}

/** What is shown of a range itself: its samples, and a value at both ends. */
export function extendedSamples(e: Extended, smoothed: boolean): [time_ms: number, value: number][] {
  const found = e.from === e.to ? undefined : ends(e, smoothed);
  if (!found) return [];
  const [left, right] = edges(e, ...found, smoothed, false);
  const [first, last] = inside(e, ...found);
  const samples: [number, number][] = [[e.start_ms, left]];
  for (let i = first; i <= last; i++) samples.push([e.times[i] as number, e.values[i] as number]);
  return [...samples, [e.end_ms, right]];
}

/** The value at a moment: of a sample, on the line between its neighbours, or of the last one before. */
export function smoothedAt(e: Extended, moment_ms: number): number | undefined {
  const at = search(e.times, e.from, e.to, moment_ms, true);
  if (at < e.to && e.times[at] === moment_ms) return e.values[at];
  if (at === e.from) return undefined;
  return at < e.to ? between(e, at - 1, moment_ms, false) : e.values[at - 1];
}
