/** What `load` fills: series of plain samples, staleness markers and histograms as the bits that mean them. */
import { labelsKey, labelValue, setLabel } from "#metrics/promql/labels.ts";
import { type MemorySeries, memorySource } from "#metrics/promql/memory-source.ts";
import { putHistogram, putStale } from "#metrics/promql/nan-bits.ts";
import type { Bucket, HistogramSource } from "#metrics/promql/strict/histograms.ts";
import type { Labels } from "#metrics/source.ts";
import type { LoadedSeries, Point } from "./script.ts";

/** A sample in the storage; a native histogram by its number. */
type Sample = number | "stale" | { id: number };

export class Storage {
  #series = new Map<string, { labels: Labels; samples: Map<number, Sample> }>();
  readonly #histograms: Bucket[][] = [[]];

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
        if (point !== "missing") known.samples.set(i * step_ms, typeof point === "object" ? { id: 0 } : point);
      }
    }
  }

  /** Classic buckets once more as native histograms with custom buckets, under the name without `_bucket`. */
  loadCustomBuckets(step_ms: number, series: LoadedSeries[]): void {
    const groups = new Map<string, { labels: Labels; buckets: { le: number; points: Point[] }[] }>();
    for (const { labels, points } of series) {
      const [name, le] = [labelValue(labels, "__name__"), labelValue(labels, "le")];
      if (!name.endsWith("_bucket") || le === "") continue;
      const base = setLabel(setLabel(labels, "le", ""), "__name__", name.slice(0, -"_bucket".length));
      const group = groups.get(labelsKey(base)) ?? { labels: base, buckets: [] };
      groups.set(labelsKey(base), group);
      group.buckets.push({ le: Number(le.replace("Inf", "Infinity")), points });
    }
    for (const [key, { labels, buckets }] of groups) {
      buckets.sort((a, b) => a.le - b.le);
      const samples = new Map<number, Sample>();
      this.#series.set(key, { labels, samples });
      for (let i = 0; i < Math.max(...buckets.map((b) => b.points.length)); i++) {
        const counts = buckets.map(({ le, points }) => ({ le, count: points[i] }));
        if (!counts.every((c): c is Bucket => typeof c.count === "number")) continue;
        samples.set(i * step_ms, { id: this.#histograms.push(counts) - 1 });
      }
    }
  }

  source(): HistogramSource {
    const all = [...this.#series.values()].map(({ labels, samples }) => toColumns(labels, samples));
    return { ...memorySource(all), histogram: (id) => (id === 0 ? undefined : this.#histograms[id]) };
  }
}

function toColumns(labels: Labels, samples: Map<number, Sample>): MemorySeries {
  const sorted = [...samples].sort(([a], [b]) => a - b);
  const values = new Float64Array(sorted.length);
  for (const [i, [, point]] of sorted.entries()) {
    if (point === "stale") putStale(values, i);
    else if (typeof point === "number") values[i] = point;
    else putHistogram(values, i, point.id);
  }
  return { labels, timestamps: Float64Array.from(sorted, ([time]) => time), values };
}
