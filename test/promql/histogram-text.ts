/** Native histograms of scripts: `{{schema:0 sum:5 count:4 buckets:[1 2 1]}}`, added up as in `{{…}}+{{…}}x3`. */
import { bucketsOf, compact, EMPTY_HISTOGRAM, type FloatHistogram, RESET_HINTS } from "#metrics/histogram/histogram.ts";
import { combined } from "#metrics/promql/strict/histogram-sum.ts";

export interface HistogramPoint {
  histogram: FloatHistogram;
  /** Its hint was written down, so it has to be the same. */
  hinted: boolean;
}

const FIELDS = new Set(
  "schema sum count z_bucket z_bucket_w custom_values buckets offset n_buckets n_offset counter_reset_hint".split(" "),
);

/** The points of an item without its `xN`: the first, and one more for each time that the second part is added. */
export function histogramPoints(body: string, times: number): HistogramPoint[] {
  const [, first = "", sign, more] = /^\{\{(.*?)\}\}(?:([+-])\{\{(.*?)\}\})?$/.exec(body) ?? [];
  const start = readHistogram(first);
  const step = more === undefined ? undefined : readHistogram(more);
  const hinted = (step ?? start).hinted;
  const points = [{ histogram: start.histogram, hinted }];
  while (points.length < times) {
    const { histogram } = points.at(-1) as HistogramPoint;
    const next = step ? combined(histogram, step.histogram, sign === "-" ? -1 : 1).value : histogram;
    points.push({ histogram: next, hinted });
  }
  return points;
}

function readHistogram(text: string): HistogramPoint {
  const fields = new Map<string, string>();
  for (const [, name = "", value = ""] of text.matchAll(/(\w+):(\[[^\]]*\]|\S+)/g)) {
    if (!FIELDS.has(name)) throw new Error(`${JSON.stringify(name)} is no field of a histogram`);
    fields.set(name, value);
  }
  const one = (name: string): number => number(fields.get(name) ?? "0");
  const list = (name: string): number[] =>
    (fields.get(name) ?? "[]")
      .slice(1, -1)
      .split(" ")
      .filter((item) => item !== "")
      .map(number);
  const side = (buckets: string, offset: string): FloatHistogram["positive"] => {
    const counts = list(buckets);
    return bucketsOf([{ offset: one(offset), length: counts.length }], counts);
  };
  const hint = RESET_HINTS.find((name) => name === fields.get("counter_reset_hint"));
  const histogram: FloatHistogram = {
    ...EMPTY_HISTOGRAM,
    hint: hint ?? "unknown",
    schema: one("schema"),
    count: one("count"),
    sum: one("sum"),
    zero_count: one("z_bucket"),
    zero_threshold: one("z_bucket_w"),
    positive: side("buckets", "offset"),
    negative: side("n_buckets", "n_offset"),
    bounds: list("custom_values"),
  };
  return { histogram, hinted: fields.has("counter_reset_hint") };
}

function number(text: string): number {
  const value = Number(text.replace(/inf(inity)?$/i, "Infinity"));
  if (Number.isNaN(value) && !/^[+-]?nan$/i.test(text)) throw new Error(`${JSON.stringify(text)} is no number`);
  return value;
}

/** Equal to six digits; empty buckets do not count, and hints only where they were written down. */
export function sameHistogram(
  wanted: HistogramPoint,
  got: FloatHistogram,
  almostEqual: (a: number, b: number) => boolean,
): boolean {
  const [a, b] = [compact(wanted.histogram), compact(got)];
  const same = (x: readonly number[], y: readonly number[], equal = Object.is as typeof almostEqual): boolean =>
    x.length === y.length && x.every((value, i) => equal(value, y[i] as number));
  return (
    a.schema === b.schema &&
    a.zero_threshold === b.zero_threshold &&
    same([a.count, a.sum, a.zero_count], [b.count, b.sum, b.zero_count], almostEqual) &&
    same(a.bounds, b.bounds) &&
    same(a.positive.indexes, b.positive.indexes) &&
    same(a.negative.indexes, b.negative.indexes) &&
    same(a.positive.counts, b.positive.counts, almostEqual) &&
    same(a.negative.counts, b.negative.counts, almostEqual) &&
    (!wanted.hinted || a.hint === b.hint)
  );
}
