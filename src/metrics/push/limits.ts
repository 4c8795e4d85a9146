/** Limits of pushed samples. Each comment says what happens when the limit is reached. */
const MIB = 1024 * 1024;

export const PUSH_LIMITS = {
  /** Size of a body, compressed and uncompressed. Past it: 413, nothing of it is stored. */
  push_bytes: 16 * MIB,
  /** Total size of one organization's bodies in progress. Past it: 429 `rate_limited`; clients retry. */
  org_push_bytes: 64 * MIB,
  /** The same for all organizations. Past it: 503 `overloaded`. */
  all_push_bytes: 256 * MIB,
  /** Samples of one JSON, OTLP or remote write 2.0 body. Past it: 413. */
  push_samples: 1_000_000,
} as const;
