import type { Group } from "../app-file/groups.ts";
import type { Context } from "../verb.ts";
import type { Strategy } from "./plan.ts";

/** The stored definition of a release, enough to repeat it. */
export interface Definition {
  /** As written. */
  image: string;
  /** The resolved digest and the pinned name; older releases have neither. */
  digest?: string;
  reference?: string;
  strategy: Strategy;
  region?: string;
  groups: Group[];
  release_command?: string;
  release_command_timeout?: string;
  wait_timeout?: string;
  max_unavailable?: number;
  /** The egress policy; unchanged when the file has none. */
  egress?: { mode: "all" | "none" | "list"; allow: string[] };
  /** The app's own rules, as a rule file; unchanged when the file has none. */
  alerts?: string;
}

/** What the newest complete release deployed; undefined before the first one. */
export async function newestDefinition({ client }: Context, app_name: string): Promise<Definition | undefined> {
  const { releases } = await client.call("GET /v1/apps/:app_name/releases", { params: { app_name }, query: {} });
  const newest = releases.find(({ status }) => status === "complete");
  if (!newest) return undefined;
  const params = { app_name, version: String(newest.version) };
  const { definition } = await client.call("GET /v1/apps/:app_name/releases/:version", { params });
  // A release that another program recorded has a definition of its own kind.
  return Array.isArray((definition as Partial<Definition> | null)?.groups) ? (definition as Definition) : undefined;
}
