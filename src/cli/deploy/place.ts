import type { LiveStatus } from "../live-status.ts";
import type { Context } from "../verb.ts";
import type { UndoLog } from "./undo.ts";

export interface Place {
  context: Context;
  app_name: string;
  region: string | undefined;
  /** A machine that is not healthy by then has failed. */
  wait_ms: number;
  /** A machine is healthy when it ran for so long, and all its checks pass. */
  stable_ms: number;
  status: LiveStatus;
  undo: UndoLog;
  /** Why the deploy failed, once it has. */
  failure?: string;
}
