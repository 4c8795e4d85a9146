/** Limits of the hosts module. Each comment says what happens when the limit is reached. */
const SECOND = 1000;

export const HOST_LIMITS = {
  /** Renewals per lease duration. */
  beats_per_lease: 4,
  /** Renewals per lease duration after a failed one, so that a host has several attempts before it fences itself. */
  failed_beats_per_lease: 16,
  /** Timeout of one renewal, as a fraction of the lease: less than the interval between two. */
  beat_part: 0.2,
  /** Last fraction of a lease, reserved for fencing: a host that has not renewed by then freezes its machines. */
  fence_part: 0.25,
  /**
   * A host counts as lost when no renewal was seen for its lease plus this fraction of it: a hundred times the clock
   * drift of two boxes in that time.
   */
  margin_part: 0.25,
  /** Interval at which hosts are checked; a notification arrives sooner. */
  watch_ms: SECOND,
  /** Minimum number of checks per shortest lease. */
  watch_part: 0.125,
  /** Lifetime of a join token; it works once. */
  join_token_ms: 3600 * SECOND,
  /** Time a connection has to prove the platform's key. Past it: closed. */
  handshake_ms: 5 * SECOND,
  /** Connections that have not proved it yet. For one more, the oldest is closed. */
  handshakes: 256,
  /** One call to another host. Past it: 503 `host_unreachable`. */
  call_ms: 30 * SECOND,
} as const;
