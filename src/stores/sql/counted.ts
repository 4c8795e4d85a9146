import type { Counted } from "#apps/service.ts";
import { type Database, readOne } from "../database.ts";
import { lookup } from "../lookup.ts";
import { appRange } from "./app-range.ts";

/** Number of rows per app, without destroyed ones. */
export function counted(database: Database, table: "machines" | "volumes"): Counted {
  const ofApp = `SELECT count(*) AS n FROM ${table} WHERE app_id = ? AND state <> 'destroyed'`;
  const find = lookup(database, `${table} of app`, (app_id) => readOne<{ n: number }>(database, ofApp, [app_id]));
  return {
    count: async (app_id) => (await find(app_id))?.n ?? 0,
    async counts(range) {
      const apps = appRange(range);
      const sql = `SELECT t.app_id, count(*) AS n FROM (${apps.sql}) AS a JOIN ${table} t ON t.app_id = a.id
        WHERE t.state <> 'destroyed' GROUP BY t.app_id`;
      const rows = await database.read<{ app_id: string; n: number }>(sql, apps.args);
      return new Map(rows.map(({ app_id, n }) => [app_id, n]));
    },
  };
}
