/** Limits of the machines module. Each comment says what happens when the limit is reached. */
const SECOND = 1000;
const MINUTE = 60 * SECOND;
const DAY = 24 * 60 * MINUTE;

export const MACHINE_LIMITS = {
  /** Routes that one port may name to be counted (`http_options.routes`). One more: 422. */
  counted_routes: 50,
  /** Machines of one organization that are not destroyed. One more: 422 `limit_reached`. */
  machines_per_org: 250_000,
  /** Creates that are this close to `machines_per_org` are serialized, so that the limit is exact; others are not. */
  machines_counted_exactly: 1000,
  /** Interval at which the counts of machines are aggregated. */
  fold_counts_ms: 30 * SECOND,
  /** Body of a create or update, whose config may contain files. Past it: 413. */
  config_bytes: 8 * 1024 * 1024,
  metadata_keys: 200,
  metadata_key_chars: 256,
  metadata_value_chars: 4096,
  /** Config versions kept per machine; the oldest is deleted. */
  versions_kept: 100,
  /** Characters of a search for machines. Past it: 400. */
  search_chars: 200,
  /** Words of a search. Past it: 400. */
  search_words: 8,
  /** Machines counted for a list. Past it: the counts are of this many, and not exact. */
  machines_counted: 100_000,
  /** Events included in a machine's response; the event log keeps all. */
  events_shown: 20,
  /** Events that a stream reads in one query. */
  events_page: 1000,
  /** Time a reader of the event log waits for earlier writes in progress. Past it: the page ends before them. */
  events_settle_ms: SECOND,
  /** Poll interval of a stream that waits for such a write. */
  events_behind_ms: 250,

  /** Operations waiting on one machine. One more: 503 `overloaded`. */
  operations_waiting: 64,
  /** Retries after a concurrent change of the same machine. Past it: 409 `conflict`. */
  write_races: 64,
  /** Operations that an executor runs in parallel; further ones wait. */
  operations_parallel: 64,

  /** Machines of a lost host that are restarted elsewhere in parallel; further ones wait. */
  rescues_parallel: 8,
  /** Machines of a host marked per write as exempt from its lease; further ones follow. */
  exempted_at_once: 200,
  /** Retry interval for machines that must leave their host and found no capacity. */
  relocate_again_ms: 5 * SECOND,

  lease_default_ttl_s: 30,
  /** Longest lease. Past it: 400. */
  lease_max_ttl_s: 24 * 3600,
  /** Longest wait for a lease; larger values are reduced to this. */
  lease_wait_max_s: 60,
  lease_description_chars: 1000,

  /** Poll interval for changes of other processes whose notification was lost. */
  bus_look_ms: 2 * SECOND,
  /** Time range of that poll: the tolerated clock skew between hosts. */
  bus_lately_ms: 30 * SECOND,

  wait_default_s: 60,
  /** Longest wait for a state; larger values are reduced to this. */
  wait_max_s: 600,

  stop_timeout_ms: 5 * SECOND,
  stop_timeout_max_ms: 5 * MINUTE,
  /** Delay of the first restart of a restart policy, doubled for each further one … */
  restart_delay_ms: SECOND,
  /** … up to this. */
  restart_delay_max_ms: 30 * SECOND,
  /** Retries of `on-failure`, when the config does not say how many. */
  restart_retries: 10,
  /** A machine that has run this long counts as recovered: its restart counter is reset. */
  restart_window_ms: 5 * MINUTE,
  /** Interval of reconciliation with the driver, in case an exit notice was lost. */
  reconcile_ms: 30 * SECOND,
  /** Delay before an operation whose outcome could not be written is retried. */
  retry_ms: SECOND,
  /** Time a driver has to react to a timeout before the machine is `failed`. */
  abort_grace_ms: 5 * SECOND,

  /** Time a shutdown waits for writes in progress. */
  close_ms: 5 * SECOND,

  check_interval_ms: 15 * SECOND,
  check_interval_min_ms: SECOND,
  check_timeout_ms: 10 * SECOND,
  check_output_chars: 2000,
  /** Minimum interval between stored outputs of a check whose status does not change. */
  check_output_ms: 5 * SECOND,

  exec_default_s: 60,
  exec_max_s: 600,
  exec_output_bytes: 1024 * 1024,

  /** Open terminals into one machine. One more: 422 `limit_reached`. */
  terminals_per_machine: 8,
  /** Open terminals of one process of the platform. One more: 503 `overloaded`. */
  terminals: 256,
  /** Idle timeout of a terminal; the close message says so. */
  terminal_idle_ms: 60 * MINUTE,
  /** Rows and columns of a terminal. Past it: 400, or the WebSocket closes with code 1008. */
  terminal_side: 1000,

  /** Open tunnels to ports of one machine. One more: 422 `limit_reached`. */
  tunnels_per_machine: 100,
  /** Open tunnels of one process of the platform. One more: 503 `overloaded`. */
  tunnels: 1000,
  /** Idle timeout of a tunnel; the close message says so. */
  tunnel_idle_ms: 60 * MINUTE,
  /** Time for a connection to a machine's port. Past it: 412 `port_unreachable`. */
  tunnel_connect_ms: 10 * SECOND,

  /** Runs (one-off, scheduled, release commands) kept per app; the oldest that has ended is deleted. */
  runs_per_app: 1000,
  /** Length of a run's stored command; the rest is cut off. */
  run_command_chars: 1000,
  /** Poll interval of the followed output of a run. */
  run_look_ms: 100,

  /** Log lines in one response. */
  logs_page: 10_000,
  /** Machines whose logs are read together; of a larger app, the most recently changed ones. */
  logs_machines: 200,
  /** Characters of a search in logs. Past it: 400. */
  logs_search_chars: 1000,
  /** Tests of fields in one search of logs. Past it: 400. */
  logs_search_fields: 10,
  /** Machines whose logs are searched together; of a larger app, the most recently changed ones. */
  logs_search_machines: 500,
  /** Text that one request of a search reads on each host. Past it: it answers with what it found and a cursor. */
  logs_search_bytes: 256 * 1024 * 1024,
  /** Time that one request of a search takes on each host. Past it: the same. */
  logs_search_ms: 4 * SECOND,
  /** Searches of one organization at a time in one process of the platform. One more: 503 `overloaded`. */
  logs_searches: 4,
  /** Searches oldest first leave out newer lines than this, which other machines may still precede. */
  logs_settle_ms: SECOND,
  /** Poll interval of followed logs, in case a notification was lost. */
  logs_look_ms: 2 * SECOND,

  /** Log drains of one organization. One more: 422 `limit_reached`. */
  drains_per_org: 10,
  /** Text of one request of a log drain, and about as much more from the machine that came last. */
  drain_batch_bytes: 1024 * 1024,
  /** Log drains that one process sends at a time. More wait for their turn. */
  drains_at_once: 64,
  /** Interval at which a log drain looks for new lines. */
  drain_look_ms: SECOND,
  /** Interval at which a host looks for log drains that others created or deleted. */
  drain_list_ms: 10 * SECOND,
  /** Minimum interval between stored states of a log drain that works. */
  drain_state_ms: 5 * SECOND,
  /** Timeout of a request of a log drain. Then it is retried after the delay, doubled each time … */
  drain_timeout_ms: 30 * SECOND,
  drain_delay_ms: SECOND,
  /** … up to this. */
  drain_delay_max_ms: MINUTE,
  /** Longest delay that a receiver may ask for (`Retry-After`). */
  drain_retry_after_ms: 10 * MINUTE,
  /** Requests for one batch of which a receiver refuses lines. Past it: the refused rest is given up, and counted. */
  drain_splits: 64,

  /** Webhooks of one organization. One more: 422 `limit_reached`. */
  webhooks_per_org: 20,
  /** Time for which one process claims a webhook; longer than a request may take. Then another process may send it. */
  webhook_claim_ms: 30 * SECOND,
  /** Poll interval for webhooks created or deleted by other processes, or no longer claimed. */
  webhook_look_ms: 10 * SECOND,
  /** Events per webhook request; further ones are sent with the next. */
  webhook_batch: 100,
  /** Timeout of a webhook request. Then it is retried after the delay, doubled each time … */
  webhook_timeout_ms: 10 * SECOND,
  webhook_delay_ms: SECOND,
  /** … up to this. */
  webhook_delay_max_ms: 10 * MINUTE,

  /** Largest configured root disk, in GB. More: 400. */
  root_disk_gb: 512,

  /** Time for which a destroyed machine can still be read; longer where `log_retention_days` is. */
  destroyed_kept_ms: 7 * DAY,
  purge_ms: 10 * MINUTE,
} as const;
