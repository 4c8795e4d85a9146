/**
 * The life of a machine, as a table: a row is a state, a column what happened, a cell the state after it. An
 * empty cell cannot happen: a request for it waits, or is refused, before it gets here.
 */

/** Actions that a caller requests. */
export type Action = "start" | "stop" | "suspend" | "restart" | "update" | "destroy";
/** Outcomes that the executor reports. */
export type Reported =
  /** The first process is running. */
  | "booted"
  /** The first process exited. */
  | "exited"
  /** A stop found nothing running. */
  | "halted"
  /** The memory is kept and nothing runs. */
  | "frozen"
  /** A new config is in place, and the machine stays stopped … */
  | "rested"
  /** … and was never started. */
  | "readied"
  /** Everything was removed. */
  | "removed"
  /** The operation failed or timed out. */
  | "broke";
export type Trigger = Action | Reported;

const TABLE = {
  created: { start: "starting", stop: "stopping", restart: "restarting", update: "replacing", destroy: "destroying" },
  starting: { booted: "started", broke: "failed", destroy: "destroying" },
  started: {
    exited: "stopped",
    broke: "failed",
    stop: "stopping",
    suspend: "suspending",
    restart: "restarting",
    update: "replacing",
    destroy: "destroying",
  },
  stopping: { exited: "stopped", halted: "stopped", broke: "failed", destroy: "destroying" },
  stopped: { start: "starting", restart: "restarting", update: "replacing", destroy: "destroying" },
  suspending: { frozen: "suspended", exited: "stopped", halted: "stopped", broke: "failed", destroy: "destroying" },
  suspended: {
    start: "starting",
    stop: "stopping",
    restart: "restarting",
    update: "replacing",
    destroy: "destroying",
    broke: "failed",
  },
  // A restart by the policy is delayed; until it is due, other operations may replace it.
  restarting: {
    exited: "stopped",
    start: "starting",
    stop: "stopping",
    update: "replacing",
    broke: "failed",
    destroy: "destroying",
  },
  replacing: {
    exited: "stopped",
    start: "starting",
    rested: "stopped",
    readied: "created",
    broke: "failed",
    destroy: "destroying",
  },
  failed: { start: "starting", stop: "stopping", restart: "restarting", update: "replacing", destroy: "destroying" },
  destroying: { removed: "destroyed" },
  destroyed: {},
} as const satisfies Record<string, Partial<Record<Trigger, string>>>;

export type MachineState = keyof typeof TABLE;
export const STATES = Object.keys(TABLE) as MachineState[];

/** Returns the state after `trigger`, or undefined when the table has no such entry. */
export function next(state: MachineState, trigger: Trigger): MachineState | undefined {
  const row: Partial<Record<Trigger, MachineState>> = TABLE[state];
  return row[trigger];
}

const SECOND = 1000;

/**
 * Timeouts of transitional states. Past one the machine is `failed`, with an event; only `destroying` is retried,
 * because a half-removed machine cannot come back.
 */
export const DEADLINES_MS: Partial<Record<MachineState, number>> = {
  starting: 180 * SECOND,
  stopping: 60 * SECOND,
  suspending: 120 * SECOND,
  restarting: 60 * SECOND,
  replacing: 60 * SECOND,
  destroying: 60 * SECOND,
};

/** Whether a state is not transitional. */
export const isPersistent = (state: MachineState): boolean => DEADLINES_MS[state] === undefined;

/** State names of other platforms that clients send. */
export const STATE_ALIASES: Record<string, MachineState> = { updating: "replacing" };

/** The state after an operation succeeds; an update without a start keeps the current one. */
export function after(state: MachineState, action: Action, launch: boolean): MachineState {
  switch (action) {
    case "start":
    case "restart":
      return "started";
    case "stop":
      return "stopped";
    case "suspend":
      return "suspended";
    case "destroy":
      return "destroyed";
    case "update":
      if (launch) return "started";
      return state === "created" ? "created" : "stopped";
  }
}

/** The event type of each transition. The event's status is the new state. */
export const EVENT_TYPES: Record<Trigger, string> = {
  start: "start",
  stop: "stop",
  suspend: "suspend",
  restart: "restart",
  update: "update",
  destroy: "destroy",
  booted: "start",
  exited: "exit",
  halted: "stop",
  frozen: "suspend",
  rested: "update",
  readied: "update",
  removed: "destroy",
  broke: "failed",
};
