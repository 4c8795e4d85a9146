/** What `load` fills: series of plain samples, staleness markers and histograms as the bits that mean them. */

import { CUSTOM_SCHEMA, compact, EMPTY_HISTOGRAM, type FloatHistogram } from "#metrics/histogram/histogram.ts";
import { hintAfter } from "#metrics/histogram/reset.ts";
import { putStale } from "#metrics/nan-bits.ts";
import { labelsKey, labelValue, setLabel } from "#metrics/promql/labels.ts";
import { type MemorySeries, memorySource } from "#metrics/promql/memory-source.ts";
import type { Labels, SampleSource } from "#metrics/source.ts";
import type { LoadedSeries, Point } from "./script.ts";

/** A sample in the storage. */
type Sample = number | "stale" | FloatHistogram;

export class Storage {
  #series = new Map<string, { labels: Labels; samples: Map<number, Sample> }>();
  clear(): void {
    this.#series.clear();
  }

  /** Sample i is at i steps. Within one load the last line about a series counts; loads add to each other. */
  load(step_ms: number, series: LoadedSeries[]): void {
    const last = new Map(series.map((one) => [labelsKey(one.labels), one]));
    for (const [key, { labels, points }] of last) {
      const known = this.#series.get(key) ?? { labels, samples: new Map<number, Sample>() };
      this.#series.set(key, known);
      for (const [i, point] of points.entries()) {
        if (point !== "missing") known.samples.set(i * step_ms, typeof point === "object" ? point.histogram : point);
      }
    }
  }

  /** Classic buckets once more as native histograms with custom buckets, under the name without `_bucket`. */
  loadCustomBuckets(step_ms: number, series: LoadedSeries[]): void {
    const groups = Map.groupBy(
      series.map(classicPart).filter((part) => part !== undefined),
      ({ key }) => key,
    );
    for (const [key, parts] of groups) {
      const samples = new Map<number, Sample>();
      this.#series.set(key, { labels: (parts[0] as ClassicPart).labels, samples });
      const steps = Math.max(...parts.map(({ points }) => points.length));
      for (let i = 0; i < steps; i++) {
        const there = parts.filter(({ points }) => typeof points[i] === "number");
        if (there.length > 0) samples.set(i * step_ms, customHistogram(there, i));
      }
    }
  }

  source(): SampleSource {
    return memorySource([...this.#series.values()].map(({ labels, samples }) => toSeries(labels, samples)));
  }
}

/** A series of a classic histogram; `le` is that of a bucket. */
interface ClassicPart {
  key: string;
  labels: Labels;
  kind: string;
  le: number;
  points: Point[];
}

function classicPart({ labels, points }: LoadedSeries): ClassicPart | undefined {
  const name = labelValue(labels, "__name__");
  const kind = /_(?:bucket|sum|count)$/.exec(name)?.[0];
  if (!kind) return undefined;
  const base = setLabel(setLabel(labels, "le", ""), "__name__", name.slice(0, -kind.length));
  const le = Number(labelValue(labels, "le").replace(/^\+?Inf$/, "Infinity"));
  return Number.isNaN(le) ? undefined : { key: labelsKey(base), labels: base, kind, le, points };
}

function customHistogram(parts: ClassicPart[], i: number): FloatHistogram {
  const value = ({ points }: ClassicPart): number => points[i] as number;
  const buckets = parts.filter(({ kind }) => kind === "_bucket").sort((a, b) => a.le - b.le);
  const of = (name: string): ClassicPart | undefined => parts.find(({ kind }) => kind === name);
  const counted = of("_count") ?? buckets.at(-1);
  const count = counted ? value(counted) : 0;
  const cumulative = [...buckets.filter(({ le }) => le !== Number.POSITIVE_INFINITY).map(value), count];
  const summed = of("_sum");
  return compact({
    ...EMPTY_HISTOGRAM,
    schema: CUSTOM_SCHEMA,
    count,
    sum: summed ? value(summed) : 0,
    bounds: buckets.map(({ le }) => le).filter((le) => le !== Number.POSITIVE_INFINITY),
    positive: { indexes: [...cumulative.keys()], counts: cumulative.map((one, n) => one - (cumulative[n - 1] ?? 0)) },
  });
}

function toSeries(labels: Labels, samples: Map<number, Sample>): MemorySeries {
  const sorted = [...samples].sort(([a], [b]) => a - b);
  const values = new Float64Array(sorted.length);
  const histograms: (FloatHistogram | undefined)[] = [];
  let before: FloatHistogram | undefined;
  for (const [i, [, point]] of sorted.entries()) {
    const histogram = typeof point === "object" ? hintAfter(point, before) : undefined;
    if (point === "stale") putStale(values, i);
    else values[i] = typeof point === "number" ? point : Number.NaN;
    histograms.push(histogram);
    before = histogram;
  }
  return { labels, timestamps: Float64Array.from(sorted, ([time]) => time), values, histograms };
}
