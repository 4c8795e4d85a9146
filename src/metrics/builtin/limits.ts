/** Bounds of reading machines, with what happens at them. */
export const BUILTIN_LIMITS = {
  /** How often machines, the proxy and volumes are read, on the grid. A round that takes longer costs the next one. */
  interval_ms: 15_000,
  /** Machines read at once; the others wait for their turn. */
  machines_at_once: 16,
  /** Reading one machine. Past it: `svc_instance_up` is 0 for this round. */
  machine_read_ms: 5000,
  /** Asking one hosted database. Past it: its series end until it answers again. */
  postgres_ms: 5000,
} as const;
