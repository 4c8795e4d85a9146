/**
 * The life of a machine, as a table: a row is a state, a column what happened, a cell the state after it. An
 * empty cell cannot happen: what is asked for there waits, or is refused, before it gets here.
 */

/** What somebody asks for. */
export type Action = "start" | "stop" | "suspend" | "restart" | "update" | "destroy";
/** What the executor reports. */
export type Reported =
  /** Its first process runs. */
  | "booted"
  /** Its first process ended. */
  | "exited"
  /** It was asked to stop and nothing was running. */
  | "halted"
  /** Its memory is kept, nothing runs. */
  | "frozen"
  /** A new config is in place, and it is not to be started … */
  | "rested"
  /** … nor was it ever. */
  | "readied"
  /** Nothing of it is left. */
  | "removed"
  /** It did not work, or took too long. */
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
  // A restart by the policy waits a while; until its time has come it may be overtaken.
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

/** The state after `trigger`, or undefined when the table has no such cell. */
export function next(state: MachineState, trigger: Trigger): MachineState | undefined {
  const row: Partial<Record<Trigger, MachineState>> = TABLE[state];
  return row[trigger];
}

const SECOND = 1000;

/**
 * States that pass: how long one may last. Past it the machine is `failed`, with an event that says so; only
 * `destroying` is tried again, because a machine that is half gone cannot come back.
 */
export const DEADLINES_MS: Partial<Record<MachineState, number>> = {
  starting: 180 * SECOND,
  stopping: 60 * SECOND,
  suspending: 120 * SECOND,
  restarting: 60 * SECOND,
  replacing: 60 * SECOND,
  destroying: 60 * SECOND,
};

/** Where a machine rests. */
export const isPersistent = (state: MachineState): boolean => DEADLINES_MS[state] === undefined;

/** Names that clients know for states that are called otherwise here. */
export const STATE_ALIASES: Record<string, MachineState> = { updating: "replacing" };

/** Where an operation leaves the machine when it succeeds; an update without a start leaves it where it was. */
export function after(state: MachineState, asked: Action, launch: boolean): MachineState {
  switch (asked) {
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

/** The word for each hop in the event log. The event's status is the state it leads to. */
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
