/** Limits of the volumes module. Each comment says what happens when the limit is reached. */
const SECOND = 1000;
const MINUTE = 60 * SECOND;
const HOUR = 60 * MINUTE;
const KIB = 1024;

export const VOLUME_LIMITS = {
  /** Volumes of one organization that are not deleted. One more: 422 `limit_reached`. */
  volumes_per_org: 100_000,
  /** Snapshots of one volume, on demand and daily. One more on demand: 422 `limit_reached`; a daily one is left out. */
  snapshots_per_volume: 1000,
  /** The smallest and the largest volume. Outside: 400. */
  size_gb_min: 1,
  size_gb_max: 500,
  size_gb_default: 3,
  /** Letters, digits, underscores and dashes. Longer: 400. */
  name_chars: 63,
  /** Days that a snapshot is kept. Outside: 400. */
  retention_days_min: 1,
  retention_days_max: 60,
  retention_days_default: 5,

  /** How often a decision is made anew when someone else was faster. Past it: 409 `conflict`. */
  write_races: 64,
  /** Operations waiting on one volume. One more: 503 `overloaded`. */
  operations_waiting: 64,
  /** Operations carried out at the same time; the others wait their turn. */
  operations_parallel: 8,
  /** How long a request waits for what it asked for. Past it: it is answered with the state as it is then. */
  answer_ms: 60 * SECOND,
  /** Among several processes, how often unfinished operations are looked for that no word came of. */
  shared_look_ms: 2000,
  /** Between looks whether an operation of another process has ended. */
  look_ms: 250,
  /** An operation that failed is tried again after this, then twice as late … */
  retry_ms: SECOND,
  /** … but never later than this. */
  retry_max_ms: 5 * MINUTE,
  /** Tries of a snapshot, a restore or a fork. Past it: it is `failed`, with the reason. */
  tries: 8,
  /** How long a stopping platform waits for what it is just writing down. */
  close_ms: 5 * SECOND,

  /** Between looks at what is due: growth, daily snapshots, what has expired. */
  upkeep_ms: 20 * SECOND,
  backup_every_ms: 24 * HOUR,
  /** Between looks for what nobody needs, on the disk and in the object store. */
  sweep_ms: 6 * HOUR,
  /** The clock must have kept pace this long before anything is deleted because its time is up. */
  steady_clock_ms: HOUR,
  /** A file system may be frozen this long for a snapshot. Past it: it is thawed and the snapshot fails. */
  freeze_ms: 60 * SECOND,

  /** What one block of a snapshot holds: a block that did not change is not stored again. */
  block_bytes: 64 * KIB,
  /** New blocks are stored together, up to this. */
  pack_bytes: 16 * KIB * KIB,
  /** A pack of which a new snapshot needs less than this share is not built upon: what it needs is stored anew. */
  pack_share: 0.5,
  /** Packs that are fetched or stored at the same time. */
  packs_parallel: 2,
} as const;
