import type { EgressPolicy } from "#core/egress-policy.ts";
import type { PageRequest } from "#core/list-page.ts";
import type { App, Secret } from "./types.ts";

/** Starts after an app's name. */
export type AppPage = PageRequest<readonly [name: string]>;

/**
 * An app, or a page of an organization's apps (all without a page). What is read about them names them by this, so that
 * it is sent together with the read of the apps themselves.
 */
export type AppRange = { app_id: string } | { org_id: string; page?: AppPage | undefined };

/** Stores apps and their secrets; decides nothing. Implemented in stores/, tested by `store.suite.ts`. */
export interface AppStore {
  findApp(name: string): Promise<App | undefined>;
  /** Ordered by name; all without a page. */
  apps(org_id: string, page?: AppPage): Promise<App[]>;
  countApps(org_id: string): Promise<number>;
  /** Nothing is written unless the result is "inserted". The same id and name again is "inserted" too. */
  insertApp(app: App, limit: number): Promise<"inserted" | "name_taken" | "limit" | "no_org">;
  /** The egress policy; "all" unless set, also for a deleted app. */
  egress(id: string): Promise<EgressPolicy>;
  /** Returns false when the app does not exist. */
  putEgress(id: string, egress: EgressPolicy): Promise<boolean>;
  /** Deletes its secrets too. Returns false when the app does not exist. */
  deleteApp(id: string): Promise<boolean>;

  /** Ordered by name. */
  secrets(app_id: string): Promise<Secret[]>;
  findSecret(app_id: string, name: string): Promise<Secret | undefined>;
  /**
   * Sets and removes secrets atomically, and returns the new version. An existing secret keeps its `created_at`.
   * Nothing is written when the app was deleted or would exceed `limit` secrets.
   */
  changeSecrets(
    app_id: string,
    put: readonly Secret[],
    remove: readonly string[],
    limit: number,
  ): Promise<number | "no_app" | "limit">;
}
