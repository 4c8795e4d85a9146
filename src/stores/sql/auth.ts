import type { AuthStore } from "#auth/store.ts";
import type { Org, Token } from "#auth/types.ts";
import { type Database, readOne, type Step } from "../database.ts";
import { lookup } from "../lookup.ts";
import { keyset } from "./keyset.ts";

export const ORG = "id, slug, name, numeric_id, created_at";
export const TOKEN = "id, org_id, kind, name, secret, created_at, expires_at, revoked_at, parent_id";

/** A token that was neither revoked nor has expired. */
const VALID = "revoked_at IS NULL AND (expires_at IS NULL OR expires_at > ?)";
/** Rows of an organization, ended tokens among them, for each valid token that it may have. */
const ROWS_PER_VALID = 4;

/** Locks the organization against deletion and concurrent inserts past a limit. */
export const lockOrg = (id: string): Step => ({ sql: "UPDATE orgs SET name = name WHERE id = ?", args: [id], rows: 1 });

export function sqlAuthStore(database: Database): AuthStore {
  return {
    orgs: () => database.read<Org>(`SELECT ${ORG} FROM orgs ORDER BY slug`),
    findOrg: lookup(database, "org slug", (slug) =>
      readOne<Org>(database, `SELECT ${ORG} FROM orgs WHERE slug = ?`, [slug]),
    ),
    findOrgById: lookup(database, "org", (id) => readOne<Org>(database, `SELECT ${ORG} FROM orgs WHERE id = ?`, [id])),

    async insertOrg(org, limit) {
      const outcome = await database.write([
        {
          sql: `INSERT INTO orgs (${ORG}) SELECT ?, ?, ?, ?, ? WHERE (SELECT count(*) FROM orgs) < ? ON CONFLICT DO NOTHING`,
          args: [org.id, org.slug, org.name, org.numeric_id, org.created_at, limit],
          rows: 1,
        },
      ]);
      if (outcome.ok) return "inserted";
      const holder = await this.findOrg(org.slug);
      if (!holder) return "limit";
      return holder.id === org.id ? "inserted" : "slug_taken";
    },

    async deleteOrg(id) {
      const sql = "DELETE FROM orgs WHERE id = ? AND NOT EXISTS (SELECT 1 FROM apps WHERE org_id = ?)";
      return (await database.write([{ sql, args: [id, id], rows: 1 }])).ok;
    },

    findToken: lookup(database, "token", (id) =>
      readOne<Token>(database, `SELECT ${TOKEN} FROM tokens WHERE id = ?`, [id]),
    ),

    tokens(org_id, page) {
      const { after, order, args } = keyset(["id"], page, "DESC");
      const of = org_id === null ? "org_id IS NULL" : "org_id = ?";
      const owner = org_id === null ? [] : [org_id];
      return database.read<Token>(`SELECT ${TOKEN} FROM tokens WHERE ${of}${after}${order}`, [...owner, ...args]);
    },

    async insertToken(token, limit) {
      const { id, org_id, kind, name, secret, created_at, expires_at, revoked_at, parent_id } = token;
      const values = [id, org_id, kind, name, secret, created_at, expires_at, revoked_at, parent_id];
      const insert = {
        sql: `INSERT INTO tokens (${TOKEN}) SELECT ?, ?, ?, ?, ?, ?, ?, ?, ?
              WHERE (SELECT count(*) FROM tokens WHERE org_id = ? AND ${VALID}) < ?
                AND (SELECT count(*) FROM tokens WHERE org_id = ?) < ? ON CONFLICT (id) DO NOTHING`,
        args: [...values, org_id, created_at, limit, org_id, limit * ROWS_PER_VALID],
        rows: 1,
      };
      const outcome = await database.write(org_id === null ? [insert] : [lockOrg(org_id), insert]);
      if (outcome.ok) return token;
      if (org_id !== null && outcome.failed === 0) return "no_org";
      return (await this.findToken(id)) ?? "limit";
    },

    async revokeToken(id, at_ms) {
      const sql = "UPDATE tokens SET revoked_at = coalesce(revoked_at, ?) WHERE id = ?";
      return (await database.write([{ sql, args: [at_ms, id], rows: 1 }])).ok;
    },

    async deleteEnded(before_ms) {
      const sql = "DELETE FROM tokens WHERE revoked_at < ? OR expires_at < ?";
      await database.write([{ sql, args: [before_ms, before_ms] }]);
    },
  };
}
