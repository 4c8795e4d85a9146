/** `stopped` is ended by a request, `skipped` a scheduled run that was due while the one before it still ran. */
export type RunState = "running" | "complete" | "failed" | "stopped" | "skipped";

/** Why it ran: one-off, by its schedule, or as the release command of a deploy. */
export type RunKind = "once" | "schedule" | "release";

/** One boot of a machine whose program is a task. It outlives the machine. */
export interface Run {
  id: string;
  app_id: string;
  machine_id: string;
  machine_name: string;
  kind: RunKind;
  /** For display: the command's arguments, joined. */
  command: string;
  image: string;
  instance_id: string;
  state: RunState;
  /** Who or what started it: the name of a token, or a source of events such as `schedule`. */
  started_by: string;
  started_at: number;
  ended_at: number | null;
  exit_code: number | null;
  /** The signal that ended it, if one did. */
  signal: number | null;
  oom_killed: boolean;
  /** Why it failed, when no exit code says so. */
  error: string | null;
}

export type RunEnd = Pick<Run, "state" | "exit_code" | "signal" | "oom_killed" | "error"> & { ended_at: number };

/** What a change of a machine means for its runs. At most one run of a machine is open. */
export type RunChange = { begin: Run } | { skip: Run } | { end: RunEnd };
