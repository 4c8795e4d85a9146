/** Every built-in series the specification names, written out from it: what a platform shows is held against this. */

const group = (prefix: string, names: string): string[] => names.split(/\s+/).map((name) => prefix + name);
const histogram = (name: string): string[] => [`${name}_bucket`, `${name}_sum`, `${name}_count`];

export const PROXY_SERIES: readonly string[] = [
  "svc_edge_http_responses_count",
  ...histogram("svc_edge_http_response_time_seconds"),
  ...group("svc_edge_", "tcp_connects_count tcp_disconnects_count data_out data_in tls_handshake_errors"),
  ...histogram("svc_edge_tls_handshake_time_seconds"),
  ...group("svc_app_", "concurrency http_responses_count tcp_connects_count tcp_disconnects_count"),
  ...histogram("svc_app_http_response_time_seconds"),
  ...histogram("svc_app_connect_time_seconds"),
];

export const INSTANCE_SERIES: readonly string[] = [
  "svc_instance_up",
  ...group(
    "svc_instance_memory_",
    `mem_total mem_free mem_available buffers cached swap_cached active inactive swap_total swap_free dirty writeback
    slab shmem vmalloc_total vmalloc_used vmalloc_chunk`,
  ),
  ...group("svc_instance_", "load_average cpu cpu_baseline cpu_balance cpu_throttle"),
  ...group(
    "svc_instance_disk_",
    `reads_completed reads_merged sectors_read time_reading writes_completed writes_merged sectors_written time_writing
    io_in_progress time_io time_io_weighted`,
  ),
  ...group(
    "svc_instance_net_",
    `recv_bytes recv_packets recv_errs recv_drop recv_fifo recv_frame recv_compressed recv_multicast sent_bytes
    sent_packets sent_errs sent_drop sent_fifo sent_colls sent_carrier sent_compressed`,
  ),
  ...group("svc_instance_filefd_", "allocated maximum"),
  ...group("svc_instance_filesystem_", "blocks block_size blocks_free blocks_avail"),
];

export const EXIT_SERIES: readonly string[] = group("svc_instance_exit_", "code oom vm_code");
export const VOLUME_SERIES: readonly string[] = group("svc_volume_", "size_bytes used_pct");

export const POSTGRES_SERIES: readonly string[] = [
  ...group("pg_stat_activity_", "count max_tx_duration"),
  ...group("pg_stat_archiver_", "archived_count failed_count"),
  ...group(
    "pg_stat_bgwriter_",
    `buffers_alloc buffers_backend_fsync buffers_backend buffers_checkpoint buffers_clean checkpoint_sync_time
    checkpoint_write_time checkpoints_req checkpoints_timed maxwritten_clean stats_reset`,
  ),
  ...group(
    "pg_stat_database_",
    `blk_read_time blk_write_time blks_hit blks_read conflicts_confl_bufferpin conflicts_confl_deadlock
    conflicts_confl_lock conflicts_confl_snapshot conflicts_confl_tablespace conflicts deadlocks numbackends stats_reset
    tup_deleted tup_fetched tup_inserted tup_returned tup_updated xact_commit xact_rollback`,
  ),
  ...group("pg_stat_replication_", "pg_current_wal_lsn_bytes pg_wal_lsn_diff reply_time"),
  "pg_replication_lag",
  "pg_database_size_bytes",
];
