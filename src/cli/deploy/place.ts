import type { LiveStatus } from "../live-status.ts";
import type { Context } from "../verb.ts";
import type { DeployLease } from "./lease.ts";
import type { UndoLog } from "./undo.ts";

export interface Place {
  context: Context;
  app_name: string;
  region: string | undefined;
  /** Timeout for a machine to become healthy. */
  wait_ms: number;
  /** Time a machine must run, with all checks passing, to be healthy. */
  stable_ms: number;
  status: LiveStatus;
  undo: UndoLog;
  lease: DeployLease;
  /** Why the deploy failed, once it has. */
  failure?: string;
}
