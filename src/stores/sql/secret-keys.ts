import type { SecretKey, SecretKeyStore } from "#fly/secret-keys/store.ts";
import { type Database, readOne } from "../database.ts";

const KEY = "name, type, sealed, public_key, version, created_at, updated_at";

export function sqlSecretKeyStore(database: Database): SecretKeyStore {
  return {
    list: (app_id) =>
      database.read<SecretKey>(`SELECT ${KEY} FROM secret_keys WHERE app_id = ? ORDER BY name`, [app_id]),
    find: (app_id, name) =>
      readOne<SecretKey>(database, `SELECT ${KEY} FROM secret_keys WHERE app_id = ? AND name = ?`, [app_id, name]),

    async put(app_id, { name, type, sealed, public_key, created_at, updated_at }, limit) {
      const outcome = await database.write([
        // Locks the app, so that concurrent requests are counted one after the other.
        { sql: "UPDATE apps SET secrets_version = secrets_version WHERE id = ?", args: [app_id], rows: 1 },
        {
          sql: `INSERT INTO secret_keys (app_id, ${KEY}) VALUES (?, ?, ?, ?, ?, 1, ?, ?)
                ON CONFLICT (app_id, name) DO UPDATE SET type = excluded.type, sealed = excluded.sealed,
                  public_key = excluded.public_key, version = secret_keys.version + 1, updated_at = excluded.updated_at
                RETURNING version`,
          args: [app_id, name, type, sealed, public_key, created_at, updated_at],
          rows: 1,
        },
        {
          sql: "SELECT 1 AS fits WHERE (SELECT count(*) FROM secret_keys WHERE app_id = ?) <= ?",
          args: [app_id, limit],
          rows: 1,
        },
      ]);
      if (!outcome.ok) return outcome.failed === 0 ? "no_app" : "limit";
      return Number(outcome.returned[1]?.[0]?.["version"]);
    },

    async remove(app_id, name) {
      const sql = "DELETE FROM secret_keys WHERE app_id = ? AND name = ?";
      return (await database.write([{ sql, args: [app_id, name], rows: 1 }])).ok;
    },
  };
}
