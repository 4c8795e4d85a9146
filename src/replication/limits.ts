/** The bounds of a replication node, by name, each with what happens when it is reached. */
const KIB = 1024;
const MIB = 1024 * KIB;
const SECOND = 1000;

export const REPLICATION_LIMITS = {
  // Events.
  /** Events waiting for one reader. One more: the reader is cut and counted in the metrics. */
  events_waiting: 1024,
  /** Readers of /events. One more: 503. */
  event_readers: 10_000,

  // Waiting for transactions.
  /** Requests that wait for a transaction. One more: 503. */
  waits: 10_000,
  /** How long such a request waits unless it says otherwise. Then: 408. */
  wait_ms: 5 * SECOND,
  /** … and at most. A longer time is refused: 400. */
  wait_most_ms: 60 * SECOND,

  // Acknowledged transactions.
  /** A replica that was asked what it has on disk and has not said so for this long is not in sync, and not waited for. */
  ack_ms: 1 * SECOND,
  /** Transactions of a database that may wait to be acknowledged, with `--ack`. Past it writers wait. `--max-unacked` changes it. */
  max_unacked: 1000,
  /** How long until the lease store is told again who is in sync when it did not answer. */
  in_sync_retry_ms: 200,
  /** Nodes of a cluster, for `--cluster-size`. */
  cluster_size: 99,

  // The HTTP proxy.
  /** How long a write waits for a primary, unless `--proxy-queue` says otherwise. Then: 503 `no_primary`. */
  proxy_queue_ms: 30 * SECOND,
  /** Writes that wait for a primary on one node. One more: 503. */
  proxy_waiting: 1000,
  /** How often one that waits tries again. */
  proxy_retry_ms: 20,
  /** How long a read waits for what its client has written. Then: it goes to the primary. */
  proxy_read_ms: 2 * SECOND,
  /** How long a write waits to be acknowledged after the application has answered. Then: 504 `not_acknowledged`. */
  proxy_ack_ms: 10 * SECOND,
  /** A body up to this size is kept, so that it can be sent again. A larger one is sent once. */
  proxy_body_bytes: 256 * KIB,
  /** How long an application may be silent. Then: 502. */
  proxy_silence_ms: 120 * SECOND,

  // Writing from a replica.
  /** How long a halt lock lasts that is not renewed. Then: the primary's applications write again. */
  halt_ms: 10 * SECOND,
  /** How long to wait for an application of the primary to end its transaction. Then: 409. */
  halt_try_ms: 10 * SECOND,
  /** What is written under one halt lock. Past it: 413, and it is kept aside on the replica. */
  halt_bytes: 256 * MIB,

  // Capture and checkpoints.
  /**
   * Time between looks at the databases and for new ones: a transaction is that much late at most. A look, a sync and a
   * packet cost five times what a transaction does, so those that come within this time share them. What is written before
   * a file is found is its first transaction.
   */
  look_ms: 20,
  /** Frames captured in one go. */
  capture_frames: 100,
  /** How long capturing goes on before others have their turn. */
  capture_ms: 5,
  /**
   * How far replicas may be behind, in time, and so how much is lost with a primary. Before it is reached writers wait:
   * for capturing after a quarter of it, for the connection to a replica after half of it. `--max-lag` changes it.
   */
  max_lag_ms: 1 * SECOND,
  /** A replica that is so many times as far behind is not slow but stuck: it is named in the log, and not waited for. */
  stuck_lags: 10,
  /** Frames by which capturing may be behind, whatever the time. Past it, writers wait. */
  behind_frames: 4000,
  /** How long such writers wait at most each time, until everything is captured. */
  slow_writers_ms: 1 * SECOND,
  /** Frames in the log before it is copied back into the database. Readers can delay that; then it grows. */
  checkpoint_frames: 4000,
  /** The same in bytes, for databases with large pages. */
  checkpoint_bytes: 32 * MIB,
  /** How long the node tries to take the write lock from busy applications. Then: again at the next look. */
  lock_try_ms: 2,
  /** The same against writers that are too fast, or have made SQLite's log too long. Then: at the next look. */
  insist_ms: 100,
  /** How long the position files may be behind. */
  status_files_ms: 100,
  /** The directory is read this often even when nothing seems to have been added to it. */
  discover_anyway_ms: 200,
  /** Databases in one directory. More are not adopted and named in the log. */
  databases: 1000,
  /** How long databases are opened before others have their turn: a large one may have to be read. */
  open_slice_ms: 10,
  /** How long a node that starts, or joins a primary, waits for its databases to be open. Then: without those. */
  settle_ms: 1 * SECOND,
  /** How long to ask for the write lock while opening; twice as long at each attempt, up to the second figure. */
  open_lock_ms: 2,
  open_lock_most_ms: 40,
  /** How long to wait before a database that could not be opened is tried again: twice as long each time, up to this. */
  retry_ms: 50,
  retry_most_ms: 2 * SECOND,
  /** Changed pages of a database that was restored or replaced, as one transaction. Past it replicas get it whole. */
  difference_bytes: 256 * MIB,
  /** A database file that was written to past SQLite is looked at when nobody has done so for this long. */
  overwritten_ms: 500,
  /** How long a replica waits to get the write lock back after it has emptied SQLite's log. Then: it is opened again. */
  relock_ms: 200,

  // The transaction log.
  /**
   * What a replica has applied is in its log at once and durable this much later. A power cut costs it so much,
   * which it gets again; a node is never primary of anything that is not durable.
   */
  replica_sync_ms: 50,
  /** A segment file is closed at this size and the next one begun. */
  segment_bytes: 64 * MIB,
  /** The end of a segment that is read again after a crash: more than can be written between two syncs. */
  doubtful_bytes: 16 * MIB,
  /** Transactions are kept this long for replicas that come back. Past it they get a snapshot. */
  retention_ms: 10 * 60 * SECOND,
  /** Bytes kept per database, whatever their age. The oldest segments go first. */
  retention_bytes: 1024 * MIB,
  /** The newest transactions stay in memory up to this size; older ones are read back from their segment. */
  recent_bytes: 4 * MIB,
  /** The page checksums are written out after this much log, so that a restart reads at most this much. */
  table_every_bytes: 64 * MIB,

  /** Time between looks for what can be deleted or written out. */
  tidy_ms: 1 * SECOND,

  // Streams between nodes.
  /** What arrives at a replica within this time is applied together; each transaction is that much late at most. */
  gather_ms: 5,
  /** Bytes that have arrived at a replica. Past it they are applied without waiting for more. */
  gather_bytes: 1 * MIB,
  /** Bytes given to one replica's connection and not yet sent. Past it the node waits for that replica. */
  stream_waiting_bytes: 4 * MIB,
  /** One transaction on the wire. Past it the connection is closed: it is not one of ours. */
  stream_frame_bytes: 4 * 1024 * MIB - 1,
  /** Transactions looked through for the state a replica is in when it has lost count. Past it, it gets a snapshot. */
  states_compared: 10_000,
  heartbeat_ms: 1 * SECOND,
  /** Without any frame for this long a primary is taken for lost. */
  silence_ms: 5 * SECOND,
  /** How long a person's question to a node may be silent: a handover takes up to three times `handoff_ms`. */
  asked_ms: 20 * SECOND,
  reconnect_ms: 200,
  /** Snapshots being sent at once. Further replicas wait their turn. */
  snapshots: 2,
  /** Copies of diverged databases kept per name. One more: the oldest copy is deleted. */
  copies_aside: 10,
  /** The same for all names together. */
  copies_aside_all: 100,
  /** Open connections to one node. Of one more the longest unused is closed, or itself when all are in use. */
  connections: 16_384,
  /** An unused connection is closed after this. */
  keep_alive_ms: 5 * SECOND,
  /** A file that is imported and brings nothing for this long is given up. */
  import_stall_ms: 30 * SECOND,
  /** A JSON body between nodes. Past it: 413. */
  body_bytes: 1 * MIB,
  /** A signed request is accepted this long before or after its own time. Past it: 401. */
  signature_age_ms: 30 * SECOND,

  // Backup.
  /** Time between looks for something to store: so much may be missing when a machine is lost with its disk. */
  backup_ms: 1 * SECOND,
  /** Transactions are merged into one object up to this size. */
  backup_bytes: 64 * MIB,
  /** A snapshot is stored this often while anything changes: a restore reads one, and the changes since. */
  backup_snapshot_ms: 24 * 60 * 60 * SECOND,
  /** … and when so many objects of changes follow the last one. */
  backup_snapshot_changes: 5000,
  /** Backups reach back this far, unless told otherwise. What is only needed for older moments is deleted. */
  backup_keep_ms: 30 * 24 * 60 * 60 * SECOND,

  /** Transactions kept because a backup does not take them. Past it they go, and the backup goes on with a snapshot. */
  backup_backlog_bytes: 4 * 1024 * MIB,

  // Watching nodes from the platform.
  /** Readers of what nodes tell, on one platform process. One more: 503. */
  observers: 64,
  /** Nodes of one organization that are watched. Further ones are left out. */
  observed_nodes: 100,
  /** Databases shown of one node. Further ones are left out. */
  observed_databases: 100,
  /** One line of a node's events, and its whole account of itself. Past it the node is let go, and asked again. */
  observed_bytes: 256 * KIB,
  /** Changes of the primary that one node tells between two messages. Past it the node is let go, and asked again. */
  observed_changes: 100,
  /** What happens within this time is one message: a thousand transactions a second are ten messages. */
  observed_gather_ms: 100,
  /** How often a node that is watched is asked how it is. */
  observed_info_ms: 1 * SECOND,
  /** How often the platform looks for nodes that are new or gone, and tries those again that did not answer. */
  observed_find_ms: 2 * SECOND,

  // Election.
  /** Leases the platform remembers to have seen. One more: the least asked for is seen anew, and lasts longer by that. */
  leases_seen: 10_000,
  /**
   * How long a lease lasts that is not renewed, and so about how long a cluster is without a primary when that is lost. A
   * primary that cannot reach the store for three quarters of it stops. `--lease-ttl` changes it.
   */
  lease_ms: 2 * SECOND,
  /** A lease is renewed this many times while it lasts. Others look for one that has run out twice as often. */
  lease_renewals: 4,
  /** A primary stops this part of the lease before it can be taken by another. */
  lease_margin: 1 / 4,
  /** How long a successor named at handoff is preferred over everybody else. */
  handoff_ms: 5 * SECOND,
} as const;

/** The limits that tests make smaller, to reach in seconds what a node comes to after hours. */
export type Sizes = Partial<
  Record<"checkpoint_frames" | "segment_bytes" | "retention_bytes" | "table_every_bytes", number>
>;
