/** Bounds of the machines room, by name. What happens at the bound is written beside it. */
const SECOND = 1000;
const MINUTE = 60 * SECOND;
const DAY = 24 * 60 * MINUTE;

export const MACHINE_LIMITS = {
  /** Machines of one organization that are not destroyed. One more: 422 `limit_reached`. */
  machines_per_org: 250_000,
  /** A create or update, whose config may carry files. Past it: 413. */
  config_bytes: 8 * 1024 * 1024,
  metadata_keys: 200,
  metadata_key_chars: 256,
  metadata_value_chars: 4096,
  /** Configs kept of one machine; the oldest is forgotten. */
  versions_kept: 100,
  /** Events shown inside a machine; the log itself is kept whole. */
  events_shown: 20,
  /** Events that a stream reads at once. */
  events_page: 1000,

  /** Operations waiting on one machine. One more: 503 `overloaded`. */
  operations_waiting: 64,
  /** How often a decision is made anew when someone else was faster. Past it: 409 `conflict`. */
  write_races: 64,
  /** Operations that an executor carries out at the same time; the others wait their turn. */
  operations_parallel: 64,

  /** Machines of a lost host that are started elsewhere at the same time; the others follow. */
  rescues_parallel: 8,
  /** Machines of a host that are written down at once as running on without its lease; the others follow. */
  exempted_at_once: 200,
  /** Machines that are to leave their host and found no room are tried again this often. */
  relocate_again_ms: 5 * SECOND,

  lease_default_ttl_s: 30,
  /** The longest lease one can ask for. Past it: 400. */
  lease_max_ttl_s: 24 * 3600,
  /** The longest one can queue for a lease; more is taken for this. */
  lease_wait_max_s: 60,
  lease_description_chars: 1000,

  /** How often changes of other processes are looked for that no word came of. */
  bus_look_ms: 2 * SECOND,
  /** How far back: wall clocks of hosts may differ by so much before a change without a word is found late. */
  bus_lately_ms: 30 * SECOND,

  wait_default_s: 60,
  /** The longest a wait may take; more is taken for this. */
  wait_max_s: 600,

  stop_timeout_ms: 5 * SECOND,
  stop_timeout_max_ms: 5 * MINUTE,
  /** The first try of a restart policy comes after this, each further one after twice as long … */
  restart_delay_ms: SECOND,
  /** … but never later than this. */
  restart_delay_max_ms: 30 * SECOND,
  /** Retries of `on-failure`, when the config does not say how many. */
  restart_retries: 10,
  /** A machine that ran this long is well again: its restarts are counted from zero. */
  restart_window_ms: 5 * MINUTE,
  /** Between looks at what really runs, in case word of an exit was lost. */
  reconcile_ms: 30 * SECOND,
  /** An operation whose outcome could not be written is taken up again after this. */
  retry_ms: SECOND,
  /** A driver that does not heed the end of its time is given this long before the machine is called failed. */
  abort_grace_ms: 5 * SECOND,

  /** How long a stopping platform waits for what it is just writing down. */
  close_ms: 5 * SECOND,

  check_interval_ms: 15 * SECOND,
  check_interval_min_ms: SECOND,
  check_timeout_ms: 10 * SECOND,
  check_output_chars: 2000,
  /** A check whose output changes while its status stays is written down once in this time; the newest one counts. */
  check_output_ms: 5 * SECOND,

  exec_default_s: 60,
  exec_max_s: 600,
  exec_output_bytes: 1024 * 1024,

  /** Open terminals into one machine. One more: 422 `limit_reached`. */
  terminals_per_machine: 8,
  /** Open terminals of one process of the platform. One more: 503 `overloaded`. */
  terminals: 256,
  /** Neither a key nor anything drawn for this long: the terminal is closed, and its line says why. */
  terminal_idle_ms: 60 * MINUTE,
  /** Rows and columns of a terminal. Past it: 400, or the line ends with code 1008. */
  terminal_side: 1000,

  /** Lines of a log in one answer. */
  logs_page: 10_000,
  /** Machines whose logs are read together; of an app that has more, the ones that changed last. */
  logs_machines: 200,
  /** A reader of a log that goes on looks again after this, in case word of more was lost. */
  logs_look_ms: 2 * SECOND,

  /** Webhooks of one organization. One more: 422 `limit_reached`. */
  webhooks_per_org: 20,
  /** How long one process has a webhook to itself; longer than a request may take. Past it another may send it. */
  webhook_claim_ms: 30 * SECOND,
  /** Webhooks that other processes made or deleted, or that nobody sends any more, are looked for this often. */
  webhook_look_ms: 10 * SECOND,
  /** Events in one request to a webhook; the others wait for the next. */
  webhook_batch: 100,
  /** An address that does not answer in this time is tried again later: first after the delay, then twice as late … */
  webhook_timeout_ms: 10 * SECOND,
  webhook_delay_ms: SECOND,
  /** … but never later than this. */
  webhook_delay_max_ms: 10 * MINUTE,

  /** GB of a root disk whose config names its size. More: 400. */
  root_disk_gb: 512,

  /** A destroyed machine can be read for this long. */
  destroyed_kept_ms: 7 * DAY,
  purge_ms: 10 * MINUTE,
} as const;
