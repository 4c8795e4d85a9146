import type { FloatHistogram } from "../../histogram/histogram.ts";
import {
  averageOfHistogram,
  fractionOfHistogram,
  type NanNote,
  quantileOfHistogram,
  varianceOfHistogram,
} from "../../histogram/statistics.ts";
import type { CallExpr } from "../ast.ts";
import { executionError } from "../errors.ts";
import type { Frame } from "../frame.ts";
import { labelsKey, labelValue, setLabel } from "../labels.ts";
import { formatLabel, parseFloatStrict } from "../numbers.ts";
import { type Bucket, fractionOfClassic, quantileOfClassic } from "./classic-histograms.ts";
import type { Evaluate } from "./selectors.ts";
import { ABSENT, checkQuantile, FLOAT, HISTOGRAM, histogramOf, inform, newRow, type Row, warn } from "./values.ts";

/** Functions of histograms: native ones, and classic ones, which are series of cumulative counts under the label `le`. */

interface Histogram {
  labels: Row["labels"];
  name: string;
  buckets: { le: number; row: Row }[];
  /** The series of native histograms, instead of the buckets. */
  native?: Row;
  /** The other kind with the same labels: where both have a sample, neither gives a result. */
  twin?: Histogram;
}

/** Prometheus leaves the name out of a message when there is none. */
const about = (name: string): string => (name === "" ? "" : ` for metric name ${JSON.stringify(name)}`);

function group(frame: Frame, rows: Row[], at: number): Histogram[] {
  const found = new Map<string, Histogram>();
  const natives: Histogram[] = [];
  for (const row of rows) {
    const text = labelValue(row.labels, "le");
    const le = text === "" ? undefined : parseFloatStrict(text);
    const name = labelValue(row.labels, "__name__");
    if (row.present.includes(HISTOGRAM)) natives.push({ labels: row.labels, name, buckets: [], native: row });
    if (!row.present.includes(FLOAT)) continue;
    if (le === undefined) {
      const bad = `bucket label "le" is missing or has a malformed value of ${JSON.stringify(text)}`;
      warn(frame, bad + about(name), at);
      continue;
    }
    const labels = setLabel(row.labels, "le", "");
    const key = labelsKey(labels);
    const histogram = found.get(key) ?? { labels, name, buckets: [] };
    found.set(key, histogram);
    histogram.buckets.push({ le, row });
  }
  for (const { buckets } of found.values()) buckets.sort((a, b) => a.le - b.le);
  for (const native of natives) {
    const classic = found.get(labelsKey(native.labels));
    if (classic) Object.assign(native, { twin: classic }).twin.twin = native;
  }
  return [...natives, ...found.values()];
}

/** The classic buckets at a step, each bound once. */
function bucketsAt(histogram: Histogram, i: number): Bucket[] {
  const out: Bucket[] = [];
  for (const { le, row } of histogram.buckets) {
    if (row.present[i] !== FLOAT) continue;
    const count = row.values[i] as number;
    const last = out.at(-1);
    if (last?.le === le) last.count += count;
    else out.push({ le, count });
  }
  return out;
}

/** What a function computes of either kind. */
interface Computing {
  native(histogram: FloatHistogram, i: number, name: string): number;
  classic(buckets: Bucket[], i: number, name: string): number;
}

function computeAt(frame: Frame, compute: Computing, histogram: Histogram, i: number, at: number): number | undefined {
  const { native, twin, name } = histogram;
  if (!native) {
    const buckets = bucketsAt(histogram, i);
    const isMixed = twin?.native?.present[i] === HISTOGRAM;
    return buckets.length === 0 || isMixed ? undefined : compute.classic(buckets, i, name);
  }
  const value = histogramOf(frame, native, i);
  if (!value) return undefined;
  if (twin && bucketsAt(twin, i).length > 0) {
    warn(frame, `vector contains a mix of classic and native histograms${about(name)}`, at);
    return undefined;
  }
  return compute.native(value, i, name);
}

/** One row per histogram. */
function perHistogram(frame: Frame, rows: Row[], at: number, compute: Computing): Row[] {
  const out = group(frame, rows, at).map((histogram) => {
    const row = newRow(frame, histogram.labels, true);
    for (let i = 0; i < frame.points; i++) {
      const value = computeAt(frame, compute, histogram, i, at);
      if (value === undefined) continue;
      row.present[i] = FLOAT;
      row.values[i] = value;
    }
    return row;
  });
  return out.filter((row) => row.present.some((p) => p !== ABSENT));
}

