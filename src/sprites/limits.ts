/** Limits of sprites. Each comment says what happens when the limit is reached. */
const SECOND = 1000;
const MINUTE = 60 * SECOND;
const KIB = 1024;
const MIB = 1024 * KIB;

export const SPRITE_LIMITS = {
  /** Sprites of one organization. One more: 429 `concurrent_sprite_limit_exceeded`. */
  sprites_per_org: 10_000,
  /** Sprites that one organization creates in a minute. One more: 429 `sprite_creation_rate_limited`. */
  sprite_creations_per_minute: 600,
  /** Sprites on one page of a list. Past it: 400. */
  sprites_page: 50,
  /** Labels of one sprite. Past it: 400. */
  sprite_labels: 50,
  /** Length of a label. Past it: 400. */
  sprite_label_chars: 64,
  /** Environment variables of one sprite. Past it: 400. */
  sprite_variables: 200,
  /** Length of the value of one variable. Past it: 400. */
  sprite_variable_chars: 32 * KIB,
  /** Time that a create with `wait_for_capacity` waits. Past it: 412 `insufficient_capacity`. */
  sprite_capacity_wait_ms: 100 * SECOND,
  /** Interval at which it tries. */
  sprite_capacity_look_ms: SECOND,
  /** Time that a command waits for its sprite to wake. Past it: 408 `wait_timeout`. */
  sprite_wake_ms: 3 * MINUTE,
  /** Time that a delete waits for the end of the machine; it goes on in the background. */
  sprite_delete_ms: 50 * SECOND,
  /** Interval at which what an earlier process had begun is looked for, and idle sprites are put to sleep. */
  sprite_sweep_ms: 5 * SECOND,
  /** Sprites that one sweep finishes or removes; the next one continues. */
  sprites_per_sweep: 100,
  /** Time without a command, a connection or a request after which a sprite is suspended with its memory. */
  sprite_idle_ms: 30 * SECOND,
  /** Time after which a suspended sprite gives its memory back. */
  sprite_cold_ms: 3 * 24 * 60 * MINUTE,

  /** Commands of one sprite at a time, with or without a terminal. One more: 422 `limit_reached`. */
  sprite_commands: 250,
  /** Commands of all sprites in this process. One more: 503 `overloaded`. */
  sprite_commands_all: 4000,
  /** Words of a command. Past it: 400. */
  command_words: 1000,
  /** Length of a word of a command, of a variable or of a folder. Past it: 400. */
  command_word_chars: 16 * KIB,
  /** Input of a command that is kept until the command reads it. Full: no more is taken from the client. */
  input_buffer_bytes: MIB,
  /** Output that a session keeps for who attaches to it; the oldest goes. */
  session_output_bytes: 256 * KIB,
  /** Clients that are attached to one session. One more: 422 `limit_reached`. */
  session_clients: 16,
  /** Of several clients of a session one that takes nothing for so long is disconnected. */
  session_stall_ms: 10 * SECOND,
  /** Time that a command without a terminal runs on after its client has left, unless the client says otherwise. */
  run_after_disconnect_ms: 10 * SECOND,
  /** Longest `max_run_after_disconnect`. Past it: 400. */
  run_after_disconnect_max_ms: 365 * 24 * 60 * MINUTE,
  /** Interval of empty messages: the SDK takes 45 s without a message for a dead connection, and sees no pings. */
  command_keepalive_ms: 15 * SECOND,
  /** Time that a killed command has to end before SIGKILL, unless the client says otherwise. */
  session_kill_ms: 10 * SECOND,
  /** Longest `timeout` of a kill. Past it: 400. */
  session_kill_max_ms: 5 * MINUTE,
  /** Time that is waited for output of what a command has left running, after its own end. */
  output_after_end_ms: 200,
  /** Size of the input of a command over plain HTTP. Past it: 413. */
  http_input_bytes: 64 * MIB,

  /** Live watches of files and ports of one sprite. One more: 422 `limit_reached`. */
  sprite_watches: 32,
  /** Interval at which the listening ports of a sprite are looked at while somebody watches them. */
  port_look_ms: SECOND,

  /** Requests and WebSockets to the URL of one sprite at a time. One more: 503. */
  sprite_url_requests: 1000,
  /** Requests and WebSockets to the URLs of all sprites in this process. One more: 503. */
  sprite_url_requests_all: 10_000,
  /** Head of a request to a URL, and of its response. Past it: 431, or 502. */
  sprite_url_head_bytes: 64 * KIB,
  /** Interval at most at which new organizations are looked for among unknown host names. */
  sprite_url_look_ms: SECOND,

  /** Operations on files of one sprite at a time. More wait. */
  file_operations: 16,
  /** Operations on files of one sprite that run or wait. One more: 503 `overloaded`. */
  file_operations_waiting: 1000,
  /** Time of an operation on files that is neither a transfer nor a watch. Past it: it is ended, and 408 `wait_timeout`. */
  file_operation_ms: 10 * MINUTE,
  /** Entries of one list of files. Past it: 422 `limit_reached`. */
  file_entries: 50_000,
  /** Length of a path. Past it: 400. */
  file_path_bytes: 4095,
  /** Length of a pattern of files. Past it: 400. */
  file_pattern_chars: 1000,
  /** Size of the sprite's `/etc/passwd` and `/etc/group`, when owners are given by name. Past it: 422 `limit_reached`. */
  file_users_bytes: MIB,
  /** Paths that one connection watches. Past it: an error message, and the connection ends. */
  file_watch_paths: 64,
  /** Folders and files that one connection watches, with those below. Past it: an error message, and the connection ends. */
  file_watches: 8192,
} as const;
