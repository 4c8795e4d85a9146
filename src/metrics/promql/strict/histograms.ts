import type { SampleSource } from "../../source.ts";
import type { CallExpr } from "../ast.ts";
import { executionError } from "../errors.ts";
import type { Frame } from "../frame.ts";
import { labelsKey, labelValue, setLabel } from "../labels.ts";
import { histogramAt } from "../nan-bits.ts";
import { formatShort, parseFloatStrict } from "../numbers.ts";
import type { Evaluate } from "./selectors.ts";
import { ABSENT, checkQuantile, FLOAT, HISTOGRAM, inform, newRow, type Row, warn } from "./values.ts";

/** Functions of classic histograms: series with cumulative counts under the label `le`. */

export interface Bucket {
  le: number;
  count: number;
}

interface Histogram {
  labels: Row["labels"];
  name: string;
  buckets: { le: number; row: Row }[];
  /** The series of native histograms with custom buckets, instead of the buckets. */
  native?: Row;
}

/** A source that has native histograms with custom buckets: cumulative counts, like classic ones. */
export interface HistogramSource extends SampleSource {
  histogram(id: number): Bucket[] | undefined;
}

const INF = Number.POSITIVE_INFINITY;
/** Counts that differ by less than this in proportion differ by rounding. */
const TOLERANCE = 1e-12;

function group(frame: Frame, rows: Row[], at: number): Histogram[] {
  const found = new Map<string, Histogram>();
  for (const row of rows) {
    const text = labelValue(row.labels, "le");
    const le = text === "" ? undefined : parseFloatStrict(text);
    const name = labelValue(row.labels, "__name__");
    if (row.present.some((p) => p === HISTOGRAM)) {
      found.set(`native ${labelsKey(row.labels)}`, { labels: row.labels, name, buckets: [], native: row });
    }
    if (le === undefined) {
      if (row.present.some((p) => p === FLOAT)) {
        const bad = `bucket label "le" is missing or has a malformed value of ${JSON.stringify(text)}`;
        warn(frame, `${bad} for metric name ${JSON.stringify(name)}`, at);
      }
      continue;
    }
    const labels = setLabel(row.labels, "le", "");
    const key = labelsKey(labels);
    const histogram = found.get(key) ?? { labels, name, buckets: [] };
    found.set(key, histogram);
    histogram.buckets.push({ le, row });
  }
  for (const { buckets } of found.values()) buckets.sort((a, b) => a.le - b.le);
  return [...found.values()];
}

/** The buckets at a step, each bound once. */
function bucketsAt(frame: Frame, histogram: Histogram, i: number): Bucket[] {
  const out: Bucket[] = [];
  if (histogram.native) {
    const id = histogram.native.present[i] === HISTOGRAM ? histogramAt(histogram.native.values, i) : undefined;
    const { source } = frame.query;
    const known = id !== undefined && "histogram" in source ? (source as HistogramSource).histogram(id) : undefined;
    return known?.map((bucket) => ({ ...bucket })) ?? [];
  }
  for (const { le, row } of histogram.buckets) {
    if (row.present[i] !== FLOAT) continue;
    const count = row.values[i] as number;
    const last = out.at(-1);
    if (last?.le === le) last.count += count;
    else out.push({ le, count });
  }
  return out;
}

function almostEqual(a: number, b: number): boolean {
  const apart = Math.abs(a - b);
  const size = Math.abs(a) + Math.abs(b);
  if (a === 0 || b === 0 || size < 2.2250738585072014e-308) return apart < TOLERANCE * 2.2250738585072014e-308;
  return apart / Math.min(size, Number.MAX_VALUE) < TOLERANCE;
}

/** Counts that fall with rising bounds are raised; true when one fell by more than rounding. */
function makeMonotonic(buckets: Bucket[]): boolean {
  let forced = false;
  let before = buckets[0]?.count ?? 0;
  for (const bucket of buckets.slice(1)) {
    if (bucket.count === before) continue;
    if (almostEqual(before, bucket.count)) bucket.count = before;
    else if (bucket.count < before) {
      bucket.count = before;
      forced = true;
    } else before = bucket.count;
  }
  return forced;
}

/** A straight line within the bucket; the last one has no end, so its start is the answer. */
function quantileOf(phi: number, buckets: Bucket[]): number {
  const last = buckets.length - 1;
  const total = buckets[last]?.count ?? 0;
  if (buckets.length < 2 || total === 0 || Number.isNaN(total)) return Number.NaN;
  let rank = phi * total;
  const found = buckets.findIndex((bucket) => bucket.count >= rank);
  const place = found < 0 ? last : found;
  const bucket = buckets[place] as Bucket;
  if (place === last) return buckets[last - 1]?.le ?? Number.NaN;
  if (place === 0 && bucket.le <= 0) return bucket.le;
  const below = buckets[place - 1];
  const start = below?.le ?? 0;
  const count = bucket.count - (below?.count ?? 0);
  rank -= below?.count ?? 0;
  return start + (bucket.le - start) * (rank / count);
}