const NAN_NOTES: Record<NanNote, string> = {
  nan_result: "has NaN observations, result is NaN",
  nan_skew: "has NaN observations, result is skewed higher",
};

function quantiles(frame: Frame, phis: Float64Array, at: number): Computing {
  return {
    native: (histogram, i, name) => {
      const { value, note } = quantileOfHistogram(phis[i] as number, histogram);
      if (note) inform(frame, `input to histogram_quantile ${NAN_NOTES[note]}${about(name)}`, at);
      return value;
    },
    classic: (buckets, i, name) => {
      const { value, forced } = quantileOfClassic(phis[i] as number, buckets);
      if (forced) inform(frame, `input to histogram_quantile needed to be fixed for monotonicity${about(name)}`, at);
      return value;
    },
  };
}

function fractions(frame: Frame, lowers: Float64Array, uppers: Float64Array, at: number): Computing {
  return {
    native: (histogram, i, name) => {
      const { value, note } = fractionOfHistogram(lowers[i] as number, uppers[i] as number, histogram);
      const excluded = "has NaN observations, which are excluded from all fractions";
      if (note) inform(frame, `input to histogram_fraction ${excluded}${about(name)}`, at);
      return value;
    },
    classic: (buckets, i) => fractionOfClassic(lowers[i] as number, uppers[i] as number, buckets),
  };
}

/** Functions of native histograms alone: a number has none of this and gives nothing. */
function ofNative(compute: (histogram: FloatHistogram) => number): HistogramCall {
  return (frame, call, evaluate) => {
    const rows = vectorArgument(frame, call, 0, evaluate).filter((row) => row.present.includes(HISTOGRAM));
    return rows.map((row) => {
      const out = newRow(frame, row.labels, true);
      for (let i = 0; i < frame.points; i++) {
        const histogram = histogramOf(frame, row, i);
        if (!histogram) continue;
        out.present[i] = FLOAT;
        out.values[i] = compute(histogram);
      }
      return out;
    });
  };
}

type HistogramCall = (frame: Frame, call: CallExpr, evaluate: Evaluate) => Row[];

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

export const HISTOGRAM_CALLS: Readonly<Record<string, HistogramCall>> = {
  histogram_avg: ofNative(averageOfHistogram),
  histogram_count: ofNative(({ count }) => count),
  histogram_stddev: ofNative((histogram) => Math.sqrt(varianceOfHistogram(histogram))),
  histogram_stdvar: ofNative(varianceOfHistogram),
  histogram_sum: ofNative(({ sum }) => sum),
  histogram_quantile: (frame, call, evaluate) => {
    const phis = scalarArgument(frame, call, 0, evaluate);
    const rows = vectorArgument(frame, call, 1, evaluate);
    const at = call.args[1]?.at ?? call.at;
    for (const phi of new Set(phis)) checkQuantile(frame, phi, call.args[0]?.at ?? call.at);
    return perHistogram(frame, rows, at, quantiles(frame, phis, at));
  },
  histogram_quantiles: (frame, call, evaluate) => {
    const rows = vectorArgument(frame, call, 0, evaluate);
    const label = call.args[1]?.kind === "string" ? call.args[1].value : "";
    const at = call.args[0]?.at ?? call.at;
    return call.args.slice(2).flatMap((_, n) => {
      const phis = scalarArgument(frame, call, n + 2, evaluate);
      for (const phi of new Set(phis)) checkQuantile(frame, phi, call.args[n + 2]?.at ?? call.at);
      const out = perHistogram(frame, rows, at, quantiles(frame, phis, at));
      return out.map((row) => ({ ...row, labels: setLabel(row.labels, label, formatLabel(phis[0] ?? Number.NaN)) }));
    });
  },
  histogram_fraction: (frame, call, evaluate) => {
    const lowers = scalarArgument(frame, call, 0, evaluate);
    const uppers = scalarArgument(frame, call, 1, evaluate);
    const rows = vectorArgument(frame, call, 2, evaluate);
    const at = call.args[2]?.at ?? call.at;
    return perHistogram(frame, rows, at, fractions(frame, lowers, uppers, at));
  },
};
