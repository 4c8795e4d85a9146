import { column, type Row } from "../frame.ts";
import { setLabel } from "../labels.ts";
import { formatShort } from "../numbers.ts";
import { atLeast, between, type Call, type Definition, exactly, rowsOf, scalarOf, stringOf, wholeOf } from "./apply.ts";
import { type Bucket, copyRows, groupBuckets, mendBuckets, mergeSameBounds, toCumulative } from "./buckets.ts";

/** A value with the bounds between which it must lie. */
type Estimate = [value: number, lower: number, upper: number];

const NONE: Estimate = [Number.NaN, Number.NaN, Number.NaN];
const INF = Number.POSITIVE_INFINITY;

/** One row per histogram, and two more with bounds when a label for them is given. */
function estimate(
  call: Call,
  rows: Row[],
  boundsLabel: string,
  compute: (buckets: Bucket[], i: number) => Estimate,
): Row[] {
  return groupBuckets(toCumulative(call.frame, rows), false).flatMap((group) => {
    const buckets = mergeSameBounds(group);
    const labels = group[0]?.row.labels ?? [];
    const out = [0, 1, 2].map(() => column(call.frame));
    for (let i = 0; i < call.frame.points; i++) {
      mendBuckets(buckets, i);
      const all = compute(buckets, i);
      for (let n = 0; n < 3; n++) (out[n] as Float64Array)[i] = all[n] as number;
    }
    const [values, lower, upper] = out as [Float64Array, Float64Array, Float64Array];
    if (boundsLabel === "") return [{ labels, values }];
    return [
      { labels, values },
      { labels: setLabel(labels, boundsLabel, "lower"), values: lower },
      { labels: setLabel(labels, boundsLabel, "upper"), values: upper },
    ];
  });
}

const valueAt = (bucket: Bucket | undefined, i: number): number =>
  bucket ? (bucket.row.values[i] as number) : Number.NaN;

/** The value below which the fraction `phi` lies, interpolated linearly within its bucket. */
function quantileAt(buckets: Bucket[], phi: number, i: number): Estimate {
  const total = valueAt(buckets.at(-1), i);
  if (Number.isNaN(phi) || total === 0 || Number.isNaN(total)) return NONE;
  if (phi < 0) return [-INF, -INF, valueAt(buckets[0], i)];
  if (phi > 1) return [INF, total, INF];
  const wanted = total * phi;
  const place = buckets.findIndex((bucket) => valueAt(bucket, i) > 0 && valueAt(bucket, i) >= wanted);
  const bucket = buckets[place];
  if (!bucket || !Number.isFinite(bucket.le)) {
    const largest = buckets.findLast((b) => Number.isFinite(b.le))?.le ?? Number.NaN;
    return [largest, largest, INF];
  }
  const before = buckets[place - 1];
  const from = before?.le ?? 0;
  const below = before ? Math.max(0, valueAt(before, i)) : 0;
  const value = valueAt(bucket, i);
  if (value === below) return [from, from, value];
  return [from + ((bucket.le - from) * (wanted - below)) / (value - below), from, bucket.le];
}

/** The fraction of observations that is at most `le`. */
function shareAt(buckets: Bucket[], le: number, i: number): Estimate {
  if (Number.isNaN(le) || buckets.length === 0) return NONE;
  if (le < 0) return [0, 0, 0];
  if (le === INF) return [1, 1, 1];
  const total = valueAt(buckets.at(-1), i);
  let below = 0;
  let from = 0;
  for (const bucket of buckets) {
    const value = valueAt(bucket, i);
    if (le >= bucket.le) {
      below = value;
      from = bucket.le;
      continue;
    }
    const lower = below / total;
    if (bucket.le === INF) return [lower, lower, 1];
    if (from === le) return [lower, lower, lower];
    return [lower + (((value - below) / total) * (le - from)) / (bucket.le - from), lower, value / total];
  }
  return [1, 1, 1];
}

function histogramQuantile(call: Call): Row[] {
  const phis = scalarOf(call, 0);
  const bounds = call.args.length > 2 ? stringOf(call, 2) : "";
  return estimate(call, rowsOf(call, 1), bounds, (buckets, i) => quantileAt(buckets, phis[i] as number, i));
}

/** The buckets are mended in place for each quantile, so each gets a copy. */
function histogramQuantiles(call: Call): Row[] {
  const label = stringOf(call, 0);
  const last = call.args.length - 1;
  return call.args.slice(1, last).flatMap((_, n) => {
    const phis = scalarOf(call, n + 1);
    const rows = estimate(call, copyRows(rowsOf(call, last)), "", (buckets, i) =>
      quantileAt(buckets, phis[i] as number, i),
    );
    return rows.map((row) => ({ ...row, labels: setLabel(row.labels, label, formatShort(phis[0] ?? Number.NaN)) }));
  });
}

