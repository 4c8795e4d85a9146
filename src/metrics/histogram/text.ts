import { formatShort } from "../promql/numbers.ts";
import { type Bucket, negativeBucket, places, positiveBucket, zeroBucket } from "./buckets.ts";
import type { FloatHistogram } from "./histogram.ts";

/** As Prometheus writes a histogram in a label: `{count:10, sum:2.5, [-0.1,0.1]:1, (0.5,1]:9}`. */
export function showHistogram(histogram: FloatHistogram): string {
  const { positive, negative } = histogram;
  const buckets = [
    ...places(negative)
      .reverse()
      .map((place) => negativeBucket(histogram, place)),
    zeroBucket(histogram),
    ...places(positive).map((place) => positiveBucket(histogram, place)),
  ].filter(({ count }) => count !== 0);
  const head = `count:${formatShort(histogram.count)}, sum:${formatShort(histogram.sum)}`;
  return `{${[head, ...buckets.map(showBucket)].join(", ")}}`;
}

function showBucket({ lower, upper, count, lower_included, upper_included }: Bucket): string {
  const [open, close] = [lower_included ? "[" : "(", upper_included ? "]" : ")"];
  return `${open}${formatShort(lower)},${formatShort(upper)}${close}:${formatShort(count)}`;
}
