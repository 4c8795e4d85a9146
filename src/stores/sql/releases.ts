import type { Release, ReleaseStore } from "#apps/release-store.ts";
import { type Database, readOne } from "../database.ts";
import { keyset } from "./keyset.ts";

const LISTED =
  "app_id, version, status, description, strategy, image, image_digest, created_by, created_at, updated_at";
const RELEASE = `${LISTED}, definition`;

export function sqlReleaseStore(database: Database): ReleaseStore {
  return {
    releases(app_id, page) {
      const { after, order, args } = keyset(["version"], page, "DESC");
      return database.read(`SELECT ${LISTED} FROM releases WHERE app_id = ?${after}${order}`, [app_id, ...args]);
    },
    findRelease: (app_id, version) =>
      readOne<Release>(database, `SELECT ${RELEASE} FROM releases WHERE app_id = ? AND version = ?`, [app_id, version]),

    async insertRelease(release, keep, after) {
      const { app_id, status, description, strategy, image, image_digest } = release;
      const { definition, created_by, created_at, updated_at } = release;
      const outcome = await database.write([
        // Locks the app, so that two releases do not get the same version.
        { sql: "UPDATE apps SET name = name WHERE id = ?", args: [app_id], rows: 1 },
        {
          sql: `INSERT INTO releases (${RELEASE})
                SELECT ?, coalesce(max(version), 0) + 1, ?, ?, ?, ?, ?, ?, ?, ?, ? FROM releases WHERE app_id = ?
                HAVING CAST(? AS BIGINT) IS NULL OR coalesce(max(version), 0) = CAST(? AS BIGINT) RETURNING version`,
          args: [
            app_id,
            status,
            description,
            strategy,
            image,
            image_digest,
            created_by,
            created_at,
            updated_at,
            definition,
            app_id,
            after ?? null,
            after ?? null,
          ],
          rows: 1,
        },
        {
          sql: `DELETE FROM releases WHERE app_id = ? AND version <=
                (SELECT max(version) FROM releases WHERE app_id = ?) - ?`,
          args: [app_id, app_id, keep],
        },
      ]);
      if (!outcome.ok) return outcome.failed === 1 ? "behind" : undefined;
      return { ...release, version: Number(outcome.returned[1]?.[0]?.["version"]) };
    },

    releaseImages: (per_app) =>
      database.read(
        `SELECT a.org_id, a.name AS app_name, r.version, r.image_digest AS digest FROM releases r JOIN apps a ON a.id = r.app_id
         WHERE r.image_digest IS NOT NULL
         AND r.version > (SELECT max(version) FROM releases WHERE app_id = r.app_id) - ? ORDER BY a.name, r.version`,
        [per_app],
      ),

    async putStatus(app_id, version, status, now) {
      const sql = "UPDATE releases SET status = ?, updated_at = ? WHERE app_id = ? AND version = ?";
      return (await database.write([{ sql, args: [status, now, app_id, version], rows: 1 }])).ok;
    },
  };
}
