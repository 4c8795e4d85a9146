import {
  type Buckets,
  EMPTY_HISTOGRAM,
  type FloatHistogram,
  LEAST_SCHEMA,
  MOST_SCHEMA,
  NO_BUCKETS,
} from "../histogram/histogram.ts";
import { atSchema } from "../histogram/layout.ts";

/** Exponential histograms of OTLP as native ones: the same buckets, whose numbers begin one later. */

type Long = string | number | bigint;

interface ExponentialBuckets {
  offset?: number;
  bucketCounts?: Long[];
}

export interface ExponentialPoint {
  count?: Long;
  sum?: number;
  scale?: number;
  zeroCount?: Long;
  zeroThreshold?: number;
  positive?: ExponentialBuckets;
  negative?: ExponentialBuckets;
}

/** What OTLP leaves to the sender and most do not say: as Prometheus takes it. */
const ZERO_THRESHOLD = 1e-128;

/** Undefined when the buckets are wider than native histograms have them. A finer scale than theirs is merged. */
export function nativeOf(point: ExponentialPoint): FloatHistogram | undefined {
  const { scale = 0, count = 0, sum = 0, zeroCount = 0, zeroThreshold = 0, positive, negative } = point;
  if (!(scale >= LEAST_SCHEMA)) return undefined;
  const histogram: FloatHistogram = {
    ...EMPTY_HISTOGRAM,
    schema: scale,
    zero_threshold: zeroThreshold > 0 ? zeroThreshold : ZERO_THRESHOLD,
    zero_count: Number(zeroCount),
    count: Number(count),
    sum: Number(sum),
    positive: bucketsFrom(positive),
    negative: bucketsFrom(negative),
  };
  return scale > MOST_SCHEMA ? atSchema(histogram, MOST_SCHEMA) : histogram;
}

function bucketsFrom(buckets: ExponentialBuckets | undefined): Buckets {
  if (!buckets) return NO_BUCKETS;
  const { offset = 0, bucketCounts = [] } = buckets;
  const indexes: number[] = [];
  const counts: number[] = [];
  for (const [i, text] of bucketCounts.entries()) {
    const count = Number(text);
    if (count === 0) continue;
    indexes.push(offset + i + 1);
    counts.push(count);
  }
  return { indexes, counts };
}
