import { messageOf } from "#core/assert.ts";
import type { Database } from "./database.ts";
import { MIGRATIONS } from "./migrations.ts";
import type { Migration } from "./released-migrations.ts";

/** The database belongs to another version of this program. */
export class MigrationError extends Error {
  override readonly name = "MigrationError";
}

/**
 * Migrates the tables to this version. Each migration is one write, so a kill leaves it done or undone; its row is
 * inserted first, so that of two concurrent programs one waits and finds it done.
 */
export async function migrate(database: Database, migrations: readonly Migration[] = MIGRATIONS): Promise<number> {
  await createTable(database);
  const latest = migrations.at(-1)?.id ?? 0;
  const done = await refuseNewer(database, latest);
  for (const { id, name, statements } of migrations) {
    if (done.has(id)) continue;
    const sql = "INSERT INTO migrations (id, name) VALUES (?, ?) ON CONFLICT (id) DO NOTHING";
    const first = { sql, args: [id, name], rows: 1 };
    await database.write([first, ...statements.map((one) => ({ sql: one }))], { patient: true });
  }
  return latest;
}

/** Returns the applied migrations; throws when a newer program applied some. Changes nothing. */
export async function refuseNewer(database: Database, latest = MIGRATIONS.at(-1)?.id ?? 0): Promise<Set<number>> {
  const done = await applied(database);
  const newer = [...done].filter((id) => id > latest);
  if (newer.length > 0) {
    throw new MigrationError(
      `the database was written by a newer version (migration ${Math.max(...newer)}, this version knows ${latest}); start that version, or restore a backup made by this one`,
    );
  }
  return done;
}

async function createTable(database: Database): Promise<void> {
  try {
    await database.write([
      { sql: "CREATE TABLE IF NOT EXISTS migrations (id BIGINT PRIMARY KEY, name TEXT NOT NULL)" },
    ]);
  } catch (thrown) {
    // On concurrent creation PostgreSQL fails one of them; the table exists then.
    await applied(database).catch(() => {
      throw new Error(`the table of migrations cannot be made: ${messageOf(thrown)}`, { cause: thrown });
    });
  }
}

async function applied(database: Database): Promise<Set<number>> {
  const rows = await database.read<{ id: number }>("SELECT id FROM migrations");
  return new Set(rows.map((row) => row.id));
}