function histogramShare(call: Call): Row[] {
  const les = scalarOf(call, 0);
  const bounds = call.args.length > 2 ? stringOf(call, 2) : "";
  return estimate(call, rowsOf(call, 1), bounds, (buckets, i) => shareAt(buckets, les[i] as number, i));
}

/** Between two bounds: the share below the upper less the share below the lower. */
function histogramFraction(call: Call): Row[] {
  const lowers = scalarOf(call, 0);
  const uppers = scalarOf(call, 1);
  return estimate(call, rowsOf(call, 2), "", (buckets, i) => {
    const lower = lowers[i] as number;
    const upper = uppers[i] as number;
    if (lower >= upper) return [0, 0, 0];
    const share = shareAt(buckets, upper, i)[0] - shareAt(buckets, lower, i)[0];
    return [share, share, share];
  });
}

/** Sums over the middles of the buckets; the last one has no middle. */
function moments(buckets: Bucket[], i: number): { count: number; average: number; squares: number } {
  let count = 0;
  let sum = 0;
  let squares = 0;
  let from = 0;
  let below = 0;
  for (const bucket of buckets) {
    if (!Number.isFinite(bucket.le)) continue;
    const middle = (bucket.le + from) / 2;
    const weight = valueAt(bucket, i) - below;
    count += weight;
    sum += middle * weight;
    squares += middle * middle * weight;
    from = bucket.le;
    below = valueAt(bucket, i);
  }
  return { count, average: sum / count, squares: squares / count };
}

/** Average and spread, as if every value lay in the middle of its bucket. */
function aboutMoments(compute: (average: number, variance: number) => number): Definition {
  return exactly(1, (call) =>
    groupBuckets(toCumulative(call.frame, rowsOf(call, 0)), false).map((group) => {
      const values = column(call.frame);
      for (let i = 0; i < values.length; i++) {
        const { count, average, squares } = moments(group, i);
        values[i] = count === 0 ? Number.NaN : compute(average, Math.max(0, squares - average * average));
      }
      return { labels: group[0]?.row.labels ?? [], values };
    }),
  );
}

/** Counts are sums of differences, which rounding may keep from being 0. */
const isEmptyBucket = (bucket: { hits: number } | undefined): boolean => Math.abs(bucket?.hits ?? Number.NaN) < 1e-9;

/** Fewer buckets: empty ones at both ends go first, then neighbours that hold least are joined. */
function bucketsLimit(call: Call): Row[] {
  const requested = wholeOf(call, 0);
  if (requested <= 0) return [];
  const limit = Math.max(3, requested);
  return groupBuckets(toCumulative(call.frame, rowsOf(call, 1)), true).flatMap((group) => {
    const hits = group.map(({ row }, n) =>
      row.values.reduce((sum, value, i) => sum + value - (n === 0 ? 0 : valueAt(group[n - 1], i)), 0),
    );
    const left = group.map(({ row }, n) => ({ row, hits: hits[n] as number }));
    while (left.length > limit && isEmptyBucket(left.at(-1))) left.pop();
    while (left.length > limit && isEmptyBucket(left[0])) left.shift();
    while (left.length > limit) joinSmallest(left);
    return left.map(({ row }) => row);
  });
}

/** The pair that holds least together loses the least. */
function joinSmallest(buckets: { row: Row; hits: number }[]): void {
  const together = (n: number): number => (buckets[n]?.hits ?? 0) + (buckets[n + 1]?.hits ?? 0);
  let least = 1;
  for (let n = 2; n < buckets.length - 2; n++) if (together(n) < together(least)) least = n;
  const next = buckets[least + 1];
  if (next) next.hits += buckets[least]?.hits ?? 0;
  buckets.splice(least, 1);
}

export const HISTOGRAM_FUNCTIONS: Record<string, Definition> = {
  buckets_limit: exactly(2, bucketsLimit),
  histogram_avg: aboutMoments((average) => average),
  histogram_fraction: exactly(3, histogramFraction),
  histogram_quantile: between(2, 3, histogramQuantile),
  histogram_quantiles: atLeast(3, histogramQuantiles),
  histogram_share: between(2, 3, histogramShare),
  histogram_stddev: aboutMoments((_, variance) => Math.sqrt(variance)),
  histogram_stdvar: aboutMoments((_, variance) => variance),
  prometheus_buckets: exactly(1, (call) => toCumulative(call.frame, rowsOf(call, 0))),
};
