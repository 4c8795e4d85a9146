import { BatchBuilder, spell } from "../batch-builder.ts";
import type { SeriesBatch } from "../tsdb/ingest/series-batch.ts";
import { BUILTIN_LIMITS } from "./limits.ts";
import type { BuiltinSample } from "./sources.ts";

/** Spelled series by their key. */
type Spelled = Map<string, Uint8Array>;

/**
 * Rounds of samples on their way to the engine, one batch per organization. A series that was in the round before and
 * is in this one no more gets a staleness marker: it ends now, and not when a query's lookback runs out.
 */
export class Batches {
  /** The last round, by organization. */
  #last = new Map<string, Spelled>();
  /** Series that were open when this process began, of organizations that had no round yet. */
  readonly #before = new Map<string, readonly Uint8Array[]>();

  knows(org_id: string): boolean {
    return this.#last.has(org_id) || this.#before.has(org_id);
  }

  /** Series of a process before this one: those that are not in the organization's next round end with it. */
  adopt(org_id: string, open: readonly Readonly<Record<string, string>>[]): void {
    this.#before.set(
      org_id,
      open.map(({ __name__: name = "", ...labels }) => spell(name, labels)),
    );
  }

  /** The batches of one round. */
  round(samples: Iterable<BuiltinSample>, timestamp_ms: number): Map<string, SeriesBatch> {
    const next = new Map<string, Spelled>();
    const builders = new Map<string, BatchBuilder>();
    for (const sample of samples) {
      const series = entryOf(next, sample.org_id, () => new Map());
      const key = keyOf(sample);
      // Twice the same series in one round would be two values of one moment; the first one stands.
      if (series.has(key)) continue;
      const known = this.#last.get(sample.org_id)?.get(key);
      const spelled = known ?? spell(sample.name, sample.labels);
      series.set(key, spelled);
      const builder = entryOf(builders, sample.org_id, () => new BatchBuilder());
      // Otherwise nobody could tell what a counter counted before its first sample, and bursts would be missing.
      if (!known && sample.counter) builder.push(spelled, timestamp_ms - BUILTIN_LIMITS.interval_ms, 0);
      builder.push(spelled, timestamp_ms, sample.value);
    }
    for (const [org_id, spelled] of this.#gone(next))
      entryOf(builders, org_id, () => new BatchBuilder()).end(spelled, timestamp_ms);
    this.#last = next;
    return new Map([...builders].map(([org_id, builder]) => [org_id, builder.build()]));
  }

  /** What was there, in the round before or in the process before, and is not in this round. */
  *#gone(next: ReadonlyMap<string, Spelled>): Generator<[org_id: string, spelled: Uint8Array]> {
    for (const [org_id, before] of this.#last) {
      const now = next.get(org_id);
      for (const [key, spelled] of before) if (!now?.has(key)) yield [org_id, spelled];
    }
    for (const [org_id, now] of next) {
      const open = this.#before.get(org_id) ?? [];
      this.#before.delete(org_id);
      const going = new Set(open.length > 0 ? Array.from(now.values(), textOf) : []);
      for (const spelled of open) if (!going.has(textOf(spelled))) yield [org_id, spelled];
    }
  }
}

/** Samples of a single moment that stand for themselves. */
export function batchOnce(samples: readonly BuiltinSample[], timestamp_ms: number): SeriesBatch {
  const builder = new BatchBuilder();
  for (const sample of samples) builder.push(spell(sample.name, sample.labels), timestamp_ms, sample.value);
  return builder.build();
}

/** Labels of one series always come in the same order, so joining them is enough to tell series apart. */
function keyOf({ name, labels }: BuiltinSample): string {
  let key = name;
  for (const label of Object.keys(labels)) key += `\0${label}\0${labels[label]}`;
  return key;
}

const textOf = (spelled: Uint8Array): string => Buffer.from(spelled).toString("latin1");

function entryOf<V>(map: Map<string, V>, key: string, make: () => V): V {
  let value = map.get(key);
  if (value === undefined) {
    value = make();
    map.set(key, value);
  }
  return value;
}
