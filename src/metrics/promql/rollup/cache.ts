import type { Labels } from "../../source.ts";

/** Rows of an expression over steps that can no longer change. */
export interface CachedRows {
  start_ms: number;
  end_ms: number;
  rows: { labels: Labels; values: Float64Array }[];
}

/**
 * Rollup results kept for dashboards, which ask the same again with a later end. One cache belongs to one source; it
 * holds only steps before the moment up to which the caller says that nothing changes any more, so new samples never
 * make it wrong. When samples are written before that moment after all, the caller clears it.
 */
export class RollupCache {
  readonly #limit_bytes: number;
  /** Oldest use first. */
  readonly #entries = new Map<string, CachedRows & { bytes: number }>();
  #bytes = 0;

  constructor(limit_bytes: number) {
    this.#limit_bytes = limit_bytes;
  }

  get bytes(): number {
    return this.#bytes;
  }

  get(key: string): CachedRows | undefined {
    const entry = this.#entries.get(key);
    if (!entry) return undefined;
    this.#entries.delete(key);
    this.#entries.set(key, entry);
    return entry;
  }

  /** When full, what was not asked for the longest goes; what alone would fill a quarter is not kept at all. */
  put(key: string, rows: CachedRows): void {
    this.#drop(key);
    const bytes = rows.rows.reduce(
      (sum, row) => sum + row.values.length * 8 + row.labels.length * 32,
      key.length * 2 + 200,
    );
    if (bytes > this.#limit_bytes / 4) return;
    this.#entries.set(key, { ...rows, bytes });
    this.#bytes += bytes;
    for (const oldest of this.#entries.keys()) {
      if (this.#bytes <= this.#limit_bytes) break;
      this.#drop(oldest);
    }
  }

  clear(): void {
    this.#entries.clear();
    this.#bytes = 0;
  }

  #drop(key: string): void {
    const entry = this.#entries.get(key);
    if (!entry) return;
    this.#entries.delete(key);
    this.#bytes -= entry.bytes;
  }
}
