import type { AppRange } from "#apps/store.ts";
import type { Value } from "../database.ts";
import { keyset } from "./keyset.ts";

/** The ids of the apps in a range, as a subquery. */
export function appRange(range: AppRange): { sql: string; args: Value[] } {
  if ("app_id" in range) return { sql: "SELECT id FROM apps WHERE id = ?", args: [range.app_id] };
  const { after, order, args } = keyset(["name"], range.page);
  return { sql: `SELECT id FROM apps WHERE org_id = ?${after}${order}`, args: [range.org_id, ...args] };
}
