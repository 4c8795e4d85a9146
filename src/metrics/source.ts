import type { HistogramTable } from "./histogram/table.ts";

/**
 * The evaluator's source of samples. Implemented by the database (`tsdb/`) and, for tests of the language alone, by a
 * store of plain arrays; both pass `source.suite.ts`.
 *
 * Terms: a *series* is one set of labels, `__name__` among them; its samples have strictly rising
 * timestamps. A *selector* is an OR of ANDs of matchers. Everything here is synchronous, because it runs in
 * the worker thread that owns the data.
 */

/** Names and values alternating, sorted by name: `["__name__", "up", "app", "web"]`. Never changed once made. */
export type Labels = readonly string[];

export interface Matcher {
  name: string;
  op: "=" | "!=" | "=~" | "!~";
  value: string;
}

export interface Selection {
  /** Any of these conjunctions. A matcher on an absent label sees the empty string. */
  selector: readonly (readonly Matcher[])[];
  /** Both ends included. */
  start_ms: number;
  end_ms: number;
}

/** Columns that grow; the caller owns them and uses them again for the next series. */
export interface Columns {
  timestamps: Float64Array;
  values: Float64Array;
  length: number;
  /** Where native histograms are put, to which `values` refers. Without it they are left out. */
  histograms?: HistogramTable;
  /** What was appended may not be in the order of time. */
  unsure?: boolean;
}

export interface Series {
  /** The same number for the same series as long as the source is open. */
  readonly ref: number;
  readonly labels: Labels;
  /** Puts the samples of the selection's range into `into`, oldest first, staleness markers included. */
  read(into: Columns): void;
  /** The newest sample in (after_ms, at_ms], without touching the rest; undefined when there is none. */
  newest(after_ms: number, at_ms: number): { timestamp: number; value: number } | undefined;
}

export interface SampleSource {
  /**
   * Series that match and may have samples in the range (reading one may still give none), in an order that
   * makes reading them one after the other cheap. Holds no samples: reading is what costs.
   */
  select(selection: Selection): Iterable<Series> & { readonly count: number };
}

/** The NaN that says "this series ended here": Prometheus' bit pattern, the only NaN that means it. */
export const STALE_NAN = ((): number => {
  const bytes = new DataView(new ArrayBuffer(8));
  bytes.setBigUint64(0, 0x7ff0000000000002n);
  return bytes.getFloat64(0);
})();

const words = new Uint32Array(2);
const probe = new Float64Array(words.buffer);

export function isStale(value: number): boolean {
  if (!Number.isNaN(value)) return false;
  probe[0] = value;
  return words[0] === 2 && (words[1] ?? 0) >>> 0 === 0x7ff00000;
}
