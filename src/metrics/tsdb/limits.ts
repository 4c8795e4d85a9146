/** Every bound of the metrics database, with what happens at it. A caller may lower or raise them by name. */
const MIB = 1024 * 1024;
const SECOND = 1000;
const MINUTE = 60 * SECOND;
const HOUR = 60 * MINUTE;
const DAY = 24 * HOUR;

export const TSDB_LIMITS = {
  // What one sender may hand over at once.
  /** Exposition text or an unpacked remote write. Past it: the whole body is refused. */
  import_bytes: 16 * MIB,
  /** Labels of one series, its name included. Past it: the series is refused and reported. */
  labels_per_series: 64,
  /** Past it: the series is refused and reported. */
  label_name_bytes: 512,
  /** Past it: the series is refused and reported. */
  label_value_bytes: 4096,
  /** Problems reported for one import; more are counted, these come first. */
  problems_reported: 20,

  // How many series.
  /** Series of one `app` that are being written, built-in ones not counted. One more: its samples are dropped and counted. */
  series_per_app: 50_000,
  /** Series of an org in the index, dead ones within retention included. One more: dropped and counted. */
  series_per_org: 2_000_000,
  /** Apps whose drops are counted by name; the rest are counted together under "". */
  dropping_apps: 1000,

  // Which times are taken.
  /** Older samples are refused and older blocks deleted. */
  retention_ms: 15 * DAY,
  /** A sample behind its series' newest one and older than this is dropped and counted. */
  out_of_order_ms: DAY,
  /** A sample further ahead of the clock is dropped and counted. */
  future_ms: 10 * MINUTE,

  // What is held in memory before it becomes a block.
  /** Sealed chunks and late samples. Past it the window longest idle becomes a block early. */
  head_bytes: 256 * MIB,
  /** As above, while blocks cannot be written: appends are refused (`storage_full`, or `storage_failed` when the disk is broken). */
  head_bytes_most: 512 * MIB,
  /** Two-hour windows being written at once. One more: the one longest idle becomes a block. */
  open_windows: 16,
  /** A window whose end lies this far behind the newest sample becomes a block. */
  window_grace_ms: 5 * MINUTE,
  /** A window nobody writes to becomes a block after this. */
  window_idle_ms: HOUR,

  // The log of what is not yet in a block.
  /** A segment is closed when its samples take this much, the names of its series not counted, and a new one begun. */
  wal_segment_bytes: 64 * MIB,
  /** How long a sample may wait for its fsync. */
  wal_sync_ms: SECOND,
  /** Past it the window longest idle becomes a block, so that segments can go. */
  wal_bytes: 512 * MIB,

  // Reading.
  /** Unpacked frames kept for the next series of the same frame. Past it the oldest is forgotten. */
  frame_cache_bytes: 8 * MIB,
  /** Label lists kept as JavaScript arrays. Past it all are forgotten and made again when asked for. */
  label_cache_series: 50_000,
  /** Raw label bytes remembered for ingest. Past it all are forgotten and learned again. */
  key_cache_bytes: 64 * MIB,
  /** Rows of each list in the status answer. */
  status_rows: 100,

  // Many orgs.
  /** An org's database nobody used for this long is closed; the next use opens it again. */
  org_idle_ms: 30 * MINUTE,
  /** The clock must have kept pace this long before anything is deleted for its age. */
  steady_clock_ms: HOUR,
} as const;

export type TsdbLimits = { -readonly [Name in keyof typeof TSDB_LIMITS]: number };

/** Blocks begin and end at multiples of this. */
export const WINDOW_MS = 2 * HOUR;
export const DAY_MS = DAY;
