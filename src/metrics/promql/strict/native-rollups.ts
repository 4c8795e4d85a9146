import {
  compact,
  EMPTY_HISTOGRAM,
  equalHistograms,
  type FloatHistogram,
  hasCustomBuckets,
  withHint,
} from "../../histogram/histogram.ts";
import { atSchema } from "../../histogram/layout.ts";
import { detectReset } from "../../histogram/reset.ts";
import type { Frame } from "../frame.ts";
import { divided, HistogramSum, scaled } from "./histogram-sum.ts";
import { addAll, warnMixed } from "./native-sums.ts";
import type { NativePoint, Range } from "./rollups.ts";
import { inform, warn } from "./values.ts";

/** Functions of the native histograms in a window. */

export interface NativeCall {
  frame: Frame;
  /** Where annotations point. */
  at: number;
  name: string;
  metric: string;
}

type NativeFunction = (call: NativeCall, range: Range) => FloatHistogram | undefined;

const FUNCTIONS: Readonly<Record<string, NativeFunction>> = {
  avg_over_time: (call, range) => added(call, range, true),
  delta: (call, range) => extrapolated(call, range, false),
  idelta: (call, range) => instantChange(call, range, false),
  increase: (call, range) => extrapolated(call, range, true),
  irate: (call, range) => instantChange(call, range, true),
  rate: (call, range) => {
    const increase = extrapolated(call, range, true);
    return increase && scaled(increase, 1000 / range.range_ms);
  },
  sum_over_time: (call, range) => added(call, range, false),
};

export const takesNative = (name: string): boolean => Object.hasOwn(FUNCTIONS, name);

export function computeNative(call: NativeCall, range: Range): FloatHistogram | undefined {
  const { natives } = range;
  if (call.name === "last_over_time") return natives.at(-1)?.histogram;
  if (call.name === "first_over_time") return natives[0]?.histogram;
  return FUNCTIONS[call.name]?.(call, range);
}

function added({ frame, at, metric }: NativeCall, { natives }: Range, isAverage: boolean): FloatHistogram | undefined {
  return addAll(
    { frame, at, isAverage },
    natives.map(({ histogram }) => ({ histogram, name: metric })),
  );
}

/** The increase between the first and last sample, stretched to the window's ends like that of numbers. */
function extrapolated(call: NativeCall, range: Range, isCounter: boolean): FloatHistogram | undefined {
  const { natives } = range;
  const [first, last] = [natives[0], natives.at(-1)];
  if (!first || !last || natives.length < 2) return undefined;
  const change = increaseOf(call, natives, isCounter);
  if (!change) return undefined;
  const sampled = (last.time - first.time) / 1000;
  const between = sampled / (natives.length - 1);
  let toStart = (first.time - (range.end_ms - range.range_ms)) / 1000;
  let toEnd = (range.end_ms - last.time) / 1000;
  if (toStart >= between * 1.1) toStart = between / 2;
  if (toEnd >= between * 1.1) toEnd = between / 2;
  if (isCounter && change.count > 0 && first.histogram.count >= 0)
    toStart = Math.min(toStart, sampled * (first.histogram.count / change.count));
  return scaled(change, (sampled + toStart + toEnd) / sampled);
}

/** Adds up histograms and says what has to be said about it. */
export class Accumulator {
  readonly #call: NativeCall;
  readonly #sum: HistogramSum;

  constructor(call: NativeCall, first: FloatHistogram) {
    this.#call = call;
    this.#sum = new HistogramSum(first);
  }

  get value(): FloatHistogram {
    return this.#sum.value;
  }

