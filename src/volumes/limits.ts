/** Limits of the volumes module. Each comment says what happens when the limit is reached. */
const SECOND = 1000;
const MINUTE = 60 * SECOND;
const HOUR = 60 * MINUTE;
const KIB = 1024;

export const VOLUME_LIMITS = {
  /** Volumes of one organization that are not deleted. One more: 422 `limit_reached`. */
  volumes_per_org: 100_000,
  /** Snapshots of one volume, on demand and daily. One more on demand: 422 `limit_reached`; a daily one is skipped. */
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

  /** Retries after a concurrent change of the same volume. Past it: 409 `conflict`. */
  write_races: 64,
  /** Operations waiting on one volume. One more: 503 `overloaded`. */
  operations_waiting: 64,
  /** Operations run in parallel; further ones wait. */
  operations_parallel: 8,
  /** Time a request waits for its operation. Past it: it returns the current state. */
  answer_ms: 60 * SECOND,
  /** Poll interval for unfinished operations among several processes. */
  shared_look_ms: 2000,
  /** Poll interval for operations of another process. */
  look_ms: 250,
  /** Delay before a failed operation is retried, doubled each time … */
  retry_ms: SECOND,
  /** … up to this. */
  retry_max_ms: 5 * MINUTE,
  /** Attempts of a snapshot, a restore or a fork. Past it: it is `failed`, with the reason. */
  tries: 8,
  /** Time a shutdown waits for writes in progress. */
  close_ms: 5 * SECOND,

  /** Interval of checks for growth, daily snapshots and expiry. */
  upkeep_ms: 20 * SECOND,
  backup_every_ms: 24 * HOUR,
  /** Interval of checks for unused data, on disk and in the object store. */
  sweep_ms: 6 * HOUR,
  /** Time the clock must have run evenly before expired data is deleted. */
  steady_clock_ms: HOUR,
  /** Time a file system may be frozen for a snapshot. Past it: it is thawed and the snapshot fails. */
  freeze_ms: 60 * SECOND,

  /** Block size of snapshots: unchanged blocks are not stored again. */
  block_bytes: 64 * KIB,
  /** Maximum size of a pack of new blocks. */
  pack_bytes: 16 * KIB * KIB,
  /** Minimum live fraction of a pack; blocks of packs below it are stored again. */
  pack_share: 0.5,
  /** Packs transferred in parallel. */
  packs_parallel: 2,
} as const;
