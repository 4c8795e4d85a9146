/** Bounds of the way into the metrics worker, with what happens at them. */
const MIB = 1024 * 1024;

export const ENGINE_LIMITS = {
  /** Writes queued for the worker. One more: 503 `overloaded`. */
  writes_queued: 256,
  /** Total size of those writes. More: 503 `overloaded`. */
  write_bytes_queued: 64 * MIB,
  /** Queries queued for the worker. One more: 503 `overloaded`. */
  questions_queued: 128,
  /** Restarts of a crashed worker within `restart_span_ms`; then no more. */
  restarts: 5,
  /** Time in which `restarts` are counted. */
  restart_span_ms: 60_000,
  /** The worker's JavaScript heap. Past it the worker crashes, restarts and replays its WAL. */
  heap_mib: 512,
  /**
   * The worker's young generation. Smaller: results take twice as long, because objects are copied repeatedly; larger:
   * memory stays in use after a query.
   */
  young_heap_mib: 8,
  /** Interval of maintenance: idle windows, compaction, retention. */
  maintain_ms: 5000,
} as const;

export type EngineLimits = { -readonly [Name in keyof typeof ENGINE_LIMITS]: number };
