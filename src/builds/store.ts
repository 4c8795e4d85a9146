import type { PageRequest } from "#core/list-page.ts";
import type { Build, BuildState, OrgBuild } from "./types.ts";

/** A piece of a build's log; `seq` counts up from 1. */
export interface LogPiece {
  seq: number;
  text: string;
}

export type BuildRefusal = "app is gone" | "too many are open";
export type BuildChange = Partial<Pick<Build, "state" | "digest" | "step" | "error" | "started_at" | "ended_at">>;

/** Starts after a build. */
export type BuildPage = PageRequest<readonly [created_at: number, id: string]>;

/** Keeps and finds builds and their logs; decides nothing. Implemented in stores/, examined by `store.suite.ts`. */
export interface BuildStore {
  /**
   * Keeps the newest `keep` of the app's ended builds. Returns why it was refused: the app was deleted, or the
   * organization has `open` unfinished builds in all processes.
   */
  insert(build: Build, bounds: { keep: number; open: number }): Promise<BuildRefusal | undefined>;
  find(app_id: string, id: string): Promise<Build | undefined>;
  /** The newest first. */
  list(app_id: string, page: BuildPage): Promise<Build[]>;
  /** The organization's builds in these states, or in any; the newest first. */
  listOfOrg(org_id: string, states: readonly BuildState[], page: BuildPage): Promise<OrgBuild[]>;
  /**
   * Each app's newest build, where that failed after `since`, and nothing was released from elsewhere since; the newest
   * first.
   */
  failedLast(org_id: string, since: number, limit: number): Promise<OrgBuild[]>;
  /** False when the build is in none of these states. */
  change(id: string, from: readonly BuildState[], change: BuildChange): Promise<boolean>;
  /** Requests the process that runs the build to stop it. False when the build does not run. */
  requestCancel(id: string): Promise<boolean>;
  /** Builds of a process that have not ended. */
  unfinished(node_id: string): Promise<Build[]>;
  appendLog(build_id: string, piece: LogPiece): Promise<void>;
  /** The pieces after `after_seq`, in order. */
  log(build_id: string, after_seq: number, limit: number): Promise<LogPiece[]>;
}