/** The answer outside 0..1 is an infinity, with a warning. */
function histogramQuantile(frame: Frame, phi: number, histogram: Histogram, i: number, at: number): number | undefined {
  const buckets = bucketsAt(frame, histogram, i);
  if (buckets.length === 0) return undefined;
  if (Number.isNaN(phi)) return Number.NaN;
  if (phi < 0) return -INF;
  if (phi > 1) return INF;
  if (buckets.at(-1)?.le !== INF) return Number.NaN;
  if (makeMonotonic(buckets)) {
    inform(
      frame,
      `input to histogram_quantile needed to be fixed for monotonicity for metric name ${JSON.stringify(histogram.name)}`,
      at,
    );
  }
  return quantileOf(phi, buckets);
}

/** How many observations are at most `bound`, on a straight line within its bucket. */
function rankOf(bound: number, buckets: Bucket[], total: number, isLower: boolean): number {
  const place = buckets.findIndex(({ le }) => bound < le);
  const bucket = buckets[place];
  if (!bucket) return total;
  const below = buckets[place - 1];
  const under = below?.count ?? 0;
  const start = below?.le ?? (bucket.le > 0 ? 0 : Number.NEGATIVE_INFINITY);
  // A bucket without a lower bound cannot be divided, so none of it lies between the two requested bounds.
  if (start === Number.NEGATIVE_INFINITY) return isLower && bound !== start ? bucket.count : under;
  if (bound <= start || bucket.le === INF) return under;
  return under + ((bucket.count - under) * (bound - start)) / (bucket.le - start);
}

function fractionOf(frame: Frame, lower: number, upper: number, histogram: Histogram, i: number): number | undefined {
  const buckets = bucketsAt(frame, histogram, i);
  if (buckets.length === 0) return undefined;
  const total = buckets.at(-1)?.count ?? 0;
  if (buckets.at(-1)?.le !== INF || total === 0 || Number.isNaN(lower) || Number.isNaN(upper)) return Number.NaN;
  if (lower >= upper) return 0;
  makeMonotonic(buckets);
  const until = upper === INF ? total : Math.min(total, rankOf(upper, buckets, total, false));
  return (until - Math.min(total, rankOf(lower, buckets, total, true))) / total;
}

type Compute = (histogram: Histogram, i: number) => number | undefined;

/** One row per histogram. */
function perHistogram(frame: Frame, rows: Row[], at: number, compute: Compute): Row[] {
  const out = group(frame, rows, at).map((histogram) => {
    const row = newRow(frame, histogram.labels, true);
    for (let i = 0; i < frame.points; i++) {
      const value = compute(histogram, i);
      if (value === undefined) continue;
      row.present[i] = FLOAT;
      row.values[i] = value;
    }
    return row;
  });
  return out.filter((row) => row.present.some((p) => p !== ABSENT));
}

function scalarArgument(frame: Frame, call: CallExpr, i: number, evaluate: Evaluate): Float64Array {
  const arg = call.args[i];
  const value = arg && evaluate(frame, arg);
  if (value?.type !== "scalar") throw executionError(`argument ${i + 1} of ${call.name}() must be a number`);
  return value.values;
}

function vectorArgument(frame: Frame, call: CallExpr, i: number, evaluate: Evaluate): Row[] {
  const arg = call.args[i];
  const value = arg && evaluate(frame, arg);
  if (value?.type !== "vector") throw executionError(`argument ${i + 1} of ${call.name}() must be an instant vector`);
  return value.rows;
}

export const HISTOGRAM_CALLS: Readonly<Record<string, (frame: Frame, call: CallExpr, evaluate: Evaluate) => Row[]>> = {
  histogram_quantile: (frame, call, evaluate) => {
    const phis = scalarArgument(frame, call, 0, evaluate);
    const rows = vectorArgument(frame, call, 1, evaluate);
    const at = call.args[1]?.at ?? call.at;
    for (const phi of new Set(phis)) checkQuantile(frame, phi, call.args[0]?.at ?? call.at);
    return perHistogram(frame, rows, at, (h, i) => histogramQuantile(frame, phis[i] as number, h, i, at));
  },
  histogram_quantiles: (frame, call, evaluate) => {
    const rows = vectorArgument(frame, call, 0, evaluate);
    const label = call.args[1]?.kind === "string" ? call.args[1].value : "";
    const at = call.args[0]?.at ?? call.at;
    return call.args.slice(2).flatMap((_, n) => {
      const phis = scalarArgument(frame, call, n + 2, evaluate);
      for (const phi of new Set(phis)) checkQuantile(frame, phi, call.args[n + 2]?.at ?? call.at);
      const out = perHistogram(frame, rows, at, (h, i) => histogramQuantile(frame, phis[i] as number, h, i, at));
      return out.map((row) => ({ ...row, labels: setLabel(row.labels, label, formatShort(phis[0] ?? Number.NaN)) }));
    });
  },
  histogram_fraction: (frame, call, evaluate) => {
    const lowers = scalarArgument(frame, call, 0, evaluate);
    const uppers = scalarArgument(frame, call, 1, evaluate);
    const rows = vectorArgument(frame, call, 2, evaluate);
    return perHistogram(frame, rows, call.args[2]?.at ?? call.at, (h, i) =>
      fractionOf(frame, lowers[i] as number, uppers[i] as number, h, i),
    );
  },
};

/** Functions of native histograms alone: numbers have none of this, so only histograms could give a result. */
export const NATIVE_ONLY = new Set([
  "histogram_avg",
  "histogram_count",
  "histogram_sum",
  "histogram_stddev",
  "histogram_stdvar",
]);
