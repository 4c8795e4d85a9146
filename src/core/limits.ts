/**
 * Every bound of the program, by name. What happens at the bound is written beside it; an error that comes
 * from one says the name.
 */
const KIB = 1024;
const MIB = 1024 * KIB;
const SECOND = 1000;
const HOUR = 3600 * SECOND;

export const LIMITS = {
  // The HTTP edge.
  /** Largest JSON body. Past it: 413, the rest is not read. */
  body_bytes: MIB,
  /** A larger body is read only for a good token: until then a caller costs no more memory than its headers. Else: 401. */
  body_unknown_bytes: 16 * KIB,
  /** Larger bodies of one token in memory at once; full-access tokens are not counted. One more: 429 `rate_limited`. */
  bodies_bytes_per_token: 64 * MIB,
  /** The same of all tokens. One more: 503 `overloaded`. */
  bodies_bytes: 256 * MIB,
  /** How deep arrays and objects may nest in a body. Past it: 400. */
  json_depth: 64,
  /** All header lines together. Past it: 431. */
  header_bytes: 16 * KIB,
  /** The request target. Past it: 414. */
  target_bytes: 8 * KIB,
  /** Until the header block is complete. Past it: 408 and the connection is closed. */
  headers_timeout_ms: 5 * SECOND,
  /** Until the whole request is there. Past it: 408 and the connection is closed. */
  request_timeout_ms: 30 * SECOND,
  /** An upload that brings nothing for this long. Past it: 408 and the connection is closed. */
  upload_stall_ms: 30 * SECOND,
  /** An idle kept-alive connection is closed after this. */
  keep_alive_ms: 72 * SECOND,
  /** Open connections. Of one more the longest unused is closed, or itself when all are in use. */
  connections: 8192,
  /** Open connections that one token used last; full-access tokens are not counted. One more: 429 `rate_limited`. */
  connections_per_token: 1024,
  /** How long a stopping platform waits for requests in flight. Past it they are cut. */
  shutdown_ms: 10 * SECOND,
  /** How long stopping takes at most, whatever hangs. Past it: the process ends with exit code 1. */
  stop_ms: 30 * SECOND,
  /** How long one part of the platform has to say whether it is ready. Past it: it is not. */
  readiness_check_ms: 3 * SECOND,
  /** What was found is answered for this long. */
  readiness_kept_ms: SECOND / 2,
  /** Between two attempts to start while the database is away. */
  database_wait_ms: SECOND,
  /** How long systemd is told that the platform starts while something is not ready; then it is told what. */
  ready_wait_ms: 30 * SECOND,
  /** Items in one page of a list (`limit`). More: 400. */
  page_items: 1000,
  /** Items of a list that is asked for without `limit`. Past it: the first ones, a next cursor, and a warning. */
  list_items: 10_000,
  cursor_chars: 2048,
  /** Problems listed in one answer. More exist, these come first. */
  problems_listed: 64,

  // Connections to machines.
  /** An address of a machine that says nothing for this long: its other one is tried beside it. */
  dial_stagger_ms: 250,

  // Idempotency-Key.
  idempotency_key_chars: 255,
  /** A repeated request is recognised for this long. */
  idempotency_kept_ms: 24 * HOUR,
  /** A request that takes longer than this is taken for dead and may be run again. */
  idempotency_running_ms: 10 * 60 * SECOND,

  // Tokens.
  token_bytes: 8 * KIB,
  token_caveats: 32,
  /** `any` inside `any`. */
  token_nesting: 4,
  /** A link that signs in to the dashboard works once, and no longer than this. */
  sign_in_code_ms: 10 * 60 * SECOND,
  /** Links that were not used yet, of one token. One more: its oldest stops working. */
  sign_in_codes_per_token: 10,
  /** Of all tokens. One more: the oldest stops working. */
  sign_in_codes: 10_000,
  /** Tokens that were made by tokens that were made by tokens. */
  token_chain: 8,
  tokens_per_org: 10_000,
  token_name_chars: 64,
  /** The longest life one can ask for: 20 years. */
  token_expiry_ms: 20 * 365.25 * 24 * HOUR,

  // Orgs, apps, secrets.
  orgs: 1000,
  org_name_chars: 100,
  slug_chars: 63,
  app_name_chars: 63,
  apps_per_org: 10_000,
  /** Of an app's releases the newest; older ones are forgotten. */
  releases_per_app: 100,
  /** The images of this many of an app's newest releases are kept, so that a rollback finds them. */
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
  /** Waiters, streams and loops that listen at once. One more: 503 `overloaded`. */
  bus_listeners: 50_000,
  /** What may wait to be sent to one reader of a stream. Past it: that reader is told so and let go. */
  stream_buffer_bytes: MIB,
  /** A reader that takes nothing for this long is told so and let go. */
  stream_stall_ms: 30 * SECOND,
  /** A silent stream says something this often, so that nothing in between takes it for dead. */
  stream_heartbeat_ms: 15 * SECOND,
  /** How often the token of an open stream or terminal is looked at; it ends within this time of a revocation. */
  session_check_ms: SECOND / 2,
  /** One message on a line that both sides speak on (WebSocket). Past it: the line ends with code 1009. */
  line_message_bytes: MIB,

  // The store.
  /** Write batches waiting for the writer. One more: 503 `overloaded`. */
  write_queue: 4096,
  /** A start waits so long for the check of the database's pages, which then goes on beside it; damage ends the platform. */
  check_wait_ms: 5000,
  /** Batches that share one fsync. */
  group_commit: 512,
  /** Disk space kept back so that deleting works when the rest is used up; less on a small disk. */
  ballast_bytes: 4 * MIB,
  /** Tokens, apps, organizations and machines remembered between two commits, each. One more: all are forgotten. */
  lookups: 4096,
  /** One call to PostgreSQL, all its tries included. Past it: 503, and its connection is replaced. */
  postgres_call_ms: 10 * SECOND,
  /** One statement, by the server's clock (`statement_timeout`). Past it: 503 `overloaded`, nothing was changed. */
  postgres_statement_ms: 8 * SECOND,
  /** A statement that waits for what another transaction holds (`lock_timeout`). Past it: as above. */
  postgres_lock_ms: 4 * SECOND,
  /** A transaction whose client says nothing, `idle_in_transaction_session_timeout`. Past it: the server ends it. */
  postgres_idle_transaction_ms: 5 * SECOND,
  /** Migrations and restores have this long instead. */
  postgres_patient_ms: 15 * 60 * SECOND,
  /** One attempt to connect to one host of the database URL. Past it: the next one is tried. */
  postgres_connect_ms: 3 * SECOND,
  /** A connection that answered within this time is used as it is; another one must show first that it is there. */
  postgres_fresh_ms: SECOND,
  /** What such a connection has to show it. Past it: it is replaced, and the call is made on another one. */
  postgres_probe_ms: 2 * SECOND,
  /** A silent connection is probed by the kernel after this. */
  postgres_keepalive_ms: 10 * SECOND,
  /** A connection that nobody used for this long is closed. */
  postgres_idle_ms: 5 * 60 * SECOND,
  /** A database without room for one more connection is asked again after this; calls wait for the open ones. */
  postgres_crowded_ms: SECOND / 2,
  /** Calls that are under way when the platform stops have this long. Past it: their connections are cut. */
  postgres_close_ms: 2 * SECOND,
  /** A batch that lost a deadlock or serialization race is run again this often. */
  write_retries: 5,
  /** Words for other processes that wait to be sent. One more is not sent; whoever it is for finds out by looking. */
  wire_waiting: 10_000,
  /** Words sent in one statement. */
  wire_batch: 200,
  /** Connecting, and any other call on the connection that listens. Past it: it is made anew. */
  wire_connect_ms: 5 * SECOND,
  /** A connection that heard nothing is asked this often whether it is still there. */
  wire_probe_ms: 5 * SECOND,
  /** A connection that is lost is made anew this often. */
  wire_retry_ms: 250,

  // Logs of the platform itself.
  log_file_bytes: 16 * MIB,
} as const;
