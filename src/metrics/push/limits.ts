/** Bounds of samples that are pushed, with what happens at them. */
const MIB = 1024 * 1024;

export const PUSH_LIMITS = {
  /** A body as it is sent, and unpacked. Past it: 413, nothing of it is stored. */
  push_bytes: 16 * MIB,
  /** Bodies of one organization being received and stored at once. Past it: 429 `rate_limited`, to be sent again. */
  org_push_bytes: 64 * MIB,
  /** The same of all organizations. Past it: 503 `overloaded`. */
  all_push_bytes: 256 * MIB,
  /** Samples of one JSON, OTLP or remote write 2.0 body. Past it: 413. */
  push_samples: 1_000_000,
} as const;
