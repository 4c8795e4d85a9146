import type { Columns } from "../../source.ts";
import type { CallExpr, Expr } from "../ast.ts";
import { executionError } from "../errors.ts";
import type { Frame } from "../frame.ts";
import { ROLLUPS } from "../functions/names.ts";
import { formatShort } from "../numbers.ts";
import { quantileOfSorted, sortedValues } from "../statistics.ts";
import { visitBuckets } from "../vmrange.ts";
import { type Batch, lastOfEach, slopeOfEach } from "./batches.ts";
import * as k from "./kernels.ts";
import * as s from "./kernels-statistics.ts";
import { removeResets, toDeltas, toDerivatives, toIntervals } from "./prepare.ts";
import type { Kernel, Window } from "./window.ts";

/** How one call of a rollup function is carried out on each series. */
export interface Plan {
  name: string;
  prepare?: (samples: Columns) => void;
  /** One row each; a tag goes into the label `rollup`. */
  outputs: { tag?: string; kernel: Kernel; batch?: Batch }[];
  /** Instead of outputs: any number of rows per series, distinguished by this label. */
  spread?: { label: string; kernel: (w: Window, emit: (value: string, number: number) => void) => void };
  keepsName: boolean;
  adjusts: boolean;
  /** Staleness markers are part of the answer. */
  keepsStale: boolean;
}

const words = (text: string): Set<string> => new Set(text.trim().split(/\s+/));

/** Functions that do not change what a series means. */
const KEEP_NAME = words(`
  avg_over_time default_rollup first_over_time geomean_over_time hoeffding_bound_lower hoeffding_bound_upper holt_winters
  double_exponential_smoothing last_over_time max_over_time median_over_time min_over_time mode_over_time
  outlier_iqr_over_time predict_linear quantile_over_time quantiles_over_time rollup rollup_candlestick
  timestamp_with_name`);
/**
 * Functions that make no sense on fewer than two samples, so without a window of its own the query gets a longer one.
 */
const ADJUST = words(`
  default_rollup deriv deriv_fast ideriv irate rate rate_over_sum rollup rollup_candlestick rollup_deriv rollup_rate
  rollup_scrape_interval scrape_interval timestamp`);
/** Functions of counters, which must see through restarts. */
const COUNTERS = words(
  "increase increase_prometheus increase_pure irate rate rate_prometheus rollup_increase rollup_rate",
);

/** Functions of the samples alone. */
const SIMPLE: Record<string, Kernel> = {
  absent_over_time: k.absent,
  ascent_over_time: k.ascent,
  avg_over_time: s.average,
  changes: k.changes,
  changes_prometheus: k.changesInside,
  count_over_time: k.countSamples,
  decreases_over_time: k.decreases,
  default_rollup: k.last,
  delta: k.increase,
  delta_prometheus: k.increaseInside,
  deriv: s.slope,
  deriv_fast: k.derivative,
  descent_over_time: k.descent,
  distinct_over_time: s.distinct,
  first_over_time: k.first,
  geomean_over_time: s.geometricMean,
  idelta: k.instantDelta,
  ideriv: k.instantDerivative,
  increase: k.increase,
  increase_prometheus: k.increaseInside,
  increase_pure: k.increasePure,
  increases_over_time: k.increases,
  integrate: k.integrate,
  irate: k.instantDerivative,
  lag: k.lag,
  last_over_time: k.last,
  lifetime: k.lifetime,
  mad_over_time: s.deviation,
  max_over_time: s.maximum,
  median_over_time: s.median,
  min_over_time: s.minimum,
  mode_over_time: s.mostFrequent,
  outlier_iqr_over_time: s.outlier,
  present_over_time: k.present,
  range_over_time: s.range,
  rate: k.derivative,
  rate_over_sum: s.rateOverSum,
  rate_prometheus: (w) => k.increaseInside(w) / (w.length / 1000),
  resets: k.decreases,
  scrape_interval: k.scrapeInterval,
  stale_samples_over_time: s.staleSamples,
  stddev_over_time: s.stddev,
  stdvar_over_time: s.stdvar,
  sum2_over_time: s.sumOfSquares,
  sum_over_time: s.sum,
  tfirst_over_time: k.firstTime,
  timestamp: k.lastTime,
  timestamp_with_name: k.lastTime,
  tlast_change_over_time: k.lastChangeTime,
  tlast_over_time: k.lastTime,
  tmax_over_time: s.maximumTime,
  tmin_over_time: s.minimumTime,
  zscore_over_time: s.zscore,
};

