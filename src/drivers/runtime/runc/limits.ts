/** Limits of the runc driver. Each comment says what happens when the limit is reached. */
const MB = 1024 * 1024;

export const RUNC_LIMITS = {
  /** Size of a machine's root disk, taken from the host only as far as it is written. Full: ENOSPC inside the machine. */
  root_disk_bytes: 8 * 1024 * MB,
  /** Empty root disks kept mounted ahead. When more machines start at once, the others wait for theirs. */
  disks_ready: 3,
  /** Processes and threads of one machine. One more: EAGAIN inside the machine. */
  pids: 4096,
  /** Open files of one process, unless the host allows less. One more: EMFILE inside the machine. */
  open_files: 65_536,
  /** Of /etc/passwd and /etc/group in an image; what comes after is not read. */
  passwd_bytes: MB,
  /** What a config's files may hold together. Past it: the start fails and says so. */
  files_bytes: 16 * MB,
  /** One machine's log file; when it is full it is set aside, and the one set aside before is forgotten … */
  log_bytes: 4 * MB,
  /** … by the monitor, at this size, when we are not there to do it, or not fast enough. */
  log_bytes_alone: 16 * MB,
  /** A line longer than this is cut in pieces. */
  log_line_chars: 16_384,
  /** Logs of destroyed machines are kept this long … */
  logs_kept_ms: 24 * 3600 * 1000,
  /** … and of no more machines than this; the oldest go. */
  logs_kept_machines: 1000,
  /** How often a start says that its image is still on its way; without that word it fails after its time. */
  image_beat_ms: 10_000,
  /** runc or CRIU that takes longer is ended, and the call fails. */
  program_ms: 120_000,
  /** A machine whose processes do not stand still in this time is not suspended by freezing; it is stopped instead. */
  freeze_ms: 5000,
  /** How long a frozen machine's memory is given back for; what is left then stays in memory. */
  reclaim_ms: 30_000,
  /** Processes that do not go after SIGKILL in this time: the call fails, and the next one tries again. */
  kill_ms: 20_000,
} as const;
