import { messageOf } from "#core/assert.ts";
import type { Database } from "./database.ts";

/** One change of the tables. Never edited once released; a correction is a new one at the end. */
export interface Migration {
  id: number;
  name: string;
  statements: readonly string[];
}

export const MIGRATIONS: readonly Migration[] = [
  {
    id: 1,
    name: "organizations, tokens, apps, secrets, repeated requests",
    statements: [
      "CREATE TABLE meta (key TEXT PRIMARY KEY, value TEXT NOT NULL)",
      `CREATE TABLE orgs (
         id TEXT PRIMARY KEY, slug TEXT NOT NULL UNIQUE, name TEXT NOT NULL,
         numeric_id BIGINT NOT NULL, created_at BIGINT NOT NULL)`,
      `CREATE TABLE tokens (
         id TEXT PRIMARY KEY, org_id TEXT REFERENCES orgs (id) ON DELETE CASCADE, kind TEXT NOT NULL, name TEXT NOT NULL,
         secret BYTES NOT NULL, created_at BIGINT NOT NULL, expires_at BIGINT, revoked_at BIGINT)`,
      "CREATE INDEX tokens_org ON tokens (org_id, id)",
      `CREATE TABLE apps (
         id TEXT PRIMARY KEY, name TEXT NOT NULL UNIQUE, org_id TEXT NOT NULL REFERENCES orgs (id),
         numeric_id BIGINT NOT NULL, network TEXT NOT NULL, secrets_version BIGINT NOT NULL, created_at BIGINT NOT NULL)`,
      "CREATE INDEX apps_org ON apps (org_id, name)",
      `CREATE TABLE app_secrets (
         app_id TEXT NOT NULL REFERENCES apps (id) ON DELETE CASCADE, name TEXT NOT NULL, sealed BYTES NOT NULL,
         digest TEXT NOT NULL, created_at BIGINT NOT NULL, updated_at BIGINT NOT NULL, PRIMARY KEY (app_id, name))`,
      `CREATE TABLE idempotency (
         key TEXT PRIMARY KEY, fingerprint TEXT NOT NULL, seed BYTES NOT NULL, runner TEXT NOT NULL,
         started_at BIGINT NOT NULL, answer BYTES)`,
      "CREATE INDEX idempotency_started ON idempotency (started_at)",
    ],
  },
];

/** Every table with data, parents before children: the order in which a backup can be put back. */
export const TABLES = ["meta", "orgs", "tokens", "apps", "app_secrets", "idempotency"] as const;

/** The database is of another time than this program. */
export class MigrationError extends Error {
  override readonly name = "MigrationError";
}

/**
 * Brings the tables to this program's version. Each migration is one write, so a kill at any statement
 * leaves it undone or done; its row goes in first, so of two programs that start together one waits and
 * finds it done.
 */
export async function migrate(database: Database, migrations: readonly Migration[] = MIGRATIONS): Promise<number> {
  await createTable(database);
  const latest = migrations.at(-1)?.id ?? 0;
  const done = await applied(database);
  const newer = [...done].filter((id) => id > latest);
  if (newer.length > 0) {
    throw new MigrationError(
      `the database was written by a newer version (migration ${Math.max(...newer)}, this version knows ${latest}); start that version, or restore a backup made by this one`,
    );
  }
  for (const { id, name, statements } of migrations) {
    if (done.has(id)) continue;
    await database.write([
      { sql: "INSERT INTO migrations (id, name) VALUES (?, ?) ON CONFLICT (id) DO NOTHING", args: [id, name], rows: 1 },
      ...statements.map((sql) => ({ sql })),
    ]);
  }
  return latest;
}

async function createTable(database: Database): Promise<void> {
  try {
    await database.write([
      { sql: "CREATE TABLE IF NOT EXISTS migrations (id BIGINT PRIMARY KEY, name TEXT NOT NULL)" },
    ]);
  } catch (thrown) {
    // Two programs that create it at the same moment: PostgreSQL lets one of them fail. It is there then.
    await applied(database).catch(() => {
      throw new Error(`the table of migrations cannot be made: ${messageOf(thrown)}`, { cause: thrown });
    });
  }
}

async function applied(database: Database): Promise<Set<number>> {
  const rows = await database.read<{ id: number }>("SELECT id FROM migrations");
  return new Set(rows.map((row) => row.id));
}
