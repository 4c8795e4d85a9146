/** Queries for the machines of an app and of an organization. */
import type { ListFilter, OrgListFilter } from "#machines/store.ts";
import type { Value } from "../database.ts";
import { placeholders } from "./arguments.ts";
import { keyset } from "./keyset.ts";
import { MACHINE, SHOWN } from "./machine-rows.ts";
import { SEARCHED, wordConditions } from "./machine-search.ts";

/** A machine with the config of its current version. */
const VERSION = "JOIN machine_versions v ON v.machine_id = m.id AND v.instance_id = m.instance_id";
export const FROM = `FROM machines m ${VERSION}`;
export const SELECT = `SELECT ${MACHINE}, v.config ${FROM}`;

export function listQuery(app_id: string, filter: ListFilter): [string, Value[]] {
  const { metadata = [] } = filter;
  const [first, ...others] = metadata;
  const where = ["m.app_id = ?"];
  const args: Value[] = [app_id];
  const also = (condition: string, ...values: Value[]): void => {
    where.push(condition);
    args.push(...values);
  };
  // The first pair drives the query: its index finds the few machines that have it.
  if (first) also("p.app_id = ? AND p.key = ? AND p.value = ?", app_id, ...first);
  for (const pair of others) {
    also("EXISTS (SELECT 1 FROM machine_metadata o WHERE o.machine_id = m.id AND o.key = ? AND o.value = ?)", ...pair);
  }
  const kind = kindCondition(filter);
  const page = keyset(["m.created_at", "m.id"], filter.page);
  const join = first ? " JOIN machine_metadata p ON p.machine_id = m.id" : "";
  return [
    `SELECT ${SHOWN}, v.config ${FROM}${join} WHERE ${where.join(" AND ")}${kind.sql}${page.after}${page.order}`,
    [...args, ...kind.args, ...page.args],
  ];
}

export function orgListQuery(org_id: string, filter: OrgListFilter): [string, Value[]] {
  const kind = orgCondition(filter);
  const words = wordConditions(filter.search ?? []);
  const created = filter.order === "created";
  if (!created && words.sql === "") {
    const page = keyset(["m.updated_at", "m.id"], filter.page);
    return [`${SELECT} WHERE m.org_id = ?${kind.sql}${page.after}${page.order}`, [org_id, ...kind.args, ...page.args]];
  }
  const [org, key] = created ? ["s.org_id", "s.created_at"] : ["m.org_id", "m.updated_at"];
  const page = keyset([key, created ? "s.machine_id" : "m.id"], filter.page);
  // The page's keys first, because configs are long: those of other rows are not read, whatever a planner guesses.
  const sql = `WITH found AS MATERIALIZED (SELECT m.id AS key_id, ${key} AS key_at ${SEARCHED}
      WHERE ${org} = ?${words.sql}${kind.sql}${page.after}${page.order})
    SELECT ${MACHINE}, v.config FROM found JOIN machines m ON m.id = found.key_id ${VERSION}
    ORDER BY found.key_at, found.key_id`;
  return [sql, [org_id, ...words.args, ...kind.args, ...page.args]];
}

function orgCondition(filter: OrgListFilter): { sql: string; args: Value[] } {
  const { sql, args } = kindCondition(filter);
  const { host_ids } = filter;
  return host_ids
    ? { sql: `${sql} AND m.host_id IN (${placeholders(host_ids)})`, args: [...args, ...host_ids] }
    : { sql, args };
}

/** Filters by state and place. */
export function kindCondition({ states, include_deleted, region }: OrgListFilter | ListFilter): {
  sql: string;
  args: Value[];
} {
  const state = states
    ? ` AND m.state IN (${placeholders(states)})`
    : include_deleted
      ? ""
      : " AND m.state <> 'destroyed'";
  const place = region === undefined ? "" : " AND m.region = ?";
  return { sql: state + place, args: [...(states ?? []), ...(region === undefined ? [] : [region])] };
}