  add(histogram: FloatHistogram, sign: 1 | -1): void {
    const { frame, at } = this.#call;
    if (!this.#sum.add(histogram, sign).reconciled) return;
    const what = sign > 0 ? "addition" : "subtraction";
    inform(frame, `mismatched custom buckets were reconciled during ${what}`, at);
  }
}

/** All have exponential buckets, or all have custom ones. */
export function haveOneLayout(call: NativeCall, histograms: readonly FloatHistogram[]): boolean {
  const [first] = histograms;
  if (!first || histograms.every((one) => hasCustomBuckets(one) === hasCustomBuckets(first))) return true;
  warnMixed(call.frame, call.metric, call.at);
  return false;
}

export function notCounter({ frame, at, metric }: NativeCall): void {
  warn(frame, `this native histogram metric is not a counter: ${JSON.stringify(metric)}`, at);
}

export function notGauge({ frame, at, metric }: NativeCall): void {
  warn(frame, `this native histogram metric is not a gauge: ${JSON.stringify(metric)}`, at);
}

function adviseKind(call: NativeCall, all: readonly FloatHistogram[], isCounter: boolean): void {
  const isGauge = (one: FloatHistogram | undefined): boolean => one?.hint === "gauge";
  if (isCounter && all.some(isGauge)) notCounter(call);
  if (!isCounter && !(isGauge(all[0]) && isGauge(all.at(-1)))) notGauge(call);
}

/** Adds what a counter had reached each time before it was reset. */
function addLost(sum: Accumulator, all: readonly FloatHistogram[]): void {
  for (const [i, now] of all.entries()) {
    const before = all[i - 1];
    if (before && detectReset(now, before)) sum.add(before, 1);
  }
}

function increaseOf(call: NativeCall, natives: readonly NativePoint[], isCounter: boolean): FloatHistogram | undefined {
  const all = natives.map(({ histogram }) => histogram);
  const [first, second] = all as [FloatHistogram, FloatHistogram];
  const last = all.at(-1) as FloatHistogram;
  // What was before a reset right after the first sample does not matter, not even its buckets.
  const isReset = isCounter && detectReset(second, first);
  const start = isReset ? { ...EMPTY_HISTOGRAM, schema: second.schema, bounds: second.bounds } : first;
  const compared = isCounter ? [start, ...all.slice(1)] : [start, last];
  if (!haveOneLayout(call, compared)) return undefined;
  adviseKind(call, all, isCounter);
  const schema = Math.min(...compared.map((one) => one.schema));
  const sum = new Accumulator(call, atSchema(last, schema));
  sum.add(start, -1);
  if (isCounter) addLost(sum, compared);
  return compact(withHint(sum.value, "gauge"));
}

/** The change between the last two samples. */
function instantChange(call: NativeCall, { natives }: Range, isRate: boolean): FloatHistogram | undefined {
  const [before, now] = natives.slice(-2);
  if (!before || !now) return undefined;
  const gauges = [before, now].filter(({ histogram }) => histogram.hint === "gauge").length;
  if (isRate && gauges > 0) notCounter(call);
  if (!isRate && gauges < 2) notGauge(call);
  const sum = new Accumulator(call, now.histogram);
  if (!isRate || !detectReset(now.histogram, before.histogram)) {
    if (!haveOneLayout(call, [before.histogram, now.histogram])) return undefined;
    sum.add(before.histogram, -1);
  }
  const change = compact(withHint(sum.value, "gauge"));
  return isRate ? divided(change, (now.time - before.time) / 1000) : change;
}

/** All samples of the window in the order of time. */
function inOrder({ values, times, from, length, natives }: Range): (number | FloatHistogram)[] {
  const samples: { time: number; value: number | FloatHistogram }[] = [];
  for (let i = from; i < from + length; i++) samples.push({ time: times[i] as number, value: values[i] as number });
  for (const { time, histogram } of natives) samples.push({ time, value: histogram });
  return samples.sort((a, b) => a.time - b.time).map(({ value }) => value);
}

export type Pair = (now: number | FloatHistogram, before: number | FloatHistogram) => boolean;

function countPairs(range: Range, counts: Pair): number {
  const samples = inOrder(range);
  return samples.slice(1).filter((now, i) => counts(now, samples[i] as number | FloatHistogram)).length;
}

export const hasChanged: Pair = (now, before) => {
  if (typeof now === "object" && typeof before === "object") return !equalHistograms(now, before);
  return now !== before && !(Number.isNaN(now) && Number.isNaN(before));
};

/** A series that goes over to the other kind begins anew. */
export const wasReset: Pair = (now, before) => {
  if (typeof now === "object" && typeof before === "object") return detectReset(now, before);
  return typeof now === "object" || typeof before === "object" || now < before;
};

export const changesOf = (range: Range): number => countPairs(range, hasChanged);
export const resetsOf = (range: Range): number => countPairs(range, wasReset);
