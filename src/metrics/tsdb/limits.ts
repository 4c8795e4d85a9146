/** Limits of the metrics database. Each comment says what happens when the limit is reached. Callers may change them. */
const MIB = 1024 * 1024;
const SECOND = 1000;
const MINUTE = 60 * SECOND;
const HOUR = 60 * MINUTE;
const DAY = 24 * HOUR;

export const TSDB_LIMITS = {
  // What one sender may hand over at once.
  /** Size of exposition text or of an uncompressed remote write. Past it: the whole body is rejected. */
  import_bytes: 16 * MIB,
  /** Labels of one series, its name included. Past it: the series is rejected and reported. */
  labels_per_series: 64,
  /** Length of a label name. Past it: the series is rejected and reported. */
  label_name_bytes: 512,
  /** Length of a label value. Past it: the series is rejected and reported. */
  label_value_bytes: 4096,
  /**
   * Buckets and custom bounds of one native histogram. Past it: merged into coarser buckets, or rejected and reported
   * when they are custom.
   */
  histogram_buckets: 500,
  /** Problems reported for one import; further ones are only counted. */
  problems_reported: 20,

  // How many series.
  /** Active series of one `app`, without built-in ones. One more: its samples are dropped and counted. */
  series_per_app: 50_000,
  /** Series of an organization in the index, including stale ones within retention. One more: dropped and counted. */
  series_per_org: 2_000_000,
  /** Apps whose dropped samples are counted by name; those of further apps are counted together under "". */
  dropping_apps: 1000,

  // Which times are taken.
  /** Older samples are rejected and older blocks deleted. */
  retention_ms: 15 * DAY,
  /** A sample behind its series' newest one and older than this is dropped and counted. */
  out_of_order_ms: DAY,
  /** A sample further ahead of the clock is dropped and counted. */
  future_ms: 10 * MINUTE,

  // What is held in memory before it becomes a block.
  /**
   * Size of sealed chunks and late samples in memory. Past it the window with the oldest write becomes a block early.
   */
  head_bytes: 256 * MIB,
  /**
   * As above, while blocks cannot be written: appends are rejected (`storage_full`, or `storage_failed` when the disk
   * fails).
   */
  head_bytes_most: 512 * MIB,
  /** Two-hour windows open for writes. One more: the window with the oldest write becomes a block. */
  open_windows: 16,
  /** A window whose end lies this far behind the newest sample becomes a block. */
  window_grace_ms: 5 * MINUTE,
  /** A window without writes for this long becomes a block. */
  window_idle_ms: HOUR,

  // The log of what is not yet in a block.
  /** Size of the samples in a WAL segment, series names not counted, at which a new segment is started. */
  wal_segment_bytes: 64 * MIB,
  /** Maximum delay until a sample is synced to disk. */
  wal_sync_ms: SECOND,
  /** Size of the WAL. Past it the window with the oldest write becomes a block, so that segments can be deleted. */
  wal_bytes: 512 * MIB,

  // Reading.
  /** Size of the cache of decompressed frames. Past it the oldest is removed. */
  frame_cache_bytes: 8 * MIB,
  /** Label lists cached as JavaScript arrays. Past it the cache is cleared. */
  label_cache_series: 50_000,
  /** Size of the cache of raw label bytes for ingestion. Past it the cache is cleared. */
  key_cache_bytes: 64 * MIB,
  /** Rows of each list in the status response. */
  status_rows: 100,

  // Many orgs.
  /** An organization's database without use for this long is closed; the next use reopens it. */
  org_idle_ms: 30 * MINUTE,
  /** Time the clock must have run evenly before expired data is deleted. */
  steady_clock_ms: HOUR,
} as const;

export type TsdbLimits = { -readonly [Name in keyof typeof TSDB_LIMITS]: number };

/** Blocks begin and end at multiples of this. */
export const WINDOW_MS = 2 * HOUR;
export const DAY_MS = DAY;
