/**
 * The limits of the platform, by name. The comment of each says what happens when it is reached; errors name the limit.
 */
const KIB = 1024;
const MIB = 1024 * KIB;
const SECOND = 1000;
const HOUR = 3600 * SECOND;

export const LIMITS = {
  // The HTTP edge.
  /** Largest JSON body. Past it: 413, the rest is not read. */
  body_bytes: MIB,
  /**
   * Bodies over this size are read only after the token was verified, so that anonymous callers cannot use memory.
   * Otherwise: 401.
   */
  body_unknown_bytes: 16 * KIB,
  /** Total size of such bodies in memory per token; full-access tokens are not counted. Over it: 429 `rate_limited`. */
  bodies_bytes_per_token: 64 * MIB,
  /** Total size of such bodies in memory, all tokens. Over it: 503 `overloaded`. */
  bodies_bytes: 256 * MIB,
  /** Nesting depth of arrays and objects in a body. Past it: 400. */
  json_depth: 64,
  /** Total size of the request headers. Past it: 431. */
  header_bytes: 16 * KIB,
  /** Length of the request target. Past it: 414. */
  target_bytes: 8 * KIB,
  /** Time to receive all headers. Past it: 408 and the connection is closed. */
  headers_timeout_ms: 5 * SECOND,
  /** Time to receive the whole request. Past it: 408 and the connection is closed. */
  request_timeout_ms: 30 * SECOND,
  /** Time an upload may send no data. Past it: 408 and the connection is closed. */
  upload_stall_ms: 30 * SECOND,
  /** An idle kept-alive connection is closed after this. */
  keep_alive_ms: 72 * SECOND,
  /** Open connections. For one more, the longest idle one is closed, or the new one when all are in use. */
  connections: 8192,
  /** Open connections that one token used last; full-access tokens are not counted. One more: 429 `rate_limited`. */
  connections_per_token: 1024,
  /** Time a shutdown waits for requests in flight. Past it their connections are closed. */
  shutdown_ms: 10 * SECOND,
  /** Maximum time of a shutdown. Past it: the process exits with code 1. */
  stop_ms: 30 * SECOND,
  /** Timeout of one readiness check. Past it: the part counts as not ready. */
  readiness_check_ms: 3 * SECOND,
  /** Time a readiness result is cached. */
  readiness_kept_ms: SECOND / 2,
  /** Interval between attempts to start while the database is unreachable. */
  database_wait_ms: SECOND,
  /** Time after the start until systemd is notified even though a component is not ready, with the reason. */
  ready_wait_ms: 30 * SECOND,
  /** Items in one page of a list (`limit`). More: 400. */
  page_items: 1000,
  /** Items of a list without `limit`. Past it: the first ones, a next cursor, and a warning. */
  list_items: 10_000,
  cursor_chars: 2048,
  /** Problems listed in one response; further ones are omitted. */
  problems_listed: 64,

  // Connections to machines.
  /** Delay before a machine's other address family is tried in parallel (happy eyeballs). */
  dial_stagger_ms: 250,

  // Idempotency-Key.
  idempotency_key_chars: 255,
  /** Time for which the response to an Idempotency-Key is kept. */
  idempotency_kept_ms: 24 * HOUR,
  /** A request that takes longer than this counts as dead and may be executed again. */
  idempotency_running_ms: 10 * 60 * SECOND,

  // Tokens.
  token_bytes: 8 * KIB,
  token_caveats: 32,
  /** Nesting depth of `any` caveats. */
  token_nesting: 4,
  /** Lifetime of a sign-in link to the dashboard; it works once. */
  sign_in_code_ms: 10 * 60 * SECOND,
  /** Unused sign-in links per token. One more: the token's oldest link becomes invalid. */
  sign_in_codes_per_token: 10,
  /** Unused sign-in links of all tokens. One more: the oldest becomes invalid. */
  sign_in_codes: 10_000,
  /** Length of a chain of tokens in which each was created by the one before. */
  token_chain: 8,
  /** Valid tokens of an organization. Including listed revoked and expired ones: at most four times as many. */
  tokens_per_org: 10_000,
  /**
   * Time for which a revoked or expired token is still listed. Longer than an Idempotency-Key, with which it could be
   * created again.
   */
  ended_tokens_kept_ms: 30 * 24 * HOUR,
  token_name_chars: 64,
  /** Longest lifetime of a token: 20 years. */
  token_expiry_ms: 20 * 365.25 * 24 * HOUR,

  // Orgs, apps, secrets.
  orgs: 1000,
  org_name_chars: 100,
  slug_chars: 63,
  app_name_chars: 63,
  apps_per_org: 10_000,
  /** Releases kept per app; older ones are deleted. */
  releases_per_app: 100,
  /** Longest lease of a release. Past it: 400. */
  release_lease_max_s: 24 * 3600,
  /** Interval between checks of running releases; one that its deployer has not renewed within its lease fails. */
  release_leases_ms: 5 * SECOND,
  /** Newest releases of an app whose images are kept, for rollbacks. */
  release_images_kept: 10,
  image_name_chars: 1024,
  description_chars: 1000,
  secrets_per_app: 500,
  secret_name_chars: 128,
  secret_value_bytes: 64 * KIB,
  /** Entries of an app's egress policy. One more: 400. */
  egress_entries: 64,

  // Waiting and streams.
  /** Event streams, followed logs and terminals of one token; full-access tokens are not counted. One more: 429. */
  streams_per_token: 256,
  /** Subscribers of the event bus. One more: 503 `overloaded`. */
  bus_listeners: 50_000,
  /** Unsent bytes of one stream. Past it: the stream ends with an error event. */
  stream_buffer_bytes: MIB,
  /** Time a reader of a stream may take no data. Past it: the stream ends with an error event. */
  stream_stall_ms: 30 * SECOND,
  /** Interval of heartbeats on an idle stream, so that proxies in between do not close it. */
  stream_heartbeat_ms: 15 * SECOND,
  /** Interval at which the token of an open stream or terminal is checked; a revocation ends it within this time. */
  session_check_ms: SECOND / 2,
  /** Size of one WebSocket message. Past it: the connection is closed with code 1009. */
  websocket_message_bytes: MIB,

  // The store.
  /** Write batches waiting for the writer. One more: 503 `overloaded`. */
  write_queue: 4096,
  /** Time a start waits for the integrity check of the database; then it continues in the background. Corruption ends the platform. */
  check_wait_ms: 5000,
  /** Write batches that share one fsync. */
  group_commit: 512,
  /** Reserved disk space that is released when the disk is full, so that deletes still work; less on a small disk. */
  ballast_bytes: 4 * MIB,
  /** Cached rows between two commits, for each of tokens, apps, organizations and machines. One more: the cache is cleared. */
  lookups: 4096,
  /** Cached row sets (token, app, organization) of reads, with PostgreSQL. One more: the cache is cleared. */
  recollections: 512,
  /** One call to PostgreSQL, retries included. Past it: 503, and its connection is replaced. */
  postgres_call_ms: 10 * SECOND,
  /** One statement, by the server's clock (`statement_timeout`). Past it: 503 `overloaded`, nothing was changed. */
  postgres_statement_ms: 8 * SECOND,
  /** Time a statement waits for a lock (`lock_timeout`). Past it: as above. */
  postgres_lock_ms: 4 * SECOND,
  /**
   * Time a write of another process may pause while it holds locks that others wait for. Past it: they terminate its
   * session.
   */
  postgres_stuck_ms: 1500,
  /** Time a transaction may be idle (`idle_in_transaction_session_timeout`). Past it: the server ends it. */
  postgres_idle_transaction_ms: 5 * SECOND,
  /** The call timeout of migrations and restores. */
  postgres_patient_ms: 15 * 60 * SECOND,
  /** One attempt to connect to one host of the database URL. Past it: the next one is tried. */
  postgres_connect_ms: 3 * SECOND,
  /** A connection that responded within this time is used directly; an older one is probed first. */
  postgres_fresh_ms: SECOND,
  /** Timeout of that probe. Past it: the connection is replaced, and the call uses another one. */
  postgres_probe_ms: 2 * SECOND,
  /**
   * Interval at which all hosts of the database URL are checked. On a newer primary: sessions to the old one are
   * closed.
   */
  postgres_survey_ms: 5 * SECOND,
  /** Idle time after which the kernel probes a connection. */
  postgres_keepalive_ms: 10 * SECOND,
  /** A connection that is unused for this long is closed. */
  postgres_idle_ms: 5 * 60 * SECOND,
  /** Delay before a new connection is tried again after the database refused one (`max_connections`); calls wait meanwhile. */
  postgres_crowded_ms: SECOND / 2,
  /** Time that calls in flight have at shutdown. Past it: their connections are closed. */
  postgres_close_ms: 2 * SECOND,
  /** Retries of a batch after a deadlock or serialization failure. */
  write_retries: 5,
  /** Notifications (NOTIFY) to other processes waiting to be sent. One more is dropped; receivers also poll. */
  notify_waiting: 10_000,
  /** Notifications sent in one statement. */
  notify_batch: 200,
  /** Timeout of connecting and of any call on the LISTEN connection. Past it: it is reconnected. */
  notify_connect_ms: 5 * SECOND,
  /** Interval of probes on an idle LISTEN connection. */
  notify_probe_ms: 5 * SECOND,
  /** Delay between attempts to reconnect the LISTEN connection. */
  notify_retry_ms: 250,

  // Logs of the platform itself.
  log_file_bytes: 16 * MIB,
} as const;
