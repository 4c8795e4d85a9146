import { isStaleAt } from "../../nan-bits.ts";
import { mad, mode, quantileOfSorted, regression, sortedValues, variance } from "../statistics.ts";
import { lag, last, scrapeInterval } from "./kernels.ts";
import type { Kernel, Window } from "./window.ts";

/** Rollup functions that look at every sample of the window. */

const NONE = Number.NaN;
const count = (w: Window): number => w.to - w.from;

/** Folds the values of the window, or nothing when it is empty. */
function fold(start: number, step: (sum: number, value: number) => number): Kernel {
  return (w) => {
    if (w.to === w.from) return NONE;
    let sum = start;
    for (let i = w.from; i < w.to; i++) sum = step(sum, w.values[i] as number);
    return sum;
  };
}

export const sum: Kernel = (w) => {
  if (w.to === w.from) return NONE;
  let total = 0;
  for (let i = w.from; i < w.to; i++) total += w.values[i] as number;
  return total;
};
export const average: Kernel = (w) => sum(w) / count(w);
export const sumOfSquares: Kernel = fold(0, (a, v) => a + v * v);
export const minimum: Kernel = fold(Number.POSITIVE_INFINITY, Math.min);
export const maximum: Kernel = fold(Number.NEGATIVE_INFINITY, Math.max);
export const range: Kernel = (w) => maximum(w) - minimum(w);
const product: Kernel = fold(1, (a, v) => a * v);
export const geometricMean: Kernel = (w) => product(w) ** (1 / count(w));
export const stdvar: Kernel = (w) => variance(w.values, w.from, w.to);
export const stddev: Kernel = (w) => Math.sqrt(stdvar(w));
/** Samples that are increments already, so their sum is the increase. */
export const rateOverSum: Kernel = (w) => sum(w) / (w.length / 1000);

const sorted = (w: Window): Float64Array => sortedValues(w.values, w.from, w.to);

export const median: Kernel = (w) => quantileOfSorted(0.5, sorted(w));
export const deviation: Kernel = (w) => mad(w.values.subarray(w.from, w.to));
/** The sample before the window counts, too. */
export const mostFrequent: Kernel = (w) => mode(sorted(w), w.previous);
export const distinct: Kernel = (w) => (count(w) === 0 ? NONE : new Set(w.values.subarray(w.from, w.to)).size);

/** The last value when it lies outside one and a half times the middle half. */
export const outlier: Kernel = (w) => {
  if (count(w) < 2) return NONE;
  const all = sorted(w);
  const q25 = quantileOfSorted(0.25, all);
  const q75 = quantileOfSorted(0.75, all);
  const reach = 1.5 * (q75 - q25);
  const value = last(w);
  return value > q75 + reach || value < q25 - reach ? value : NONE;
};

/** Time of the newest sample that has the extreme value. */
function extremeTime(better: (a: number, b: number) => boolean): Kernel {
  return (w) => {
    if (count(w) === 0) return NONE;
    let at = w.from;
    for (let i = w.from; i < w.to; i++) {
      if (!better(w.values[at] as number, w.values[i] as number)) at = i;
    }
    return (w.times[at] as number) / 1000;
  };
}

export const minimumTime: Kernel = extremeTime((a, b) => a < b);
export const maximumTime: Kernel = extremeTime((a, b) => a > b);

export const slope: Kernel = (w) => regression(w.values, w.times, w.from, w.to, w.now)[1];

/** A window whose last sample is older than usual says nothing about now. */
export const zscore: Kernel = (w) => {
  const interval = scrapeInterval(w);
  const behind = lag(w);
  if (Number.isNaN(interval) || Number.isNaN(behind) || behind > interval) return NONE;
  const apart = last(w) - average(w);
  return apart === 0 ? 0 : apart / stddev(w);
};

export const staleSamples: Kernel = (w) => {
  if (count(w) === 0) return NONE;
  let found = 0;
  for (let i = w.from; i < w.to; i++) if (isStaleAt(w.values, i)) found++;
  return found;
};

/** The functions below take a number that may differ from step to step. */
type Numbers = Float64Array;

export function filtered(
  limits: Numbers,
  holds: (v: number, limit: number) => boolean,
  what: "count" | "share" | "sum",
): Kernel {
  return (w) => {
    if (count(w) === 0) return NONE;
    const limit = limits[w.index] as number;
    let total = 0;
    for (let i = w.from; i < w.to; i++) {
      const value = w.values[i] as number;
      if (holds(value, limit)) total += what === "sum" ? value : 1;
    }
    return what === "share" ? total / count(w) : total;
  };
}

export function quantileOver(phis: Numbers): Kernel {
  return (w) => quantileOfSorted(phis[w.index] as number, sorted(w));
}

export function predict(ahead: Numbers): Kernel {
  return (w) => {
    const [value, perSecond] = regression(w.values, w.times, w.from, w.to, w.now);
    return value + perSecond * (ahead[w.index] as number);
  };
}

export function duration(longest: Numbers): Kernel {
  return (w) => {
    if (count(w) === 0) return NONE;
    const most = Math.trunc((longest[w.index] as number) * 1000);
    let total = 0;
    for (let i = w.from + 1; i < w.to; i++) {
      const gap = (w.times[i] as number) - (w.times[i - 1] as number);
      if (gap <= most) total += gap;
    }
    return total / 1000;
  };
}

/** Hoeffding's inequality: how far the true average may lie from the measured one, with probability phi. */
export function hoeffding(phis: Numbers, sign: 1 | -1): Kernel {
  return (w) => {
    if (count(w) === 0) return NONE;
    const middle = average(w);
    const spread = range(w);
    const phi = phis[w.index] as number;
    if (count(w) === 1 || spread <= 0 || phi <= 0) return middle;
    if (phi >= 1) return sign * Number.POSITIVE_INFINITY;
    return middle + sign * spread * Math.sqrt(Math.log(1 / (1 - phi)) / (2 * count(w)));
  };
}

/** Double exponential smoothing with factors for the level and the trend. */
export function holtWinters(levels: Numbers, trends: Numbers): Kernel {
  return (w) => {
    const level = levels[w.index] as number;
    const trend = trends[w.index] as number;
    const outside = level < 0 || level > 1 || trend < 0 || trend > 1;
    if (count(w) === 0 || outside) return NONE;
    let i = w.from;
    let value = Number.isNaN(w.previous) ? (w.values[i++] as number) : w.previous;
    if (i === w.to) return value;
    let slopeNow = (w.values[i] as number) - value;
    for (; i < w.to; i++) {
      const next = level * (w.values[i] as number) + (1 - level) * (value + slopeNow);
      slopeNow = trend * (next - value) + (1 - trend) * slopeNow;
      value = next;
    }
    return value;
  };
}
