/** Limits of external metrics storage. Each comment says what happens when the limit is reached. */
const MIB = 1024 * 1024;
const HOUR = 3600_000;

export const REMOTE_LIMITS = {
  /** Size of the queue on disk. Past it the oldest segment is dropped, counted and logged. */
  queue_bytes: 1024 * MIB,
  /** Size of a segment of the queue; it is deleted when all of it was sent. */
  queue_segment_bytes: 16 * MIB,
  /** Size of one write request before compression. More is sent with the next. */
  request_bytes: 2 * MIB,
  /** Time for which samples are batched before they are sent. */
  gather_ms: 500,
  /** Timeout of a write. Past it the write is retried. */
  write_ms: 30_000,
  /** Delay between attempts while the storage accepts no writes; doubled each time, up to the second value. */
  retry_ms: 1000,
  retry_most_ms: 30_000,
  /** Timeout of a query. Past it: 503 `query_timeout`. */
  read_ms: 35_000,
  /** Size of a query's response. Past it: 422 `query_failed`. */
  answer_bytes: 256 * MIB,
  /** Encoded series that are cached. Past it the cache is cleared. */
  series_known: 500_000,
  /** Lifetime of that cache. An app's series (`series_per_app`) are counted within it. */
  series_known_ms: 2 * HOUR,
} as const;
