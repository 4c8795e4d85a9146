/** An in-memory database for unit tests of rules: later queries see the recorded series. */

import type { Dialect } from "#metrics/promql/ast.ts";
import { instant } from "#metrics/promql/engine.ts";
import { memorySource } from "#metrics/promql/memory-source.ts";
import { type Labels, STALE_NAN } from "#metrics/source.ts";
import { keyOf } from "../rules/group.ts";
import type { LabelMap, Sample } from "../rules/types.ts";

interface GrowingSeries {
  labels: Labels;
  timestamps: number[];
  values: number[];
}

export class MemoryDatabase {
  readonly #dialect: Dialect;
  readonly #series: GrowingSeries[] = [];
  readonly #byKey = new Map<string, GrowingSeries>();
  readonly #source = memorySource(this.#series);

  constructor(dialect: Dialect) {
    this.#dialect = dialect;
  }

  /** Timestamps of a series must increase; a second value of the same time is dropped. */
  add(labels: LabelMap, timestamp_ms: number, value: number): void {
    const key = keyOf(labels);
    let series = this.#byKey.get(key);
    if (!series) {
      series = { labels: listOf(labels), timestamps: [], values: [] };
      this.#series.push(series);
      this.#byKey.set(key, series);
    }
    const last = series.timestamps.at(-1);
    if (last !== undefined && last >= timestamp_ms) return;
    series.timestamps.push(timestamp_ms);
    series.values.push(value);
  }

  readonly append = async (samples: readonly Sample[], ended: readonly LabelMap[], at_ms: number): Promise<void> => {
    for (const { labels, value } of samples) this.add(labels, at_ms, value);
    for (const labels of ended) this.add(labels, at_ms, STALE_NAN);
  };

  readonly query = async (query: string, time_ms: number): Promise<Sample[]> => {
    const { data } = instant({ query, time_ms, dialect: this.#dialect, source: this.#source });
    if (data.type === "scalar") return [{ labels: {}, value: data.value }];
    if (data.type !== "vector") throw new Error("the result of a rule is a vector or a scalar");
    return data.series.map(({ labels, values }) => ({ labels: mapOf(labels), value: values[0] ?? Number.NaN }));
  };
}

const listOf = (labels: LabelMap): Labels =>
  Object.entries(labels)
    .filter(([, value]) => value !== "")
    .sort(([a], [b]) => (a < b ? -1 : 1))
    .flat();

function mapOf(labels: Labels): LabelMap {
  const pairs: [string, string][] = [];
  for (let at = 0; at < labels.length; at += 2) pairs.push([labels[at] as string, labels[at + 1] as string]);
  return Object.fromEntries(pairs);
}
