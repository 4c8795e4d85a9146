import type { Labels } from "../../source.ts";

/** Rows of an expression over steps that can no longer change. */
export interface CachedRows {
  start_ms: number;
  end_ms: number;
  rows: { labels: Labels; values: Float64Array }[];
}

/**
 * Caches rollup results for dashboards, which repeat a query with a later end. One cache belongs to one source; it
 * holds only steps before the time up to which the caller guarantees that nothing changes, so new samples never
 * invalidate it. When samples are written before that time after all, the caller clears it.
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

  /** When full, the least recently used result is evicted; one that would fill a quarter alone is not cached. */
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
