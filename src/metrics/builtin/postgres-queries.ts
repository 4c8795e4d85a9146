/**
 * Queries of hosted databases, one per group of series: columns named in `labels` become labels, every other
 * column is the series `<prefix><column>`. A column that is NULL is left out of the round.
 */
export interface PostgresQuery {
  prefix: string;
  labels: readonly string[];
  sql: string;
  /** Server versions that support it; all when absent. */
  from_version?: number;
  below_version?: number;
}

const WAL_HERE = "CASE WHEN pg_is_in_recovery() THEN pg_last_wal_replay_lsn() ELSE pg_current_wal_lsn() END";
const epoch = (column: string): string => `extract(epoch FROM ${column})`;

const QUERIES: readonly PostgresQuery[] = [
  {
    prefix: "pg_stat_activity_",
    labels: ["datname", "state"],
    sql: `SELECT datname, coalesce(state, '') AS state, count(*) AS count,
      coalesce(max(${epoch("now() - xact_start")}), 0) AS max_tx_duration
      FROM pg_stat_activity WHERE datname IS NOT NULL GROUP BY 1, 2`,
  },
  {
    prefix: "pg_stat_archiver_",
    labels: [],
    sql: "SELECT archived_count, failed_count FROM pg_stat_archiver",
  },
  {
    prefix: "pg_stat_bgwriter_",
    labels: [],
    below_version: 170_000,
    sql: `SELECT buffers_alloc, buffers_backend_fsync, buffers_backend, buffers_checkpoint, buffers_clean,
      checkpoint_sync_time, checkpoint_write_time, checkpoints_req, checkpoints_timed, maxwritten_clean,
      ${epoch("stats_reset")} AS stats_reset FROM pg_stat_bgwriter`,
  },
  {
    // Version 17 moved checkpoints out of the view, and backend writes to pg_stat_io.
    prefix: "pg_stat_bgwriter_",
    labels: [],
    from_version: 170_000,
    sql: `SELECT b.buffers_alloc, io.fsyncs AS buffers_backend_fsync, io.writes AS buffers_backend,
      c.buffers_written AS buffers_checkpoint, b.buffers_clean, c.sync_time AS checkpoint_sync_time,
      c.write_time AS checkpoint_write_time, c.num_requested AS checkpoints_req, c.num_timed AS checkpoints_timed,
      b.maxwritten_clean, ${epoch("b.stats_reset")} AS stats_reset
      FROM pg_stat_bgwriter b, pg_stat_checkpointer c, (SELECT coalesce(sum(writes), 0) AS writes,
      coalesce(sum(fsyncs), 0) AS fsyncs FROM pg_stat_io WHERE backend_type = 'client backend') io`,
  },
  {
    prefix: "pg_stat_database_",
    labels: ["datname"],
    sql: `SELECT d.datname, d.blk_read_time, d.blk_write_time, d.blks_hit, d.blks_read,
      c.confl_bufferpin AS conflicts_confl_bufferpin, c.confl_deadlock AS conflicts_confl_deadlock,
      c.confl_lock AS conflicts_confl_lock, c.confl_snapshot AS conflicts_confl_snapshot,
      c.confl_tablespace AS conflicts_confl_tablespace, d.conflicts, d.deadlocks, d.numbackends,
      coalesce(${epoch("d.stats_reset")}, 0) AS stats_reset, d.tup_deleted, d.tup_fetched, d.tup_inserted,
      d.tup_returned, d.tup_updated, d.xact_commit, d.xact_rollback
      FROM pg_stat_database d JOIN pg_stat_database_conflicts c USING (datid) WHERE d.datname IS NOT NULL`,
  },
  {
    // Without a replica there is one row with zero lag.
    prefix: "pg_stat_replication_",
    labels: ["application_name", "client_addr"],
    sql: `SELECT coalesce(r.application_name, '') AS application_name, coalesce(host(r.client_addr), '') AS client_addr,
      pg_wal_lsn_diff(${WAL_HERE}, '0/0') AS pg_current_wal_lsn_bytes,
      coalesce(pg_wal_lsn_diff(${WAL_HERE}, r.replay_lsn), 0) AS pg_wal_lsn_diff,
      coalesce(${epoch("r.reply_time")}, 0) AS reply_time
      FROM (SELECT 1) one LEFT JOIN pg_stat_replication r ON true`,
  },
  {
    prefix: "pg_",
    labels: [],
    sql: `SELECT CASE WHEN pg_is_in_recovery()
      THEN greatest(0, coalesce(${epoch("now() - pg_last_xact_replay_timestamp()")}, 0)) ELSE 0 END AS replication_lag`,
  },
  {
    prefix: "pg_",
    labels: ["datname"],
    sql: "SELECT datname, pg_database_size(oid) AS database_size_bytes FROM pg_database WHERE datallowconn",
  },
];

/** Queries that a server of this version supports. */
export function queriesFor(version: number): PostgresQuery[] {
  return QUERIES.filter(
    ({ from_version = 0, below_version = Number.POSITIVE_INFINITY }) =>
      version >= from_version && version < below_version,
  );
}
