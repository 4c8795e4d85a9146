import type { FloatHistogram } from "../../histogram/histogram.ts";
import { quantileOfSorted } from "../statistics.ts";
import { Average, Sum, sortWithNaN, Variance } from "./sums.ts";

/** Functions of the samples in a window, Prometheus' way: nothing outside the window is looked at. */

export interface NativePoint {
  time: number;
  histogram: FloatHistogram;
}

export interface Range {
  /** Numbers only, oldest first, `length` of them beginning at `from`; native histograms are counted apart. */
  values: Float64Array;
  times: Float64Array;
  from: number;
  length: number;
  /** How often the series has fallen, up to each number. */
  falls: Int32Array;
  histograms: number;
  /** The newest and the oldest sample of any kind. */
  lastIsHistogram: boolean;
  firstIsHistogram: boolean;
  /** The native histograms of the window, oldest first. */
  natives: readonly NativePoint[];
  lastTime: number;
  firstTime: number;
  /** The window is (end - range, end]; `now` is the step it is computed for, which `@` makes another moment. */
  end_ms: number;
  range_ms: number;
  now_ms: number;
  /** Numbers the function was called with. */
  params: number[];
}

/** The number, or undefined for no result. */
type RangeFunction = (r: Range) => number | undefined;

const at = (r: Range, i: number): number => r.values[r.from + i] as number;
const timeAt = (r: Range, i: number): number => r.times[r.from + i] as number;
const some =
  (compute: RangeFunction): RangeFunction =>
  (r) =>
    r.length === 0 ? undefined : compute(r);

/**
 * The change between the first and last sample, stretched to the ends of the window where samples come close to them.
 */
function extrapolated(r: Range, counter: boolean, rate: boolean): number | undefined {
  if (r.length < 2) return undefined;
  let change = at(r, r.length - 1) - at(r, 0);
  // Most windows contain no counter reset, so the search for one is skipped.
  if (counter && r.falls[r.from + r.length - 1] !== r.falls[r.from]) {
    for (let i = 1; i < r.length; i++) if (at(r, i) < at(r, i - 1)) change += at(r, i - 1);
  }
  const sampled = (timeAt(r, r.length - 1) - timeAt(r, 0)) / 1000;
  const between = sampled / (r.length - 1);
  let toStart = (timeAt(r, 0) - (r.end_ms - r.range_ms)) / 1000;
  let toEnd = (r.end_ms - timeAt(r, r.length - 1)) / 1000;
  if (toStart >= between * 1.1) toStart = between / 2;
  if (toEnd >= between * 1.1) toEnd = between / 2;
  // A counter cannot have been below zero, so it is not stretched past the moment it would have been zero.
  if (counter && change > 0 && at(r, 0) >= 0) toStart = Math.min(toStart, sampled * (at(r, 0) / change));
  const factor = (sampled + toStart + toEnd) / sampled;
  return change * (rate ? factor / (r.range_ms / 1000) : factor);
}

function instantChange(r: Range, rate: boolean): number | undefined {
  if (r.length < 2) return undefined;
  const last = at(r, r.length - 1);
  const before = at(r, r.length - 2);
  const elapsed = timeAt(r, r.length - 1) - timeAt(r, r.length - 2);
  if (elapsed === 0) return undefined;
  if (!rate) return last - before;
  return (last < before ? last : last - before) / (elapsed / 1000);
}

/** Least squares with compensated sums: slope per second and value at `origin`. */
function line(r: Range, origin: number): [slope: number, intercept: number] {
  const [x, y, xy, xx] = [new Sum(), new Sum(), new Sum(), new Sum()];
  let constant = true;
  for (let i = 0; i < r.length; i++) {
    const dx = (timeAt(r, i) - origin) / 1000;
    const dy = at(r, i);
    if (dy !== at(r, 0)) constant = false;
    x.add(dx);
    y.add(dy);
    xy.add(dx * dy);
    xx.add(dx * dx);
  }
  if (constant) return Number.isFinite(at(r, 0)) ? [0, at(r, 0)] : [Number.NaN, Number.NaN];
  const n = r.length;
  const raw = (s: Sum): number => s.total + s.lost;
  const slope = (raw(xy) - (raw(x) * raw(y)) / n) / (raw(xx) - (raw(x) * raw(x)) / n);
  return [slope, raw(y) / n - (slope * raw(x)) / n];
}

