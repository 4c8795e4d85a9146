import type { GitApp, GitSettings } from "./types.ts";

/** Stores how apps are deployed from Git; decides nothing. Implemented in stores/, tested by `store.suite.ts`. */
export interface GitStore {
  /** Undefined when nothing was set. */
  settings(app_id: string): Promise<GitSettings | undefined>;
  hasApp(app_id: string): Promise<boolean>;
  app(app_id: string): Promise<GitApp | undefined>;
  /** False when the app does not exist. */
  putSettings(app_id: string, settings: GitSettings): Promise<boolean>;
}
