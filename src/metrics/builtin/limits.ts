/** Bounds of reading machines, with what happens at them. */
export const BUILTIN_LIMITS = {
  /**
   * Interval at which machines, the proxy and volumes are read, aligned to multiples. A longer round skips the next
   * one.
   */
  interval_ms: 15_000,
  /** Machines read in parallel; further ones wait. */
  machines_at_once: 16,
  /** Timeout of reading one machine. Past it: `svc_instance_up` is 0 for this round. */
  machine_read_ms: 5000,
  /** Timeout of querying one hosted database. Past it: its series end until it responds. */
  postgres_ms: 5000,
} as const;
