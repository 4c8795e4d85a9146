/**
 * The kept logs of this host as a queue: a reader has a position in each machine's log, which is stored beside the log
 * and outlives both sides. Implemented in drivers/.
 */
import type { LogLine } from "./line.ts";

export interface QueuedLine extends LogLine {
  /** RFC 3339 with nanoseconds. */
  stamp: string;
}

export interface QueuePage {
  lines: QueuedLine[];
  /** Where to go on. */
  position: string;
  /** What was deleted before it was read. */
  lost?: LostLines;
  /** Nothing follows yet. */
  is_end: boolean;
}

export interface LostLines {
  /** Times at which lines are missing. */
  gaps: number;
  /** Bytes of text that are known to be missing; 0 when it is not known how many. */
  bytes: number;
}

export interface LogQueue {
  /** Machines with logs on this host, also those that were destroyed or moved away. */
  machines(): Promise<string[]>;
  /** Differs from an earlier result when the log may have grown since. */
  mark(id: string): string;
  /** Complete lines after a position, or from a time (milliseconds) on. */
  read(id: string, from: { position: string } | { since: number }): Promise<QueuePage>;
  /** A reader's stored position in a machine's log; undefined when there is none, or it is damaged. */
  position(id: string, reader: string): Promise<string | undefined>;
  /** Stores it atomically. Nothing happens when the log was deleted meanwhile. */
  keep(id: string, reader: string, position: string): Promise<void>;
  /** Deletes positions of readers other than these. */
  forget(readers: ReadonlySet<string>): Promise<void>;
}
