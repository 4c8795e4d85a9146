/**
 * The life of a volume, as a table: a row is a state, a column what happened, a cell the state after it. An
 * empty cell is refused, or cannot happen.
 */

/** Actions that a caller requests. */
export type Action = "extend" | "delete" | "undelete" | "move";
/** Outcomes that the executor reports. */
export type Reported = "done" | "broke" | "stored";
export type Trigger = Action | Reported;

const TABLE = {
  /** Its file system is being created; the request still waits. */
  creating: { done: "created", broke: "destroyed" },
  /** Filled from a snapshot, or on its new host from what the old one stored. */
  restoring: { done: "created", broke: "failed", delete: "destroyed" },
  /** Filled from another volume. */
  hydrating: { done: "created", broke: "failed", delete: "destroyed" },
  created: { extend: "extending", delete: "destroyed", move: "moving" },
  /** Its content is being stored for another host; nothing has it open. */
  moving: { stored: "restoring", broke: "created" },
  /** Keeps its size when it cannot grow. */
  extending: { done: "created", broke: "created" },
  /** It could not be filled and has no useful content. */
  failed: { delete: "destroyed" },
  /** Deleted. A `created` one can be restored until it is purged. */
  destroyed: { undelete: "created" },
} as const satisfies Record<string, Partial<Record<Trigger, string>>>;

export type VolumeState = keyof typeof TABLE;
export const STATES = Object.keys(TABLE) as VolumeState[];

/** Returns the state after `trigger`, or undefined when the table has no such entry. */
export function next(state: VolumeState, trigger: Trigger): VolumeState | undefined {
  const row: Partial<Record<Trigger, VolumeState>> = TABLE[state];
  return row[trigger];
}