function each(r: Range, into: { add(value: number): void; readonly value: number }): number {
  for (let i = 0; i < r.length; i++) into.add(at(r, i));
  return into.value;
}

/** NaN loses against any number. */
function extreme(r: Range, better: (a: number, b: number) => boolean): number {
  let best = 0;
  for (let i = 1; i < r.length; i++) if (better(at(r, i), at(r, best)) || Number.isNaN(at(r, best))) best = i;
  return best;
}

const less = (a: number, b: number): boolean => a < b;
const more = (a: number, b: number): boolean => a > b;
const lessOrSame = (a: number, b: number): boolean => a <= b;
const moreOrSame = (a: number, b: number): boolean => a >= b;

function countPairs(r: Range, counts: (now: number, before: number) => boolean): number {
  let n = 0;
  for (let i = 1; i < r.length; i++) if (counts(at(r, i), at(r, i - 1))) n++;
  return n;
}

function sorted(r: Range): Float64Array {
  return sortWithNaN(r.values.slice(r.from, r.from + r.length));
}

function medianDeviation(r: Range): number {
  const all = sorted(r);
  if (Number.isNaN(all[0] as number)) return Number.NaN;
  const median = quantileOfSorted(0.5, all);
  return quantileOfSorted(0.5, all.map((v) => Math.abs(v - median)).sort());
}

/** Holt and Winters: a level and a trend, each with its own memory. */
function smooth(r: Range): number | undefined {
  const [level = 0, trend = 0] = r.params;
  if (r.length < 2) return undefined;
  let before = 0;
  let now = at(r, 0);
  let slope = at(r, 1) - at(r, 0);
  for (let i = 1; i < r.length; i++) {
    if (i > 1) slope = trend * (now - before) + (1 - trend) * slope;
    before = now;
    now = level * at(r, i) + (1 - level) * (now + slope);
  }
  return now;
}

export const RANGE_FUNCTIONS: Readonly<Record<string, RangeFunction>> = {
  avg_over_time: some((r) => each(r, new Average())),
  changes: some((r) => countPairs(r, (a, b) => a !== b && !(Number.isNaN(a) && Number.isNaN(b)))),
  delta: (r) => extrapolated(r, false, false),
  deriv: (r) => (r.length < 2 ? undefined : line(r, timeAt(r, 0))[0]),
  double_exponential_smoothing: smooth,
  holt_winters: smooth,
  idelta: (r) => instantChange(r, false),
  increase: (r) => extrapolated(r, true, false),
  irate: (r) => instantChange(r, true),
  mad_over_time: some(medianDeviation),
  max_over_time: some((r) => at(r, extreme(r, more))),
  min_over_time: some((r) => at(r, extreme(r, less))),
  predict_linear: (r) => {
    if (r.length < 2) return undefined;
    const [slope, intercept] = line(r, r.now_ms);
    return slope * (r.params[0] ?? 0) + intercept;
  },
  quantile_over_time: some((r) => quantileOfSorted(r.params[0] ?? Number.NaN, sorted(r))),
  rate: (r) => extrapolated(r, true, true),
  resets: some((r) => countPairs(r, less)),
  stddev_over_time: some((r) => Math.sqrt(each(r, new Variance()))),
  stdvar_over_time: some((r) => each(r, new Variance())),
  sum_over_time: some((r) => each(r, new Sum())),
  ts_of_max_over_time: some((r) => timeAt(r, extreme(r, moreOrSame)) / 1000),
  ts_of_min_over_time: some((r) => timeAt(r, extreme(r, lessOrSame)) / 1000),
};

/** Functions that count samples of any kind. */
export const ANY_KIND: Readonly<Record<string, RangeFunction>> = {
  count_over_time: (r) => r.length + r.histograms,
  present_over_time: () => 1,
  ts_of_first_over_time: (r) => r.firstTime / 1000,
  ts_of_last_over_time: (r) => r.lastTime / 1000,
};

/** Functions of counters: like Prometheus, an info says when the name does not look like one. */
export const WANTS_COUNTER: ReadonlySet<string> = new Set(["increase", "irate", "rate"]);
