/** Limits of a replication node. Each comment says what happens when the limit is reached. */
const KIB = 1024;
const MIB = 1024 * KIB;
const SECOND = 1000;

export const REPLICATION_LIMITS = {
  // Events.
  /** Events waiting for one reader. One more: the reader is disconnected and counted in the metrics. */
  events_waiting: 1024,
  /** Readers of /events. One more: 503. */
  event_readers: 10_000,

  // Starting.
  /** Time for which applications wait for a node that finds no primary, with `--ready-fd`. Past it: they start. */
  ready_ms: 30 * SECOND,
  /** Interval at which a node looks whether it is ready. */
  ready_look_ms: 10,

  // Waiting for transactions.
  /** Requests that wait for a transaction. One more: 503. */
  waits: 10_000,
  /** Default timeout of such a request. Then: 408. */
  wait_ms: 5 * SECOND,
  /** … and its maximum. A longer time is rejected: 400. */
  wait_most_ms: 60 * SECOND,

  // Acknowledged transactions.
  /** Time a replica has to acknowledge its position on disk. Past it: it is not in sync, and not waited for. */
  ack_ms: 1 * SECOND,
  /**
   * Unacknowledged transactions of a database, with `--ack`. Past it writers are throttled. `--max-unacked` changes it.
   */
  max_unacked: 1000,
  /** Delay before the in-sync list is sent again to a lease store that did not respond. */
  in_sync_retry_ms: 200,
  /** Nodes of a cluster, for `--cluster-size`. */
  cluster_size: 99,

  // The HTTP proxy.
  /** Time a write waits for a primary, unless `--proxy-queue` says otherwise. Then: 503 `no_primary`. */
  proxy_queue_ms: 30 * SECOND,
  /** Writes waiting for a primary on one node. One more: 503. */
  proxy_waiting: 1000,
  /** Retry interval of a waiting write. */
  proxy_retry_ms: 20,
  /** Time a read waits for the client's own writes. Then: it goes to the primary. */
  proxy_read_ms: 2 * SECOND,
  /** Time a write waits for acknowledgement after the application has responded. Then: 504 `not_acknowledged`. */
  proxy_ack_ms: 10 * SECOND,
  /** Time a handover waits for writes that the application is working on. Then: it does not wait for them. */
  proxy_drain_ms: 5 * SECOND,
  /** Bodies up to this size are buffered, so that they can be sent again. Larger ones are sent once. */
  proxy_body_bytes: 256 * KIB,
  /** Idle timeout of an application's response. Then: 502. */
  proxy_silence_ms: 120 * SECOND,

  // Writing from a replica.
  /** Duration of a halt lock without renewal. Then: the primary's applications write again. */
  halt_ms: 10 * SECOND,
  /** Time to wait for a running transaction of the primary. Then: 409. */
  halt_try_ms: 10 * SECOND,
  /** Bytes written under one halt lock. Past it: 413, and they are stored aside on the replica. */
  halt_bytes: 256 * MIB,

  // Capture and checkpoints.
  /**
   * Poll interval of databases and of new ones. What is written before a file is found is its first transaction.
   * Where the kernel does not report writes, a transaction is delayed by at most this.
   */
  look_ms: 20,
  /** The same without writes, if the kernel would report them: this costs less when idle. */
  quiet_look_ms: 50,
  /**
   * Minimum interval between polls of a database with writes. A poll, a sync and a packet cost five times a
   * transaction, so transactions within this time share them.
   */
  look_again_ms: 4,
  /** Interval at which the index of a WAL is polled for the commit after a write, */
  commit_look_ms: 1,
  /** … and the maximum time of that. Then: every `look_ms`. */
  commit_expected_ms: 50,
  /** Frames captured in one batch. */
  capture_frames: 100,
  /** Time of capturing before other databases have their turn. */
  capture_ms: 5,
  /**
   * Maximum lag of replicas, and so the loss with a primary. Writers are throttled before that: for capturing after a
   * quarter of it, for a replica's connection after half of it. `--max-lag` changes it.
   */
  max_lag_ms: 1 * SECOND,
  /** A replica this many times further behind is stuck, not slow: it is logged, and not waited for. */
  stuck_lags: 10,
  /** Frames by which capturing may be behind, at any time. Past it, writers are throttled. */
  behind_frames: 4000,
  /** Maximum time of one throttling, until everything is captured. */
  slow_writers_ms: 1 * SECOND,
  /** Frames in the WAL before a checkpoint. Readers can delay it; then the WAL grows. */
  checkpoint_frames: 4000,
  /** The same in bytes, for databases with large pages. */
  checkpoint_bytes: 32 * MIB,
  /** Idle time after which the checkpoint thread ends: it takes 10 MiB. */
  checkpoint_thread_ms: 10 * SECOND,
  /** Time the node tries to take the write lock from busy applications. Then: again at the next poll. */
  lock_try_ms: 2,
  /** The same against writers that are too fast, or whose WAL is too long. Then: at the next poll. */
  insist_ms: 100,
  /** Maximum delay of the position files. */
  status_files_ms: 100,
  /** Interval at which the directory is read even without a change notification. */
  discover_anyway_ms: 200,
  /** Databases in one directory. Further ones are not adopted, and logged. */
  databases: 1000,
  /** Time of opening databases before others have their turn: a large one may have to be read. */
  open_slice_ms: 10,
  /** Time a starting or joining node waits for its databases to open. Then: it continues without the others. */
  settle_ms: 1 * SECOND,
  /** Timeout for the write lock while opening, doubled at each attempt, up to the second value. */
  open_lock_ms: 2,
  open_lock_most_ms: 40,
  /** Delay before a failed open is retried, doubled each time, up to this. */
  retry_ms: 50,
  retry_most_ms: 2 * SECOND,
  /** Changed pages of a restored or replaced database, as one transaction. Past it replicas get a snapshot. */
  difference_bytes: 256 * MIB,
  /** A database file that was written to outside SQLite is examined after this time without writes. */
  overwritten_ms: 500,
  /** Bytes of a database file that are compared with the page checksums at a time, after a checkpoint. */
  file_check_bytes: 512 * KIB,
  /** Time a replica waits to get the write lock back after truncating the WAL. Then: it is reopened. */
  relock_ms: 200,

  // The transaction log.
  /**
   * Delay of durability on a replica: applied transactions are in its log immediately and durable this much later. A
   * power failure loses at most this, which it receives again; a node is never primary of non-durable transactions.
   */
  replica_sync_ms: 50,
  /** Size at which a segment file is closed. */
  segment_bytes: 64 * MIB,
  /** End of a segment that is verified after a crash: more than can be written between two syncs. */
  doubtful_bytes: 16 * MIB,
  /** Retention of transactions for replicas that reconnect. Past it they get a snapshot. */
  retention_ms: 10 * 60 * SECOND,
  /** Log size per database, whatever the age. The oldest segments are deleted first. */
  retention_bytes: 1024 * MIB,
  /** Newest transactions cached in memory; older ones are read from their segment. */
  recent_bytes: 4 * MIB,
  /** Page checksums are stored after this much log, so that a restart reads at most this much. */
  table_every_bytes: 64 * MIB,

  /** Interval of maintenance. */
  tidy_ms: 1 * SECOND,

  // Streams between nodes.
  /** Transactions that arrive at a replica within this time after the last apply are applied together. */
  gather_ms: 4,
  /** Bytes that have arrived at a replica. Past it they are applied without waiting for more. */
  gather_bytes: 1 * MIB,
  /** Unsent bytes of one replica's connection. Past it the node waits for that replica. */
  stream_waiting_bytes: 4 * MIB,
  /** Size of one transaction frame. Past it the connection is closed. */
  stream_frame_bytes: 4 * 1024 * MIB - 1,
  /** Transactions compared to find the state of a replica with an unknown position. Past it, it gets a snapshot. */
  states_compared: 10_000,
  heartbeat_ms: 1 * SECOND,
  /** Without any frame for this long a primary counts as lost. */
  silence_ms: 5 * SECOND,
  /** Timeout of a user's request to a node: a handover takes up to three times `handoff_ms`. */
  asked_ms: 20 * SECOND,
  /** Timeout of a request to restore from the node's own backup. Past it: the caller fails; the restore goes on. */
  restore_ms: 600 * SECOND,
  reconnect_ms: 200,
  /** Snapshots sent in parallel. Further replicas wait. */
  snapshots: 2,
  /** Copies of diverged databases per name. One more: the oldest copy is deleted. */
  copies_aside: 10,
  /** The same for all names together. */
  copies_aside_all: 100,
  /** Open connections to one node. For one more, the longest idle one is closed, or the new one when all are in use. */
  connections: 16_384,
  /** Idle timeout of a connection. */
  keep_alive_ms: 5 * SECOND,
  /** Stall timeout of an import. */
  import_stall_ms: 30 * SECOND,
  /** Time an import waits for the write lock of the database it replaces. Then: 409. */
  import_locked_ms: 2 * SECOND,
  /** Size of a JSON body between nodes. Past it: 413. */
  body_bytes: 1 * MIB,
  /** Clock tolerance of a signed request. Past it: 401. */
  signature_age_ms: 30 * SECOND,

  // Backup.
  /** Interval of uploads: the maximum loss when a machine is lost with its disk. */
  backup_ms: 1 * SECOND,
  /** Transactions are merged into one object up to this size. */
  backup_bytes: 64 * MIB,
  /** Interval of snapshots while there are changes: a restore reads one, and the changes since. */
  backup_snapshot_ms: 24 * 60 * 60 * SECOND,
  /** … or after this many objects of changes. */
  backup_snapshot_changes: 5000,
  /** Default retention of backups. Objects needed only for older points in time are deleted. */
  backup_keep_ms: 30 * 24 * 60 * 60 * SECOND,

  /**
   * Size of transactions kept while a backup fails. Past it they are deleted, and the backup continues with a
   * snapshot.
   */
  backup_backlog_bytes: 4 * 1024 * MIB,

  // Watching nodes from the platform.
  /** Readers of node events, per platform process. One more: 503. */
  observers: 64,
  /** Watched nodes of one organization. Further ones are omitted. */
  observed_nodes: 100,
  /** Databases shown of one node. Further ones are omitted. */
  observed_databases: 100,
  /** Size of one event line, and of a node's state. Past it the node is disconnected, and retried. */
  observed_bytes: 256 * KIB,
  /** Primary changes of one node between two messages. Past it the node is disconnected, and retried. */
  observed_changes: 100,
  /** Events within this time are one message: a thousand transactions a second are ten messages. */
  observed_gather_ms: 100,
  /** Poll interval of a watched node's state. */
  observed_info_ms: 1 * SECOND,
  /** Interval of discovery of nodes, and of retries. */
  observed_find_ms: 2 * SECOND,

  // Election.
  /** Leases that the platform tracks. One more: the least recently used one is treated as new, which extends it. */
  leases_seen: 10_000,
  /**
   * Duration of a lease without renewal, and so about the time without a primary after its loss. A primary that cannot
   * reach the store for three quarters of it stops. `--lease-ttl` changes it.
   */
  lease_ms: 2 * SECOND,
  /** Renewals per lease. Others poll for an expired one twice as often. */
  lease_renewals: 4,
  /** Fraction of the lease by which a primary stops before another can take it. */
  lease_margin: 1 / 4,
  /** Time for which a chosen successor is preferred at a handover. */
  handoff_ms: 5 * SECOND,
  /** Time a node that is being stopped waits until the replica it handed over to is primary. Then: it ends anyway. */
  retire_ms: 2 * SECOND,
} as const;

/** Limits that tests reduce, to reach in seconds what takes hours. */
export type Sizes = Partial<
  Record<"checkpoint_frames" | "segment_bytes" | "retention_bytes" | "table_every_bytes" | "difference_bytes", number>
>;
