import type { KeyStore, SigningKey } from "#identity/store.ts";
import type { Database, Value } from "../database.ts";

const KEY = "id, org_id, alg, public_jwk, private_key, created_at, sign_from, publish_until";

export function sqlKeyStore(database: Database): KeyStore {
  return {
    keys: (org_id) =>
      database.read<SigningKey>(`SELECT ${KEY} FROM signing_keys WHERE org_id = ? ORDER BY sign_from DESC, id`, [
        org_id,
      ]),
    async insertKey(key, others_until, unless_after) {
      const { id, org_id, alg, public_jwk, private_key, created_at, sign_from, publish_until } = key;
      const own: Value[] = [id, org_id, alg, public_jwk, private_key, created_at, sign_from, publish_until];
      const outcome = await database.write([
        // Locks the organization, so that two processes do not both create a key.
        { sql: "UPDATE orgs SET name = name WHERE id = ?", args: [org_id], rows: 1 },
        {
          sql: `INSERT INTO signing_keys (${KEY}) SELECT ?, ?, ?, ?, ?, ?, ?, ?
                WHERE NOT EXISTS (SELECT 1 FROM signing_keys WHERE org_id = ? AND alg = ? AND sign_from >= ?)`,
          args: own.concat([org_id, alg, unless_after]),
          rows: 1,
        },
        {
          sql: `UPDATE signing_keys SET publish_until = ?
                WHERE org_id = ? AND alg = ? AND id <> ? AND (publish_until IS NULL OR publish_until > ?)`,
          args: [others_until, org_id, alg, id, others_until],
        },
      ]);
      return outcome.ok;
    },
    async purgeKeys(org_id, now_ms) {
      const sql = "DELETE FROM signing_keys WHERE org_id = ? AND publish_until < ?";
      await database.write([{ sql, args: [org_id, now_ms] }]);
    },
  };
}
