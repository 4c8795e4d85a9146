import type { MetricMetadata } from "../tsdb/index/metadata-index.ts";
import { DISK_FIELDS, FILESYSTEM_FIELDS, MEMORY_FIELDS, NET_FIELDS } from "./fields.ts";

/** Metadata of the built-in series, for `/api/v1/metadata`. A histogram is listed by its base name. */
type Row = [name: string, type: "counter" | "gauge" | "histogram", help: string];

const TRAFFIC: Row[] = [
  ["svc_edge_http_responses_count", "counter", "Answers to clients, by status."],
  ["svc_edge_http_response_time_seconds", "histogram", "From a request's arrival to the end of its answer."],
  [
    "svc_edge_http_route_response_time_seconds",
    "histogram",
    "The same for each route that `http_options.routes` names.",
  ],
  ["svc_edge_http_route_errors_count", "counter", "Answers of such a route with a status of 500 or more."],
  ["svc_edge_tcp_connects_count", "counter", "Connections that clients opened."],
  ["svc_edge_tcp_disconnects_count", "counter", "Connections of clients that ended."],
  ["svc_edge_data_out", "counter", "Bytes sent to clients."],
  ["svc_edge_data_in", "counter", "Bytes received from clients."],
  ["svc_edge_tls_handshake_errors", "counter", "TLS handshakes that failed, by server name."],
  ["svc_edge_tls_handshake_time_seconds", "histogram", "How long TLS handshakes took, by version."],
  ["svc_app_concurrency", "gauge", "Requests or connections in progress at a machine."],
  ["svc_app_http_responses_count", "counter", "A machine's answers, by status."],
  ["svc_app_http_response_time_seconds", "histogram", "From passing a request on to the end of the machine's answer."],
  ["svc_app_connect_time_seconds", "histogram", "How long connecting to a machine took."],
  ["svc_app_tcp_connects_count", "counter", "Connections opened to a machine."],
  ["svc_app_tcp_disconnects_count", "counter", "Connections to a machine that ended."],
];

const MACHINES: Row[] = [
  ["svc_instance_up", "gauge", "1 when the machine can be read."],
  ["svc_instance_exit_code", "gauge", "How the main process ended, at that time."],
  ["svc_instance_exit_oom", "gauge", "1 when it was killed because memory ran out."],
  ["svc_instance_exit_vm_code", "gauge", "How the machine itself ended."],
  [
    "svc_instance_load_average",
    "gauge",
    "Load average: processes that ran or waited for a disk, over this many minutes.",
  ],
  ["svc_instance_cpu", "counter", "Processor time by mode, in centiseconds."],
  ["svc_instance_cpu_baseline", "gauge", "Processors the machine may always use."],
  ["svc_instance_cpu_balance", "gauge", "Centiseconds of its CPU baseline recently left unused."],
  ["svc_instance_cpu_throttle", "counter", "Centiseconds for which it wanted more than it was given."],
  [
    "svc_instance_egress_denied_count",
    "counter",
    "Packets that the egress rules denied: mostly one for each connection.",
  ],
  [
    "svc_instance_connections_refused_count",
    "counter",
    "Packets dropped because the machine had too many connections.",
  ],
  [
    "svc_instance_pressure",
    "counter",
    "Centiseconds in which some or all of its processes waited for a resource (PSI: cpu, memory, io).",
  ],
  ["svc_instance_oom_kills", "counter", "Processes killed because memory ran out since its boot."],
  ["svc_instance_check_passing", "gauge", "1 unless the check is critical."],
  ["svc_certificate_not_after_seconds", "gauge", "When the certificate of a host name ends, in seconds since 1970."],
  ["svc_host_up", "gauge", "0 when the host counts as failed; in the organization `personal`."],
  ["svc_instance_filefd_allocated", "gauge", "Open files."],
  ["svc_instance_filefd_maximum", "gauge", "Files a process may open."],
  ["svc_volume_size_bytes", "gauge", "Size of the volume."],
  ["svc_volume_used_pct", "gauge", "How much of it is used, 0 to 100."],
  ...MEMORY_FIELDS.map((field): Row => [`svc_instance_memory_${field}`, "gauge", `${field} of the machine, in bytes.`]),
  ...DISK_FIELDS.map(
    (field): Row => [
      `svc_instance_disk_${field}`,
      field === "io_in_progress" ? "gauge" : "counter",
      `${field.replaceAll("_", " ")} of a disk: milliseconds, sectors of 512 bytes, or a count.`,
    ],
  ),
  ...NET_FIELDS.map(
    (field): Row => [`svc_instance_net_${field}`, "counter", `${field.replace("_", " ")} of a network device.`],
  ),
  ...FILESYSTEM_FIELDS.map((field): Row => [`svc_instance_filesystem_${field}`, "gauge", `${field} of a file system.`]),
];

const SCRAPES: Row[] = [
  ["up", "gauge", "1 when the machine's own metrics could be read."],
  ["scrape_duration_seconds", "gauge", "How long reading them took."],
  ["scrape_samples_scraped", "gauge", "How many there were."],
  ["scrape_body_too_large_total", "counter", "How often the answer was dropped because it was too large."],
];

const DATABASES: [prefix: string, names: string][] = [
  ["pg_stat_activity_", "count max_tx_duration"],
  ["pg_stat_archiver_", "archived_count failed_count"],
  [
    "pg_stat_bgwriter_",
    `buffers_alloc buffers_backend_fsync buffers_backend buffers_checkpoint buffers_clean checkpoint_sync_time
    checkpoint_write_time checkpoints_req checkpoints_timed maxwritten_clean stats_reset`,
  ],
  [
    "pg_stat_database_",
    `blk_read_time blk_write_time blks_hit blks_read conflicts conflicts_confl_bufferpin conflicts_confl_deadlock
    conflicts_confl_lock conflicts_confl_snapshot conflicts_confl_tablespace deadlocks numbackends stats_reset
    tup_deleted tup_fetched tup_inserted tup_returned tup_updated xact_commit xact_rollback`,
  ],
  ["pg_stat_replication_", "pg_current_wal_lsn_bytes pg_wal_lsn_diff reply_time"],
  ["pg_", "replication_lag database_size_bytes"],
];

const ROWS: Row[] = [
  ...TRAFFIC,
  ...MACHINES,
  ...SCRAPES,
  ...DATABASES.flatMap(([prefix, names]) =>
    names.split(/\s+/).map((name): Row => [prefix + name, "gauge", "Of a hosted database, as its own views name it."]),
  ),
];

/** Metadata of the names that an organization has. */
export function builtinMetadata(names: ReadonlySet<string>): [string, MetricMetadata][] {
  return ROWS.filter(([name, type]) => names.has(type === "histogram" ? `${name}_count` : name)).map(
    ([name, type, help]) => [name, { type, help, unit: "" }],
  );
}
