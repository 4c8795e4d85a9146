import { isEmpty, type Row, timesOf } from "../frame.ts";
import { removeResets } from "../rollup/prepare.ts";
import { mad, mean, quantile, regression, variance } from "../statistics.ts";
import { atLeast, type Call, type Definition, exactly, mapColumns, numberOf, rowsOf, scalarOf } from "./apply.ts";

/** Functions that look at all values of a series over the range of the query. */

/** Row by row; names stay. */
function eachColumn(args: number, change: (values: Float64Array, call: Call) => void): Definition {
  return exactly(args, (call) => {
    const rows = rowsOf(call, args - 1);
    for (const row of rows) change(row.values, call);
    return rows;
  });
}

function firstIndex(values: Float64Array): number {
  return values.findIndex((v) => !Number.isNaN(v));
}

function lastIndex(values: Float64Array): number {
  return values.findLastIndex((v) => !Number.isNaN(v));
}

/** From the first value on, each one combined with the ones before. */
function run(values: Float64Array, combine: (a: number, b: number, index: number) => number): void {
  const first = firstIndex(values);
  if (first < 0) return;
  let before = values[first] as number;
  for (let i = first + 1; i < values.length; i++) {
    const value = values[i] as number;
    if (!Number.isNaN(value)) before = combine(before, value, i - first);
    values[i] = before;
  }
}

/** `index` counts from the first value, which an average needs. */
type Combine = (a: number, b: number, index: number) => number;

const COMBINE: Record<string, Combine> = {
  avg: (a, b, index) => a + (b - a) / (index + 1),
  max: (a, b) => Math.max(a, b),
  min: (a, b) => Math.min(a, b),
  sum: (a, b) => a + b,
};

/** running_sum gives up the name, as a sum is another thing; the others keep it. */
function running(combine: Combine): Definition {
  return exactly(1, (call) => mapColumns(call, rowsOf(call, 0), (values) => run(values, combine)));
}

function spreadLast(values: Float64Array): void {
  const last = lastIndex(values);
  if (last >= 0) values.fill(values[last] as number);
}

function ranged(combine: Combine): Definition {
  return exactly(1, (call) =>
    mapColumns(call, rowsOf(call, 0), (values) => {
      run(values, combine);
      spreadLast(values);
    }),
  );
}

/** One number about the whole column, in every place. */
function summary(args: number, compute: (values: Float64Array, call: Call) => number): Definition {
  return eachColumn(args, (values, call) => {
    values.fill(compute(values, call));
  });
}

function rangeFirst(values: Float64Array): void {
  const first = firstIndex(values);
  if (first >= 0) values.fill(values[first] as number);
}

/** To 0..1, several arguments at once. */
function normalize(call: Call): Row[] {
  return call.args.flat().filter((row) => {
    let low = Number.POSITIVE_INFINITY;
    let high = Number.NEGATIVE_INFINITY;
    for (const value of row.values) {
      if (value < low) low = value;
      if (value > high) high = value;
    }
    if (!Number.isFinite(high - low)) return false;
    for (let i = 0; i < row.values.length; i++) row.values[i] = ((row.values[i] as number) - low) / (high - low);
    return true;
  });
}

/** Removed values become gaps, not zeros. */
function trim(values: Float64Array, keep: (value: number) => boolean): void {
  for (let i = 0; i < values.length; i++) if (!keep(values[i] as number)) values[i] = Number.NaN;
}

function trimOutliers(values: Float64Array, call: Call): void {
  const most = numberOf(call, 0) * mad(values);
  const median = quantile(0.5, values);
  trim(values, (v) => !(Math.abs(v - median) > most));
}

function trimSpikes(values: Float64Array, call: Call): void {
  const phi = numberOf(call, 0) / 2;
  const high = quantile(1 - phi, values);
  const low = quantile(phi, values);
  trim(values, (v) => !(v > high || v < low));
}

function trimZscore(values: Float64Array, call: Call): void {
  const most = Math.abs(numberOf(call, 0));
  const deviation = Math.sqrt(variance(values));
  const average = mean(values);
  trim(values, (v) => !(Math.abs(v - average) / deviation > most));
}

