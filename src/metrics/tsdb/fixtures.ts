/** Fixtures of the database's tests: a manual clock, appended samples, and all stored samples for comparison. */
import type { Clock } from "#core/clock.ts";
import type { FloatHistogram } from "../histogram/histogram.ts";
import type { Columns, Labels, Matcher, SampleSource } from "../source.ts";
import { newColumns } from "./chunk/chunk.ts";
import { GrowingBatch } from "./ingest/batch.ts";
import { TSDB_LIMITS, type TsdbLimits } from "./limits.ts";
import { Partition } from "./partition.ts";

export const HOUR = 3_600_000;
/** The start of a two-hour window. */
export const NOON = Date.UTC(2026, 0, 10, 12);

export class HandClock implements Clock {
  wall: number;
  mono = 1000;

  constructor(wall = NOON) {
    this.wall = wall;
  }

  now(): number {
    return this.wall;
  }

  monotonic(): number {
    return this.mono;
  }

  async sleep(): Promise<void> {}

  advance(ms: number): void {
    this.wall += ms;
    this.mono += ms;
  }
}

export function openPartition(dir: string, clock: Clock, limits: Partial<TsdbLimits> = {}): Partition {
  return new Partition(dir, clock, { ...TSDB_LIMITS, ...limits });
}

/** Sorted label list of `{ __name__: "up", app: "web" }`. */
export function labelsOf(pairs: Record<string, string>): Labels {
  return Object.entries(pairs)
    .sort(([a], [b]) => (a < b ? -1 : 1))
    .flat();
}

export type Sample = [labels: Labels, time: number, value: number];

const word = new Float64Array(1);
const halves = new Uint32Array(word.buffer);

/** Appends samples, some of which may be native histograms; answers how many were taken. */
export function put(
  partition: Partition,
  samples: readonly (Sample | [labels: Labels, time: number, value: FloatHistogram])[],
): number {
  const batch = new GrowingBatch();
  for (const [labels, time, value] of samples) {
    const ref = partition.admission.series(labels);
    if (ref === undefined) continue;
    if (typeof value === "object") {
      batch.pushHistogram(ref, time, value);
      continue;
    }
    word[0] = value;
    batch.push(ref, time, halves[0] as number, halves[1] as number);
  }
  return partition.append(batch);
}

/** A value as its 64 bits: the only way to distinguish NaNs, and 0 from -0. */
export function bitsOf(value: number): string {
  word[0] = value;
  return `${(halves[1] ?? 0).toString(16)}:${(halves[0] ?? 0).toString(16)}`;
}

/** Everything a source has, as `labels → [time, bits][]`. */
export function contents(
  source: SampleSource,
  selector: Matcher[] = [{ name: "__name__", op: "!=", value: "" }],
  start_ms = -8.64e15,
  end_ms = 8.64e15,
): Map<string, [number, string][]> {
  const found = new Map<string, [number, string][]>();
  const columns = newColumns();
  for (const series of source.select({ selector: [selector], start_ms, end_ms })) {
    series.read(columns);
    if (columns.length > 0) found.set(series.labels.join(","), rows(columns));
  }
  return found;
}

export function rows({ timestamps, values, length }: Columns): [number, string][] {
  return Array.from({ length }, (_, i) => [timestamps[i] ?? 0, bitsOf(values[i] ?? 0)]);
}
