import type { AuthStore } from "#auth/store.ts";
import type { Org, Token } from "#auth/types.ts";
import { type Database, readOne } from "../database.ts";
import { lookup } from "../lookup.ts";

const ORG = "id, slug, name, numeric_id, created_at";
const TOKEN = "id, org_id, kind, name, secret, created_at, expires_at, revoked_at";

export function sqlAuthStore(database: Database): AuthStore {
  return {
    orgs: () => database.read<Org>(`SELECT ${ORG} FROM orgs ORDER BY slug`),
    findOrg: lookup(database, (slug) => readOne<Org>(database, `SELECT ${ORG} FROM orgs WHERE slug = ?`, [slug])),
    findOrgById: lookup(database, (id) => readOne<Org>(database, `SELECT ${ORG} FROM orgs WHERE id = ?`, [id])),

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

    findToken: lookup(database, (id) => readOne<Token>(database, `SELECT ${TOKEN} FROM tokens WHERE id = ?`, [id])),

    tokens: (org_id) =>
      org_id === null
        ? database.read<Token>(`SELECT ${TOKEN} FROM tokens WHERE org_id IS NULL ORDER BY id DESC`)
        : database.read<Token>(`SELECT ${TOKEN} FROM tokens WHERE org_id = ? ORDER BY id DESC`, [org_id]),

    async insertToken(token) {
      const { id, org_id, kind, name, secret, created_at, expires_at, revoked_at } = token;
      await database.write([
        {
          sql: `INSERT INTO tokens (${TOKEN}) VALUES (?, ?, ?, ?, ?, ?, ?, ?) ON CONFLICT (id) DO NOTHING`,
          args: [id, org_id, kind, name, secret, created_at, expires_at, revoked_at],
        },
      ]);
    },

    async countTokens(org_id) {
      const row = await readOne<{ n: number }>(database, "SELECT count(*) AS n FROM tokens WHERE org_id = ?", [org_id]);
      return row?.n ?? 0;
    },

    async revokeToken(id, at_ms) {
      const sql = "UPDATE tokens SET revoked_at = coalesce(revoked_at, ?) WHERE id = ?";
      return (await database.write([{ sql, args: [at_ms, id], rows: 1 }])).ok;
    },
  };
}
