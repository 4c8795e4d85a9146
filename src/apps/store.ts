import type { EgressPolicy } from "#core/egress-policy.ts";
import type { PageRequest } from "#core/list-page.ts";
import type { App, Secret } from "./types.ts";

/** After an app's name. */
export type AppPage = PageRequest<readonly [name: string]>;

/** Keeps and finds apps and their secrets; decides nothing. Implemented in stores/, examined by `store.suite.ts`. */
export interface AppStore {
  findApp(name: string): Promise<App | undefined>;
  /** By name; all when no page is asked for. */
  apps(org_id: string, page?: AppPage): Promise<App[]>;
  countApps(org_id: string): Promise<number>;
  /** Nothing is written unless it is "inserted". The same id and name a second time is "inserted". */
  insertApp(app: App, limit: number): Promise<"inserted" | "name_taken" | "limit" | "no_org">;
  /** What its machines may reach; all unless something else was put, also of an app that is gone. */
  egress(id: string): Promise<EgressPolicy>;
  /** False when there is no such app. */
  putEgress(id: string, egress: EgressPolicy): Promise<boolean>;
  /** Its secrets go with it. False when there is no such app. */
  deleteApp(id: string): Promise<boolean>;

  /** By name. */
  secrets(app_id: string): Promise<Secret[]>;
  findSecret(app_id: string, name: string): Promise<Secret | undefined>;
  /**
   * Puts and removes together, and answers the new version. An existing secret keeps its `created_at`. Nothing is
   * written when the app is gone or would have more than `limit` secrets.
   */
  changeSecrets(
    app_id: string,
    put: readonly Secret[],
    remove: readonly string[],
    limit: number,
  ): Promise<number | "no_app" | "limit">;
}
