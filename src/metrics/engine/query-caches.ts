import { RollupCache } from "../promql/engine.ts";
import type { OrgDatabase } from "../tsdb/org-database.ts";
import type { Memory } from "./evaluator.ts";

/** Orgs with cached results, each with a share of the bytes. One more: the oldest is dropped. */
const ORGS_MOST = 8;

/** Samples usually arrive within this: older ones count as settled. */
const SETTLED_MS = 5 * 60_000;

/**
 * Cached query results per database. Only settled steps are cached; when an older sample arrives (a backfill, a delayed
 * sender), the cache is cleared.
 */
export class QueryCaches {
  readonly #bytes: number;
  readonly #known = new Map<OrgDatabase, Memory>();

  constructor(bytes: number) {
    this.#bytes = bytes;
  }

  of(database: OrgDatabase): Memory {
    const { head } = database.partition;
    const known = this.#known.get(database);
    const memory = known ?? {
      cache: new RollupCache(this.#bytes / ORGS_MOST),
      immutable_before_ms: Number.NEGATIVE_INFINITY,
    };
    if (database.partition.takeOldest() < memory.immutable_before_ms) memory.cache.clear();
    memory.immutable_before_ms = head.newest_ms - SETTLED_MS;
    this.#known.delete(database);
    this.#known.set(database, memory);
    const [oldest] = this.#known.keys();
    if (this.#known.size > ORGS_MOST && oldest) this.#known.delete(oldest);
    return memory;
  }
}
