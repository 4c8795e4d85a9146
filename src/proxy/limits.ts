/** Bounds of the edge proxy, by name. What happens at the bound is written beside it. */
const KIB = 1024;
const SECOND = 1000;
const MINUTE = 60 * SECOND;

export const PROXY_LIMITS = {
  // Requests.
  /** A request's or answer's head. Past it: 431 to the client, 502 for an answer. */
  head_bytes: 32 * KIB,
  /** Header lines of one head. Past it: the same. */
  head_lines: 200,
  /** Names of header fields that need not be looked at again. Further ones take the place of others. */
  names_remembered: 1024,
  /** Length of such a name. Longer ones are looked at each time. */
  name_remembered_bytes: 64,
  /** Trailers of one body. Past it: the connection is cut. */
  trailer_bytes: 8 * KIB,
  /** The line before a chunk, extensions included. Past it: the connection is cut. */
  chunk_line_bytes: 256,
  /** What is read ahead of a client whose request waits. Past it: the client is not read further. */
  read_ahead_bytes: 64 * KIB,
  /** What is read from a machine at once: an answer of 64 KiB with its head, and more of a longer one. */
  read_bytes: 128 * KIB,
  /** Memory in front of that, where the head of the answer can be written. A longer head is written on its own. */
  head_room_bytes: 512,
  /** Answers small enough to be sent in one write with their head. */
  one_write_bytes: 4 * KIB,

  // Time.
  /** From the first byte of a connection, or of the next request, to the whole head. Past it: 408, closed. */
  head_ms: 10 * SECOND,
  /** The same where a service has a `headers_read_timeout` of its own, which may be shorter or longer. */
  head_max_ms: MINUTE,
  /** A client whose connection ends may read what it was sent for this long; then it is cut. */
  linger_ms: 5 * SECOND,
  /** A kept-alive client connection without a request is closed after this. */
  client_idle_ms: MINUTE,
  /** A client that sends or takes nothing for this long while it should is cut. */
  stall_ms: MINUTE,
  /** A machine that says nothing for this long in the middle of an exchange: 504, or the answer is cut. */
  answer_idle_ms: 5 * MINUTE,
  /** A raw or upgraded connection on which nothing moves for this long is closed. */
  stream_idle_ms: 60 * MINUTE,
  /** An unused connection to a machine is kept for this long. */
  pooled_ms: 4 * SECOND,
  /** One try to connect to a machine. */
  connect_ms: 5 * SECOND,
  /** Machines that run but refuse connections are tried again for this long. Past it: 502. */
  refused_ms: 10 * SECOND,
  /** Between two tries. */
  retry_ms: 50,
  /** What a machine listens on is looked at, for those who cannot reach it, at most this often. */
  listening_ms: SECOND,
  /** How often deadlines are looked at. */
  sweep_ms: 500,
  /** From the first byte to the end of a TLS handshake. Past it: closed. */
  handshake_ms: 10 * SECOND,
  /** How long a datagram client is remembered after its last datagram. */
  datagram_idle_ms: MINUTE,
  /** An address of a machine that did not refuse datagrams for this long takes them. */
  datagram_settle_ms: SECOND,

  // Waiting for a machine.
  /** Requests that wait for one service, per worker. One more: 503. */
  queue_length: 1024,
  /** How long one waits. Past it: 503 with the reason. */
  queue_ms: 60 * SECOND,
  /** How often those who wait look for room that another worker made. */
  poll_ms: 3,
  /** The proxy asks for the start of a machine of one service at most this often. */
  start_again_ms: SECOND,

  // Sizes.
  /** Client connections of one worker. One more is closed at once. */
  connections: 20_000,
  /** Unused connections kept to one machine, per worker. One more is closed. */
  pooled: 256,
  /** Clients of datagram services remembered by one worker. One more: the datagram is dropped. */
  datagram_clients: 4096,
  /** Datagrams of one client that are kept while it is found out which address of the machine takes them. More: not kept. */
  datagram_kept_bytes: 32 * KIB,
  /** Open ports. Ranges count each of their ports; the ones past the limit stay closed and are listed so. */
  doors: 2048,
  /** Services of machines that can be reached at the same time. The ones past it get no requests. */
  slots: 16_384,
  /** Workers, counting those that drain. */
  workers: 32,
  /** Streams of one HTTP/2 connection at the same time. */
  h2_streams: 128,

  // Files.
  /** Paths of one place with files that are remembered, found or not. One more: all are looked for anew. */
  static_paths: 4096,
  /** Links that are followed to find one file. Past it: there is none. */
  static_links: 40,
  /** Connections of one worker to the server with the buckets. One more waits. */
  bucket_connections: 64,
  /** Until that server says something. Past it: 502. */
  bucket_ms: 30 * SECOND,

  // Replay.
  /** A request's body that is kept until it is answered, so that it can be sent again. Past it: a replay is refused. */
  replay_bytes: 1024 * KIB,
  /** The same of all requests of one worker. Past it: as above. */
  replay_all_bytes: 64 * 1024 * KIB,

  // Reload.
  /** How long replaced workers may go on with what they have. Past it they are cut. */
  drain_ms: 30 * SECOND,
  /** How long a machine that is to stop may go on with what it has; its own stop timeout may be shorter. Past it: stopped. */
  quiet_ms: 5 * SECOND,
  /** Between two looks at whether it is done. */
  quiet_look_ms: 10,
  /** How long a start, or an address that is given out, waits until its ports are open. Past it: told all the same. */
  open_ms: 2 * MINUTE,
  /** A port that could not be opened is tried again after this. */
  reopen_ms: 5 * SECOND,
  /** Names of failed handshakes that an app's metrics tell apart. Further ones are counted without a name. */
  handshake_names: 100,
  /** Between two looks at what is idle; a shorter autostop_idle makes it shorter. */
  idle_look_ms: 5 * SECOND,
  /** Times autostop_idle that a service must do with fewer machines before one is stopped: one at first, twice as many after
   * each such machine that requests started again, up to this. */
  excess_windows: 32,

  // A start while the database is away.
  /** How old the routes known last may be, since a process served by them. Past it: they are not served. */
  last_known_ms: 10 * MINUTE,
  /** Between two times that they are written, or are marked as in force. */
  last_known_write_ms: SECOND,

  // Other edge proxies.
  /** How long the others have to say whether a machine may rest. Past it: it goes on, and the next look decides anew. */
  agree_ms: 10 * SECOND,
  /** Between two looks at what they said; a word on the wire comes sooner. */
  agree_look_ms: 500,
  /** A machine that another door wanted to put to rest gets requests again after this, unless it was stopped. */
  put_back_ms: 3 * SECOND,
  /** A door that was not heard of for this long is no longer asked. */
  door_silent_ms: 30 * SECOND,
  /** What it said is forgotten after this. */
  door_kept_ms: 60 * MINUTE,

  // Certificates.
  /** Certificates of one app. One more: 422 `limit_reached`. */
  certificates_per_app: 500,
  /** Until a name server answers for a TXT record, each of so many times. Past it: the name stays `pending`. */
  txt_timeout_ms: 2000,
  txt_tries: 2,
  /** One request to the certificate authority. Past it: the order fails, and is made again a quarter of an hour later. */
  acme_request_ms: 15 * SECOND,
  /** From an order to its certificate. Past it: the same. */
  acme_order_ms: 10 * MINUTE,
  /** The program that sets or removes a TXT record for dns-01. Past it: it is killed, and the order fails. */
  acme_hook_ms: 5 * MINUTE,
  /** A chain or key as PEM. Past it: 422. */
  pem_chars: 64 * KIB,
} as const;
