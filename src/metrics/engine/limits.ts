/** Bounds of the way into the metrics worker, with what happens at them. */
const MIB = 1024 * 1024;

export const ENGINE_LIMITS = {
  /** Writes on their way to the worker. One more: 503 `overloaded`. */
  writes_queued: 256,
  /** Bytes of those writes together. More: 503 `overloaded`. */
  write_bytes_queued: 64 * MIB,
  /** Questions on their way to the worker. One more: 503 `overloaded`. */
  questions_queued: 128,
  /** A worker that ended unexpectedly is started again so often within `restart_span_ms`; then no more. */
  restarts: 5,
  restart_span_ms: 60_000,
  /** The worker's JavaScript heap. Past it the worker ends, is started again and replays its log. */
  heap_mib: 512,
  /**
   * Where new objects live in the worker. Small, answers are built in twice the time, because what is being built
   * is moved again and again; large, memory stays taken after a query.
   */
  young_heap_mib: 8,
  /** How often the worker looks for what time brings: idle windows, merges, retention. */
  maintain_ms: 5000,
} as const;

export type EngineLimits = { -readonly [Name in keyof typeof ENGINE_LIMITS]: number };
