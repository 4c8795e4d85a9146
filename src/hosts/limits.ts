/** Bounds of the hosts room, by name. What happens at the bound is written beside it. */
const SECOND = 1000;

export const HOST_LIMITS = {
  /** A host renews this often in the time of one lease. */
  beats_per_lease: 4,
  /** … and this often after one that failed, so that it has more than one chance before it must fence itself. */
  failed_beats_per_lease: 16,
  /** One beat, as a part of the lease: below the time between two, so that a late one is not waited for. */
  beat_part: 0.2,
  /** The last part of a lease is for stopping what runs: a host that was not renewed by then fences itself. */
  fence_part: 0.25,
  /**
   * A host is taken for lost when no beat was seen for its lease and this part of it more: what clocks of two boxes
   * may differ by in that time, a hundred times over.
   */
  margin_part: 0.25,
  /** How often the hosts are looked at; a word on the wire comes sooner. */
  watch_ms: SECOND,
  /** … and at least so often in the time of the shortest lease. */
  watch_part: 0.125,
  /** A join token works once, and no longer than this. */
  join_token_ms: 3600 * SECOND,
  /** Until a process has shown the platform's key. Past it: its connection is closed. */
  handshake_ms: 5 * SECOND,
  /** Connections that have not shown it yet. Of one more the oldest is closed. */
  handshakes: 256,
  /** One call to another host. Past it: 503 `host_unreachable`. */
  call_ms: 30 * SECOND,
} as const;
