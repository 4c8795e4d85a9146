/**
 * The life of a volume, as a table: a row is a state, a column what happened, a cell the state after it. An
 * empty cell is refused, or cannot happen.
 */

/** What somebody asks for. */
export type Action = "extend" | "delete" | "undelete" | "move";
/** What the executor reports: it did what the state stands for, or it could not. */
export type Reported = "done" | "broke" | "stored";
export type Trigger = Action | Reported;

const TABLE = {
  /** Its empty file system is being made; the caller who asked for it still waits. */
  creating: { done: "created", broke: "destroyed" },
  /** Filled from a snapshot, or on its new host from what the old one stored. */
  restoring: { done: "created", broke: "failed", delete: "destroyed" },
  /** Filled from another volume. */
  hydrating: { done: "created", broke: "failed", delete: "destroyed" },
  created: { extend: "extending", delete: "destroyed", move: "moving" },
  /** Its content is being stored, to be filled in on another host; nothing has it open. */
  moving: { stored: "restoring", broke: "created" },
  /** What could not grow is as it was. */
  extending: { done: "created", broke: "created" },
  /** It could not be filled; it holds nothing of use. */
  failed: { delete: "destroyed" },
  /** Deleted. What was `created` can be restored until its time is up; then nothing of it is left. */
  destroyed: { undelete: "created" },
} as const satisfies Record<string, Partial<Record<Trigger, string>>>;

export type VolumeState = keyof typeof TABLE;
export const STATES = Object.keys(TABLE) as VolumeState[];

/** The state after `trigger`, or undefined when the table has no such cell. */
export function next(state: VolumeState, trigger: Trigger): VolumeState | undefined {
  const row: Partial<Record<Trigger, VolumeState>> = TABLE[state];
  return row[trigger];
}
