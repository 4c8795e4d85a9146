import {
  type Buckets,
  EMPTY_HISTOGRAM,
  type FloatHistogram,
  hasCustomBuckets,
  type ResetHint,
  sameNumbers,
} from "../../histogram/histogram.ts";
import { atBounds, atSchema, atThreshold, commonBounds, commonThreshold } from "../../histogram/layout.ts";
import { Sum } from "./sums.ts";

/** Arithmetic of native histograms. Every count keeps its small digits, as sums of numbers do. */

/** Exponential and custom buckets have nothing in common. */
export class MixedSchemas extends Error {
  override readonly name = "MixedSchemas";
}

/** What somebody should be told about an addition. */
export interface SumNotes {
  /** One says that the counter was reset, the other that it was not. */
  collision: boolean;
  /** Custom buckets had different bounds. */
  reconciled: boolean;
}

const hasSameBuckets = (a: FloatHistogram, b: FloatHistogram): boolean =>
  a.schema === b.schema && a.zero_threshold === b.zero_threshold && sameNumbers(a.bounds, b.bounds);

/** A histogram that grows. */
export class HistogramSum {
  #layout: FloatHistogram;
  #count = new Sum();
  #sum = new Sum();
  #zero = new Sum();
  #positive = new Map<number, Sum>();
  #negative = new Map<number, Sum>();

  constructor(first: FloatHistogram) {
    this.#layout = first;
    this.#take(first, 1);
  }

  /** Throws MixedSchemas. */
  add(other: FloatHistogram, sign: 1 | -1 = 1): SumNotes {
    const mine = this.#layout;
    if (hasCustomBuckets(mine) !== hasCustomBuckets(other)) throw new MixedSchemas("exponential and custom buckets");
    const { hint, collision } = commonHint(mine.hint, other.hint);
    if (hasSameBuckets(mine, other)) {
      this.#layout = { ...mine, hint };
      this.#take(other, sign);
      return { collision, reconciled: false };
    }
    const [a, b] = aligned(this.value, other);
    if (!hasSameBuckets(a, mine)) this.#begin(a);
    this.#layout = { ...a, hint };
    this.#take(b, sign);
    return { collision, reconciled: hasCustomBuckets(mine) };
  }

  /** Changes every count in proportion. */
  change(by: (count: number) => number): void {
    for (const sum of this.#sums()) {
      sum.total = by(sum.total);
      sum.lost = by(sum.lost);
    }
  }

  /** A copy that goes its own way. */
  clone(): HistogramSum {
    const copy = new HistogramSum(EMPTY_HISTOGRAM);
    copy.#layout = this.#layout;
    copy.#count = copied(this.#count);
    copy.#sum = copied(this.#sum);
    copy.#zero = copied(this.#zero);
    copy.#positive = new Map(Array.from(this.#positive, ([index, sum]) => [index, copied(sum)]));
    copy.#negative = new Map(Array.from(this.#negative, ([index, sum]) => [index, copied(sum)]));
    return copy;
  }

  get overflows(): boolean {
    return this.#sums().some(({ total }) => Math.abs(total) === Number.POSITIVE_INFINITY);
  }

  get value(): FloatHistogram {
    return {
      ...this.#layout,
      count: this.#count.value,
      sum: this.#sum.value,
      zero_count: this.#zero.value,
      positive: listed(this.#positive),
      negative: listed(this.#negative),
    };
  }

  #sums(): Sum[] {
    return [this.#count, this.#sum, this.#zero, ...this.#positive.values(), ...this.#negative.values()];
  }

  /** Begins anew with other buckets. */
  #begin(histogram: FloatHistogram): void {
    this.#zero = new Sum();
    this.#zero.add(histogram.zero_count);
    this.#positive.clear();
    this.#negative.clear();
    addBuckets(this.#positive, histogram.positive, 1);
    addBuckets(this.#negative, histogram.negative, 1);
  }

  #take(histogram: FloatHistogram, sign: 1 | -1): void {
    this.#count.add(sign * histogram.count);
    this.#sum.add(sign * histogram.sum);
    this.#zero.add(sign * histogram.zero_count);
    addBuckets(this.#positive, histogram.positive, sign);
    addBuckets(this.#negative, histogram.negative, sign);
  }
}

function copied({ total, lost }: Sum): Sum {
  return Object.assign(new Sum(), { total, lost });
}

function addBuckets(into: Map<number, Sum>, { indexes, counts }: Buckets, sign: 1 | -1): void {
  for (const [i, index] of indexes.entries()) {
    let sum = into.get(index);
    if (!sum) {
      sum = new Sum();
      into.set(index, sum);
    }
    sum.add(sign * (counts[i] as number));
  }
}

function listed(sums: Map<number, Sum>): Buckets {
  const indexes = [...sums.keys()].sort((a, b) => a - b);
  return { indexes, counts: indexes.map((index) => sums.get(index)?.value ?? 0) };
}

/** Both with the same buckets. */
function aligned(a: FloatHistogram, b: FloatHistogram): [FloatHistogram, FloatHistogram] {
  if (hasCustomBuckets(a)) {
    const bounds = commonBounds(a.bounds, b.bounds);
    return [atBounds(a, bounds), atBounds(b, bounds)];
  }
  const threshold = commonThreshold(a, b);
  const schema = Math.min(a.schema, b.schema);
  const fit = (one: FloatHistogram): FloatHistogram => atSchema(atThreshold(one, threshold), schema);
  return [fit(a), fit(b)];
}

function commonHint(a: ResetHint, b: ResetHint): { hint: ResetHint; collision: boolean } {
  if (a === b || a === "gauge") return { hint: a, collision: false };
  if (b === "gauge") return { hint: "gauge", collision: false };
  if (a === "unknown" || b === "unknown") return { hint: "unknown", collision: false };
  return { hint: "unknown", collision: true };
}

/** Multiplied by a number. */
export function scaled(histogram: FloatHistogram, factor: number): FloatHistogram {
  return mapCounts(histogram, (count) => count * factor, factor < 0);
}

/** Divided by a number; by 0 no bucket is left. */
export function divided(histogram: FloatHistogram, divisor: number): FloatHistogram {
  const { schema, hint, zero_threshold, bounds } = histogram;
  const out = mapCounts(histogram, (count) => count / divisor, divisor < 0);
  if (divisor !== 0) return out;
  const { count, sum, zero_count } = out;
  return { ...EMPTY_HISTOGRAM, schema, hint, zero_threshold, bounds, count, sum, zero_count };
}

function mapCounts(histogram: FloatHistogram, change: (n: number) => number, isNegative: boolean): FloatHistogram {
  const side = ({ indexes, counts }: Buckets): Buckets => ({ indexes, counts: counts.map(change) });
  return {
    ...histogram,
    count: change(histogram.count),
    sum: change(histogram.sum),
    zero_count: change(histogram.zero_count),
    positive: side(histogram.positive),
    negative: side(histogram.negative),
    ...(isNegative ? { hint: "gauge" } : {}),
  };
}

/** The sum of two, or their difference. Throws MixedSchemas. */
export function combined(
  a: FloatHistogram,
  b: FloatHistogram,
  sign: 1 | -1,
): { value: FloatHistogram; notes: SumNotes } {
  const sum = new HistogramSum(a);
  const notes = sum.add(b, sign);
  return { value: sum.value, notes };
}
