import type { AppStore } from "#apps/store.ts";
import type { App, Secret } from "#apps/types.ts";
import { ALL_EGRESS, type EgressPolicy } from "#core/egress-policy.ts";
import { type Database, readOne, type Step } from "../database.ts";
import { lookup } from "../lookup.ts";
import { lockOrg } from "./auth.ts";
import { keyset } from "./keyset.ts";

export const APP = "id, name, org_id, numeric_id, network, secrets_version, created_at";
const SECRET = "name, sealed, digest, created_at, updated_at";

/** The last app of a private network deletes its prefix. */
const FORGET_NETWORK = `DELETE FROM private_networks WHERE EXISTS
    (SELECT 1 FROM apps a WHERE a.id = ? AND a.org_id = private_networks.org_id AND a.network = private_networks.name)
  AND NOT EXISTS
    (SELECT 1 FROM apps b WHERE b.id <> ? AND b.org_id = private_networks.org_id AND b.network = private_networks.name)`;

export function sqlAppStore(database: Database): AppStore {
  return {
    findApp: lookup(database, "app", (name) =>
      readOne<App>(database, `SELECT ${APP} FROM apps WHERE name = ?`, [name]),
    ),
    apps(org_id, page) {
      const { after, order, args } = keyset(["name"], page);
      return database.read<App>(`SELECT ${APP} FROM apps WHERE org_id = ?${after}${order}`, [org_id, ...args]);
    },
    async countApps(org_id) {
      const sql = "SELECT count(*) AS n FROM apps WHERE org_id = ?";
      return (await readOne<{ n: number }>(database, sql, [org_id]))?.n ?? 0;
    },

    async insertApp(app, limit) {
      const outcome = await database.write([
        lockOrg(app.org_id),
        {
          sql: `INSERT INTO apps (${APP}) SELECT ?, ?, ?, ?, ?, ?, ?
                WHERE (SELECT count(*) FROM apps WHERE org_id = ?) < ? ON CONFLICT DO NOTHING`,
          args: [
            app.id,
            app.name,
            app.org_id,
            app.numeric_id,
            app.network,
            app.secrets_version,
            app.created_at,
            app.org_id,
            limit,
          ],
          rows: 1,
        },
      ]);
      if (outcome.ok) return "inserted";
      if (outcome.failed === 0) return "no_org";
      const holder = await this.findApp(app.name);
      if (!holder) return "limit";
      return holder.id === app.id ? "inserted" : "name_taken";
    },

    async egress(id) {
      const row = await readOne<{ egress: string | null }>(database, "SELECT egress FROM apps WHERE id = ?", [id]);
      return row?.egress ? (JSON.parse(row.egress) as EgressPolicy) : ALL_EGRESS;
    },
    async putEgress(id, egress) {
      const sql = "UPDATE apps SET egress = ? WHERE id = ?";
      return (await database.write([{ sql, args: [JSON.stringify(egress), id], rows: 1 }])).ok;
    },

    async deleteApp(id) {
      const outcome = await database.write([
        { sql: FORGET_NETWORK, args: [id, id] },
        { sql: "DELETE FROM apps WHERE id = ?", args: [id], rows: 1 },
      ]);
      return outcome.ok;
    },

    secrets: (app_id) =>
      database.read<Secret>(`SELECT ${SECRET} FROM app_secrets WHERE app_id = ? ORDER BY name`, [app_id]),
    findSecret: (app_id, name) =>
      readOne<Secret>(database, `SELECT ${SECRET} FROM app_secrets WHERE app_id = ? AND name = ?`, [app_id, name]),

    async changeSecrets(app_id, put, remove, limit) {
      const outcome = await database.write([
        {
          sql: "UPDATE apps SET secrets_version = secrets_version + 1 WHERE id = ? RETURNING secrets_version",
          args: [app_id],
          rows: 1,
        },
        ...remove.map(
          (name): Step => ({ sql: "DELETE FROM app_secrets WHERE app_id = ? AND name = ?", args: [app_id, name] }),
        ),
        ...put.map((secret): Step => putSecret(app_id, secret)),
        {
          sql: "SELECT 1 AS fits WHERE (SELECT count(*) FROM app_secrets WHERE app_id = ?) <= ?",
          args: [app_id, limit],
          rows: 1,
        },
      ]);
      if (!outcome.ok) return outcome.failed === 0 ? "no_app" : "limit";
      return Number(outcome.returned[0]?.[0]?.["secrets_version"]);
    },
  };
}

function putSecret(app_id: string, { name, sealed, digest, created_at, updated_at }: Secret): Step {
  return {
    sql: `INSERT INTO app_secrets (app_id, ${SECRET}) VALUES (?, ?, ?, ?, ?, ?)
          ON CONFLICT (app_id, name) DO UPDATE
          SET sealed = excluded.sealed, digest = excluded.digest, updated_at = excluded.updated_at`,
    args: [app_id, name, sealed, digest, created_at, updated_at],
  };
}