function zscore(values: Float64Array): void {
  const deviation = Math.sqrt(variance(values));
  const average = mean(values);
  for (let i = 0; i < values.length; i++) values[i] = ((values[i] as number) - average) / deviation;
}

function linearRegression(call: Call): Row[] {
  const rows = rowsOf(call, 0);
  const times = timesOf(call.frame);
  const origin = times[0] ?? 0;
  for (const { values } of rows) {
    const [value, slope] = regression(values, times, 0, values.length, origin);
    for (let i = 0; i < values.length; i++) values[i] = value + (slope * ((times[i] as number) - origin)) / 1000;
  }
  return rows;
}

/** Gaps take the value before them. */
function keepLast(values: Float64Array): void {
  for (let i = 1; i < values.length; i++) if (Number.isNaN(values[i] as number)) values[i] = values[i - 1] as number;
}

function keepNext(values: Float64Array): void {
  for (let i = values.length - 2; i >= 0; i--)
    if (Number.isNaN(values[i] as number)) values[i] = values[i + 1] as number;
}

/** Straight lines over gaps that have a value on both sides. */
function interpolate(values: Float64Array): void {
  let before = -1;
  for (let i = 0; i < values.length; i++) {
    if (Number.isNaN(values[i] as number)) continue;
    if (before >= 0 && i - before > 1) {
      const start = values[before] as number;
      const slope = ((values[i] as number) - start) / (i - before);
      for (let j = before + 1; j < i; j++) values[j] = start + slope * (j - before);
    }
    before = i;
  }
}

/** An infinity would never be forgotten, so it is passed over. */
function smooth(values: Float64Array, factors: Float64Array): void {
  const first = values.findIndex((v) => Number.isFinite(v));
  if (first < 0) return;
  let average = values[first] as number;
  for (let i = first + 1; i < values.length; i++) {
    const value = values[i] as number;
    if (Number.isNaN(value)) continue;
    if (Number.isFinite(value)) {
      const factor = factors[i] as number;
      const weight = Number.isNaN(factor) ? 1 : Math.min(1, Math.max(0, factor));
      average = average * (1 - weight) + value * weight;
    }
    values[i] = average;
  }
}

/** Counters without their restarts, gaps left alone. */
function withoutResets(values: Float64Array): void {
  const places: number[] = [];
  for (let i = 0; i < values.length; i++) if (!Number.isNaN(values[i] as number)) places.push(i);
  const dense = Float64Array.from(places, (i) => values[i] as number);
  removeResets({ values: dense, timestamps: dense, length: dense.length });
  for (const [n, i] of places.entries()) values[i] = dense[n] as number;
}

export const RANGE_FUNCTIONS: Record<string, Definition> = {
  drop_empty_series: exactly(1, (call) => rowsOf(call, 0).filter((row) => !isEmpty(row))),
  interpolate: eachColumn(1, interpolate),
  keep_last_value: eachColumn(1, keepLast),
  keep_next_value: eachColumn(1, keepNext),
  range_first: eachColumn(1, rangeFirst),
  range_last: eachColumn(1, spreadLast),
  range_linear_regression: exactly(1, linearRegression),
  range_mad: summary(1, mad),
  range_normalize: atLeast(1, normalize),
  range_quantile: summary(2, (values, call) => quantile(numberOf(call, 0), values)),
  range_stddev: summary(1, (values) => Math.sqrt(variance(values))),
  range_stdvar: summary(1, (values) => variance(values)),
  range_trim_outliers: eachColumn(2, trimOutliers),
  range_trim_spikes: eachColumn(2, trimSpikes),
  range_trim_zscore: eachColumn(2, trimZscore),
  range_zscore: eachColumn(1, zscore),
  remove_resets: eachColumn(1, withoutResets),
  smooth_exponential: exactly(2, (call) => {
    const factors = scalarOf(call, 1);
    const rows = rowsOf(call, 0);
    for (const row of rows) smooth(row.values, factors);
    return rows;
  }),
  ...Object.fromEntries(
    Object.entries(COMBINE).flatMap(([name, combine]) => [
      [`running_${name}`, running(combine)],
      [`range_${name}`, ranged(combine)],
    ]),
  ),
};
