/** Limits of scrapes. Each comment says what happens when the limit is reached. */
const MIB = 1024 * 1024;

export const SCRAPE_LIMITS = {
  /** Scrape interval of a machine; each has a fixed offset within it, so that scrapes are spread. */
  interval_ms: 15_000,
  /** Distance between these offsets. */
  moment_ms: 250,
  /** Timeout of a scrape. Past it: the connection is closed, the target is down. */
  timeout_ms: 10_000,
  /** Size of the response head and of chunk framing. Past it: the target is down. */
  head_bytes: 16 * 1024,
  /**
   * Size of the response body, compressed or uncompressed. Past it: the response is dropped and counted, the target
   * is down.
   */
  body_bytes: 16 * MIB,
  /** Total size of one organization's responses in progress. Past it: the response that exceeds it is dropped. */
  org_bytes_in_flight: 48 * MIB,
  /** The same for all organizations. Past it: the response that exceeds it is dropped. */
  bytes_in_flight: 160 * MIB,
  /** Length of the stored last error of a target. */
  error_chars: 500,
} as const;
