import type { LeasedRelease, Release, ReleaseStore, RunningRelease } from "#apps/release-store.ts";
import type { ReleaseImage } from "#machines/runtime/image-source.ts";
import { type Database, readOne } from "../database.ts";
import { appRange } from "./app-range.ts";
import { keyset } from "./keyset.ts";

/** Columns of a list, in the order of its fields; a single release has its definition, too. */
const COLUMNS = [
  "status",
  "description",
  "message",
  "git_commit",
  "git_branch",
  "failure",
  "progress",
  "strategy",
  "image",
  "image_digest",
  "lease_ms",
  "created_by",
  "created_at",
  "updated_at",
] as const;
const WRITTEN = [...COLUMNS, "definition"] as const;
const LISTED = `app_id, version, ${COLUMNS.join(", ")}`;
const RELEASE = `${LISTED}, definition`;

export function sqlReleaseStore(database: Database): ReleaseStore {
  return {
    releases(app_id, page) {
      const { after, order, args } = keyset(["version"], page, "DESC");
      return database.read(`SELECT ${LISTED} FROM releases WHERE app_id = ?${after}${order}`, [app_id, ...args]);
    },
    newestOfEach(range, limit) {
      const apps = appRange(range);
      // Versions count up by one.
      const sql = `SELECT ${LISTED} FROM releases WHERE app_id IN (${apps.sql})
        AND version > (SELECT max(n.version) FROM releases n WHERE n.app_id = releases.app_id) - ? ORDER BY version DESC`;
      return database.read(sql, [...apps.args, limit]);
    },
    findRelease: (app_id, version) =>
      readOne<Release>(database, `SELECT ${RELEASE} FROM releases WHERE app_id = ? AND version = ?`, [app_id, version]),

    async insertRelease(release, keep, after) {
      const { app_id } = release;
      const outcome = await database.write([
        // Locks the app, so that versions are unique.
        { sql: "UPDATE apps SET name = name WHERE id = ?", args: [app_id], rows: 1 },
        {
          sql: `INSERT INTO releases (${RELEASE})
                SELECT ?, coalesce(max(version), 0) + 1, ${WRITTEN.map(() => "?").join(", ")} FROM releases WHERE app_id = ?
                HAVING CAST(? AS BIGINT) IS NULL OR coalesce(max(version), 0) = CAST(? AS BIGINT) RETURNING version`,
          args: [app_id, ...WRITTEN.map((name) => release[name]), app_id, after ?? null, after ?? null],
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

    async releaseImages(per_app) {
      const found = await database.read<Omit<ReleaseImage, "digest"> & { digest: string; definition: string }>(
        `SELECT a.org_id, a.name AS app_name, r.version, r.image_digest AS digest, r.definition
         FROM releases r JOIN apps a ON a.id = r.app_id WHERE r.image_digest IS NOT NULL
         AND r.version > (SELECT max(version) FROM releases WHERE app_id = r.app_id) - ? ORDER BY a.name, r.version`,
        [per_app],
      );
      return found.flatMap(({ org_id, app_name, version, digest, definition }) =>
        [...new Set([digest, ...groupDigests(definition)])].map((one) => ({ org_id, app_name, version, digest: one })),
      );
    },

    async putStatus(app_id, version, { status, failure, progress }, now, renewed_at) {
      const sql = `UPDATE releases SET status = ?, failure = ?, progress = coalesce(?, progress), updated_at = ?
                   WHERE app_id = ? AND version = ? AND status = 'running' AND updated_at = coalesce(?, updated_at)`;
      const args = [status, failure, progress ?? null, now, app_id, version, renewed_at ?? null];
      return (await database.write([{ sql, args, rows: 1 }])).ok;
    },

    running(org_id, page) {
      const { after, order, args } = keyset(["r.created_at", "r.app_id", "r.version"], page, "DESC");
      const columns = ["app_id", "version", ...COLUMNS].map((column) => `r.${column}`).join(", ");
      const sql = `SELECT ${columns}, a.name AS app_name FROM releases r JOIN apps a ON a.id = r.app_id
        WHERE r.status = 'running' AND a.org_id = ?${after}${order}`;
      return database.read<RunningRelease>(sql, [org_id, ...args]);
    },

    leased: () =>
      database.read<LeasedRelease>(
        `SELECT app_id, version, updated_at, lease_ms FROM releases
         WHERE status = 'running' AND lease_ms IS NOT NULL ORDER BY app_id, version`,
        [],
      ),
  };
}

/** Process groups may have images of their own, pinned in their machine configs. A definition may be anything. */
function groupDigests(definition: string): string[] {
  const { groups } = (JSON.parse(definition) ?? {}) as { groups?: unknown };
  const list = (Array.isArray(groups) ? groups : []) as ({ config?: { image?: unknown } | null } | null)[];
  return list.flatMap((group) => /@(sha256:[0-9a-f]{64})$/.exec(String(group?.config?.image))?.[1] ?? []);
}
