/** Bounds of asking machines for their own metrics, with what happens at them. */
const MIB = 1024 * 1024;

export const SCRAPE_LIMITS = {
  /** How often a machine is asked; each at its own moment within it, so that not all are asked at once. */
  interval_ms: 15_000,
  /** Those moments are so far apart. */
  moment_ms: 250,
  /** Until the whole answer is there. Past it: the connection is cut, the target is down. */
  timeout_ms: 10_000,
  /** The head of the answer, and whatever in it is neither head nor body. Past it: the target is down. */
  head_bytes: 16 * 1024,
  /** The answer, packed or unpacked. Past it: it is dropped whole and counted, the target is down. */
  body_bytes: 16 * MIB,
  /** Answers of one organization being received at once. Past it: the one that asked for more is dropped. */
  org_bytes_in_flight: 48 * MIB,
  /** Answers of all being received at once. Past it: the one that asked for more is dropped. */
  bytes_in_flight: 160 * MIB,
  /** Characters of a target's last error that are kept. */
  error_chars: 500,
} as const;