/** Kernels that also know how to do all steps at once. */
const BATCHES = new Map<Kernel, Batch>([
  [k.last, lastOfEach],
  [k.derivative, slopeOfEach],
]);

const eq = (v: number, limit: number): boolean => v === limit;
const gt = (v: number, limit: number): boolean => v > limit;
const le = (v: number, limit: number): boolean => v <= limit;
const ne = (v: number, limit: number): boolean => v !== limit;

/** Functions that take numbers besides the series, in order. */
const WITH_NUMBERS: Record<string, { numbers: number; make: (a: Float64Array, b: Float64Array) => Kernel }> = {
  count_eq_over_time: { numbers: 1, make: (a) => s.filtered(a, eq, "count") },
  count_gt_over_time: { numbers: 1, make: (a) => s.filtered(a, gt, "count") },
  count_le_over_time: { numbers: 1, make: (a) => s.filtered(a, le, "count") },
  count_ne_over_time: { numbers: 1, make: (a) => s.filtered(a, ne, "count") },
  share_eq_over_time: { numbers: 1, make: (a) => s.filtered(a, eq, "share") },
  share_gt_over_time: { numbers: 1, make: (a) => s.filtered(a, gt, "share") },
  share_le_over_time: { numbers: 1, make: (a) => s.filtered(a, le, "share") },
  sum_eq_over_time: { numbers: 1, make: (a) => s.filtered(a, eq, "sum") },
  sum_gt_over_time: { numbers: 1, make: (a) => s.filtered(a, gt, "sum") },
  sum_le_over_time: { numbers: 1, make: (a) => s.filtered(a, le, "sum") },
  duration_over_time: { numbers: 1, make: s.duration },
  hoeffding_bound_lower: { numbers: 1, make: (a) => s.hoeffding(a, -1) },
  hoeffding_bound_upper: { numbers: 1, make: (a) => s.hoeffding(a, 1) },
  holt_winters: { numbers: 2, make: s.holtWinters },
  double_exponential_smoothing: { numbers: 2, make: s.holtWinters },
  predict_linear: { numbers: 1, make: s.predict },
  quantile_over_time: { numbers: 1, make: s.quantileOver },
};

const MIN_MAX_AVG: Record<string, Kernel> = { min: s.minimum, max: s.maximum, avg: s.average };
const CANDLE: Record<string, Kernel> = {
  open: k.candleOpen,
  close: k.candleClose,
  low: k.candleLow,
  high: k.candleHigh,
};

/** Functions that give several rows per series, or only the one with the requested tag. */
const TAGGED: Record<string, { prepare?: (samples: Columns) => void; tags: Record<string, Kernel>; keepTag?: true }> = {
  rollup: { tags: MIN_MAX_AVG },
  rollup_rate: { prepare: both(removeResets, toDerivatives), tags: MIN_MAX_AVG },
  rollup_deriv: { prepare: toDerivatives, tags: MIN_MAX_AVG },
  rollup_increase: { prepare: both(removeResets, toDeltas), tags: MIN_MAX_AVG },
  rollup_delta: { prepare: toDeltas, tags: MIN_MAX_AVG },
  rollup_scrape_interval: { prepare: toIntervals, tags: MIN_MAX_AVG },
  rollup_candlestick: { tags: CANDLE, keepTag: true },
};

function both(a: (samples: Columns) => void, b: (samples: Columns) => void): (samples: Columns) => void {
  return (samples) => {
    a(samples);
    b(samples);
  };
}

/** Which argument is the series. */
export function seriesArgument(call: CallExpr): number {
  const place = ROLLUPS[call.name.toLowerCase()] ?? 0;
  return place < 0 ? call.args.length - 1 : place;
}

/**
 * Which kernels to run and what to do to the samples first. Arguments that are numbers are evaluated here, once for all
 * series.
 */
export function planRollup(frame: Frame, call: CallExpr): Plan {
  const name = call.name.toLowerCase();
  const base = {
    name,
    keepsName: call.keepMetricNames === true || KEEP_NAME.has(name),
    adjusts: ADJUST.has(name),
    keepsStale: name === "default_rollup" || name === "stale_samples_over_time",
  };
  const simple = SIMPLE[name];
  if (simple) {
    expectArgs(call, 1);
    const batch = BATCHES.get(simple);
    const output = batch ? { kernel: simple, batch } : { kernel: simple };
    return { ...base, outputs: [output], ...(COUNTERS.has(name) ? { prepare: removeResets } : {}) };
  }
  const numeric = WITH_NUMBERS[name];
  if (numeric) {
    expectArgs(call, 1 + numeric.numbers);
    const [a, b] = others(call).map((arg) => scalarArgument(frame, arg, name));
    return { ...base, outputs: [{ kernel: numeric.make(a ?? new Float64Array(0), b ?? new Float64Array(0)) }] };
  }
  const tagged = TAGGED[name];
  if (tagged) return { ...base, ...planTagged(call, tagged) };
  if (name === "aggr_over_time") return { ...base, ...planAggregates(call) };
  return { ...base, outputs: [], spread: planSpread(frame, call, name) };
}

