/** Bounds of the way to a metrics engine elsewhere, with what happens at them. */
const MIB = 1024 * 1024;
const HOUR = 3600_000;

export const REMOTE_LIMITS = {
  /** Samples on the disk that wait for the engine. Past it the oldest part is dropped, counted and logged. */
  queue_bytes: 1024 * MIB,
  /** A part of the queue; it goes when all of it was sent. */
  queue_segment_bytes: 16 * MIB,
  /** One write request before it is packed. More goes with the next. */
  request_bytes: 2 * MIB,
  /** How long samples wait for company before they are sent. */
  gather_ms: 500,
  /** Until the engine has answered a write. Past it the write is repeated. */
  write_ms: 30_000,
  /** Between two tries while the engine does not take writes; doubled each time, up to the second. */
  retry_ms: 1000,
  retry_most_ms: 30_000,
  /** Until the engine has answered a question. Past it: 503 `query_timeout`. */
  read_ms: 35_000,
  /** The engine's answer to a question. Past it: 422 `query_failed`. */
  answer_bytes: 256 * MIB,
  /** Series spelled and kept for the next time. Past it all are forgotten and learned again. */
  series_known: 500_000,
  /** And after this long. An app's series are counted (`series_per_app`) since then. */
  series_known_ms: 2 * HOUR,
} as const;
