import type { ExitNotice } from "../runtime/driver.ts";

/** The work in progress for one machine: one operation at a time. */
export interface SerialQueue {
  exits: ExitNotice[];
  /** Something changed meanwhile: read the operations again. */
  again: boolean;
  /** Revision of the executor's own last change, whose notification needs no work. */
  own_revision: number;
  /** Aborts the driver call in progress. */
  abort: AbortController | undefined;
  done: Promise<void>;
}
