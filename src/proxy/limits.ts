/** Limits of the edge proxy. Each comment says what happens when the limit is reached. */
const KIB = 1024;
const SECOND = 1000;
const MINUTE = 60 * SECOND;

export const PROXY_LIMITS = {
  // Requests.
  /** Size of a request or response head. Past it: 431 for a request, 502 for a response. */
  head_bytes: 32 * KIB,
  /** Header lines of one head. Past it: the same. */
  head_lines: 200,
  /** Validated header names that are cached. Further ones replace older ones. */
  names_remembered: 1024,
  /** Length of a cached header name. Longer ones are validated each time. */
  name_remembered_bytes: 64,
  /** Trailers of one body. Past it: the connection is closed. */
  trailer_bytes: 8 * KIB,
  /** Length of a chunk header line, extensions included. Past it: the connection is closed. */
  chunk_line_bytes: 256,
  /** Bytes read ahead from a client whose request is queued. Past it: reading pauses. */
  read_ahead_bytes: 64 * KIB,
  /** Size of one read from a machine: a response of 64 KiB with its head fits. */
  read_bytes: 128 * KIB,
  /** Space before that buffer for the response head. A longer head takes a write of its own. */
  head_room_bytes: 512,
  /** Response bodies up to this size are sent in one write with their head. */
  one_write_bytes: 4 * KIB,

  // Time.
  /** Time from the first byte of a request to its complete head. Past it: 408, closed. */
  head_ms: 10 * SECOND,
  /** Maximum of a service's own `headers_read_timeout`. */
  head_max_ms: MINUTE,
  /** Time a client has to read the last response before its connection is closed. */
  linger_ms: 5 * SECOND,
  /** A kept-alive client connection without a request is closed after this. */
  client_idle_ms: MINUTE,
  /** Time a client may stall while it has to send or receive. Past it: the connection is closed. */
  stall_ms: MINUTE,
  /**
   * Time in which `slow_body_bytes` of a request's body must arrive. Past it: 408, or the stream is closed. Does not
   * apply while the machine does not read, or after it responds.
   */
  slow_body_ms: MINUTE,
  /** Minimum size of a request's body received in `slow_body_ms`. Less: as above. */
  slow_body_bytes: 4 * KIB,
  /** Time a machine may send nothing during a request. Past it: 504, or the response is cut off. */
  answer_idle_ms: 5 * MINUTE,
  /** Idle timeout of raw and upgraded (WebSocket) connections. */
  stream_idle_ms: 60 * MINUTE,
  /** Idle timeout of pooled connections to machines. */
  pooled_ms: 4 * SECOND,
  /** Timeout of one attempt to connect to a machine. */
  connect_ms: 5 * SECOND,
  /** Time for which connections to a running machine that refuses them are retried. Past it: 502. */
  refused_ms: 10 * SECOND,
  /** Delay between two attempts. */
  retry_ms: 50,
  /** Minimum interval between checks of what an unreachable machine listens on. */
  listening_ms: SECOND,
  /** Interval at which timeouts are checked. */
  sweep_ms: 500,
  /** Timeout of a TLS handshake. Past it: closed. */
  handshake_ms: 10 * SECOND,
  /** Idle timeout of a UDP client. */
  datagram_idle_ms: MINUTE,
  /** Time without an ICMP refusal after which an address of a machine counts as accepting datagrams. */
  datagram_settle_ms: SECOND,

  // Waiting for a machine.
  /** Queued requests per service and worker. One more: 503. */
  queue_length: 1024,
  /** Time a request waits in the queue. Past it: 503 with the reason. */
  queue_ms: 60 * SECOND,
  /**
   * Time after its start in which requests wait for a machine whose checks fail. Past it: 503, unless other machines
   * serve.
   */
  warm_up_ms: 60 * SECOND,
  /** Interval at which queued requests look for capacity freed by another worker. */
  poll_ms: 3,
  /** Minimum interval between two autostart requests of one service. */
  start_again_ms: SECOND,

  // Sizes.
  /** Client connections of one worker. One more is closed at once. */
  connections: 20_000,
  /** Unused connections kept to one machine, per worker. One more is closed. */
  pooled: 256,
  /** UDP clients per worker. One more: the datagram is dropped. */
  datagram_clients: 4096,
  /** Datagrams of one client buffered until the machine's address family is known. More: dropped. */
  datagram_kept_bytes: 32 * KIB,
  /** Open listeners. Each port of a range counts; ports over the limit stay closed and are listed as problems. */
  listeners: 2048,
  /** Routable services of machines. Further ones get no requests. */
  slots: 16_384,
  /** Worker threads, including draining ones. */
  workers: 32,
  /** Concurrent streams per HTTP/2 connection. */
  h2_streams: 128,
  /**
   * Streams of one HTTP/2 connection that its client may reset in a burst. More (rapid reset): the connection is
   * closed.
   */
  h2_resets: 200,
  /** Further resets per second. More: the same. */
  h2_resets_per_second: 33,

  // Files.
  /** Cached path lookups per static folder. One more: the cache is cleared. */
  static_paths: 4096,
  /** Symbolic links followed for one file. Past it: not found. */
  static_links: 40,
  /** Connections per worker to the S3 server of static files. One more waits. */
  bucket_connections: 64,
  /** Timeout of that server's response. Past it: 502. */
  bucket_ms: 30 * SECOND,

  // Replay.
  /** Request body buffered for a replay. Past it: a replay is refused. */
  replay_bytes: 1024 * KIB,
  /** Total of those buffers per worker. Past it: as above. */
  replay_all_bytes: 64 * 1024 * KIB,

  // Slow and failed requests, traces.
  /** Time to the response head from which on a request is listed as slow. */
  slow_request_ms: SECOND,
  /** Slow and failed requests that a worker reports per app and half second. More: the newest. */
  requests_reported: 50,
  /** Slow and failed requests kept per app, in memory. More: the newest. */
  requests_kept: 200,
  /** Apps whose slow and failed requests are kept. More: those with the newest. */
  requests_apps: 1000,
  /** Length of the path in that list. Longer ones are cut. */
  request_path_chars: 200,
  /** Traces per second that a worker records, also of clients that ask for it. More are dropped and counted. */
  traces_per_second: 200,
  /** Spans waiting to be exported. More are dropped and counted. */
  spans_queued: 20_000,
  /** Spans of one export request. */
  spans_sent: 500,
  /** Interval of exports. */
  export_ms: SECOND,
  /** Timeout of an export. Past it: retried. */
  export_timeout_ms: 10 * SECOND,
  /** Longest time between two attempts while the receiver does not take spans. */
  export_retry_ms: 30 * SECOND,

  // Reload.
  /** Time that replaced workers have to finish their requests. Past it: connections are closed. */
  drain_ms: 30 * SECOND,
  /** Time that a stopping machine has to finish its requests (or its stop timeout, if shorter). Past it: stopped. */
  quiet_ms: 5 * SECOND,
  /** Poll interval of that wait. */
  quiet_look_ms: 10,
  /** Time a start or an address allocation waits for its listeners. Past it: it succeeds without waiting further. */
  open_ms: 2 * MINUTE,
  /** Delay before opening a listener is retried. */
  reopen_ms: 5 * SECOND,
  /** Distinct server names in an app's metrics of failed handshakes. Further ones are counted without a name. */
  handshake_names: 100,
  /** Interval of the autostop check; shorter if autostop_idle is shorter. */
  idle_look_ms: 5 * SECOND,
  /**
   * Multiple of autostop_idle for which a service must need fewer machines before one is stopped: 1 at first, doubled
   * whenever requests started such a machine again, up to this.
   */
  excess_windows: 32,

  // A start while the database is away.
  /** Maximum age of the last known routes, since a process last used them. Past it: they are not served. */
  last_known_ms: 10 * MINUTE,
  /** Interval at which they are written, or marked as in use. */
  last_known_write_ms: SECOND,

  // Other edge proxies.
  /** Time other edge proxies have to agree that a machine is idle. Past it: it keeps running until the next check. */
  agree_ms: 10 * SECOND,
  /** Poll interval of their responses; a notification arrives sooner. */
  agree_look_ms: 500,
  /**
   * Time after which a machine that another edge proxy wanted to autostop gets requests again, unless it was stopped.
   */
  put_back_ms: 3 * SECOND,
  /** An edge proxy without a heartbeat for this long is no longer waited for. */
  peer_silent_ms: 30 * SECOND,
  /** Its state is deleted after this. */
  peer_kept_ms: 60 * MINUTE,

  // The status of apps.
  /** Apps per page of the list of app states. */
  status_page: 100,
  /** Running machines of an app that are queried for listening ports, for its state. */
  status_probes: 3,
  /**
   * Machines examined for the status of an app: of more, the failed ones and the oldest. Counts per state are exact.
   */
  status_machines: 1000,
  /** Failing machines listed in the status of an app; its reason counts all. */
  status_failures: 100,
  /** Releases searched for the current one. Past it: the status has none. */
  status_releases: 20,

  // Certificates.
  /** Certificates of one app. One more: 422 `limit_reached`. */
  certificates_per_app: 500,
  /** Timeout of a DNS query for a TXT record, per attempt. Past it: the name stays `pending`. */
  txt_timeout_ms: 2000,
  txt_tries: 2,
  /**
   * Timeout of a request to the certificate authority. Past it: the order fails, and is retried after a quarter of an
   * hour.
   */
  acme_request_ms: 15 * SECOND,
  /** Timeout of an order. Past it: the same. */
  acme_order_ms: 10 * MINUTE,
  /** Time after which an order of another process is checked again. */
  acme_look_ms: MINUTE,
  /**
   * Timeout of the program that sets or removes a TXT record for dns-01. Past it: it is killed, and the order fails.
   */
  acme_hook_ms: 5 * MINUTE,
  /** A chain or key as PEM. Past it: 422. */
  pem_chars: 64 * KIB,
} as const;