export function expectArgs(call: { name: string; args: Expr[] }, least: number, most = least): void {
  const got = call.args.length;
  if (got >= least && got <= most) return;
  const wanted =
    most === least ? `${least}` : most === Number.POSITIVE_INFINITY ? `at least ${least}` : `${least} to ${most}`;
  throw executionError(`${call.name || "union"}() takes ${wanted} arguments, not ${got}`);
}

function others(call: CallExpr): Expr[] {
  const place = seriesArgument(call);
  return call.args.filter((_, i) => i !== place);
}

/** A number per step. */
export function scalarArgument(frame: Frame, arg: Expr, where: string): Float64Array {
  const rows = frame.evaluate(frame, arg);
  const [row] = rows;
  if (!row || rows.length !== 1)
    throw executionError(`an argument of ${where}() must be one series, not ${rows.length}`);
  return row.values;
}

function stringArgument(arg: Expr | undefined, where: string): string {
  if (arg?.kind !== "string") throw executionError(`an argument of ${where}() must be a string`);
  return arg.value;
}

function planTagged(call: CallExpr, tagged: (typeof TAGGED)[string]): Pick<Plan, "prepare" | "outputs"> {
  expectArgs(call, 1, 2);
  const prepare = tagged.prepare ? { prepare: tagged.prepare } : {};
  if (call.args.length === 1) {
    return { ...prepare, outputs: Object.entries(tagged.tags).map(([tag, kernel]) => ({ tag, kernel })) };
  }
  const tag = stringArgument(call.args[1], call.name);
  const kernel = Object.hasOwn(tagged.tags, tag) ? tagged.tags[tag] : undefined;
  if (!kernel)
    throw executionError(`${call.name}() knows ${Object.keys(tagged.tags).join(", ")}, not ${JSON.stringify(tag)}`);
  return { ...prepare, outputs: [tagged.keepTag ? { tag, kernel } : { kernel }] };
}

/** aggr_over_time runs several functions over the same window. */
function planAggregates(call: CallExpr): Pick<Plan, "prepare" | "outputs"> {
  expectArgs(call, 2);
  const [first] = call.args;
  const list = first?.kind === "call" && first.name === "" ? first.args : [first];
  const names = list.map((arg) => stringArgument(arg, call.name));
  const outputs = names.map((tag) => {
    const kernel = Object.hasOwn(SIMPLE, tag.toLowerCase()) ? SIMPLE[tag.toLowerCase()] : undefined;
    if (!kernel) throw executionError(`aggr_over_time() cannot use ${JSON.stringify(tag)}`);
    return { tag, kernel };
  });
  if (outputs.length === 0) throw executionError("aggr_over_time() needs the name of a rollup function");
  return names.some((name) => COUNTERS.has(name.toLowerCase())) ? { outputs, prepare: removeResets } : { outputs };
}

/** Functions whose number of rows depends on the samples. */
function planSpread(frame: Frame, call: CallExpr, name: string): NonNullable<Plan["spread"]> {
  if (name === "histogram_over_time") {
    expectArgs(call, 1);
    return {
      label: "vmrange",
      kernel: (w, emit) => visitBuckets(w.values.subarray(w.from, w.to), emit),
    };
  }
  if (name === "count_values_over_time") {
    expectArgs(call, 2);
    return { label: stringArgument(call.args[0], name), kernel: countValues };
  }
  expectArgs(call, 3, Number.POSITIVE_INFINITY);
  const phis = call.args.slice(1, -1).map((arg) => scalarArgument(frame, arg, name)[0] ?? Number.NaN);
  return {
    label: stringArgument(call.args[0], name),
    kernel: (w, emit) => {
      if (w.to === w.from) return;
      const sorted = sortedValues(w.values, w.from, w.to);
      for (const phi of phis) emit(formatShort(phi), quantileOfSorted(phi, sorted));
    },
  };
}

function countValues(w: Window, emit: (value: string, number: number) => void): void {
  const counts = new Map<number, number>();
  for (let i = w.from; i < w.to; i++) {
    const value = w.values[i] as number;
    counts.set(value, (counts.get(value) ?? 0) + 1);
  }
  for (const [value, count] of counts) emit(formatShort(value), count);
}
