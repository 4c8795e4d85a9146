/** Limits of the runc driver. Each comment says what happens when the limit is reached. */
const MB = 1024 * 1024;

export const RUNC_LIMITS = {
  /** Size of a machine's root disk, allocated as it is written. Full: ENOSPC inside the machine. */
  root_disk_bytes: 8 * 1024 * MB,
  /** Empty root disks mounted in advance. When more machines start at once, the others wait. */
  disks_ready: 3,
  /** Processes and threads of one machine. One more: EAGAIN inside the machine. */
  pids: 4096,
  /** Processes and threads of one image build. One more: EAGAIN in its step. */
  build_pids: 2048,
  /** Open files of one process, unless the host allows less. One more: EMFILE inside the machine. */
  open_files: 65_536,
  /** Size of /etc/passwd and /etc/group in an image; the rest is not read. */
  passwd_bytes: MB,
  /** Total size of a config's files. Past it: the start fails with the reason. */
  files_bytes: 16 * MB,
  /** Size of one machine's log file. Past it: it is rotated, and then archived: compressed, and kept by age and budget. */
  log_bytes: 4 * MB,
  /** The same where the machine's monitor rotates it, because the platform is not running or too slow. */
  log_bytes_alone: 16 * MB,
  /** Length of a log line; longer ones are split. */
  log_line_chars: 16_384,
  /** Age of a machine's log file. Past it: it is rotated, so that it can be deleted when its lines are old. */
  log_rotated_ms: 24 * 3600 * 1000,
  /** Time after which a destroyed machine's log is archived. */
  log_archived_after_ms: 10 * 60 * 1000,
  /** Searches in logs that a host runs at a time, each in a thread of its own. More wait for their turn. */
  log_search_threads: 2,
  /** Heap of such a thread. Past it: the search fails. */
  log_search_heap_mb: 512,
  /** Time after which a thread that searches nothing ends. */
  log_search_idle_ms: 30 * 1000,
  /** Destroyed machines of a host whose logs are kept. More: the oldest logs are deleted. */
  logs_kept_machines: 1000,
  /** Interval at which a start reports that its image is still being pulled; without a report it times out. */
  image_beat_ms: 10_000,
  /** Timeout of runc and CRIU. Past it: the program is killed, and the call fails. */
  program_ms: 120_000,
  /** Timeout of freezing a machine's processes. Past it: it is stopped instead of suspended. */
  freeze_ms: 5000,
  /** Time for which a frozen machine's memory is reclaimed; the rest stays in memory. */
  reclaim_ms: 30_000,
  /** Time that processes have to exit after SIGKILL. Past it: the call fails and is retried. */
  kill_ms: 20_000,
} as const;
