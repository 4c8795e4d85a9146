import type { ManifestWrite, RegistryStore } from "#registry/store.ts";
import type { Repository, RepositoryBlob, RepositoryManifest, RepositoryTag } from "#registry/types.ts";
import { type Database, readOne, type Step } from "../database.ts";

const BLOB = "org_id, repository, digest, size, key, node_id, touched_at";
const MANIFEST = "org_id, repository, digest, media_type, size, subject, artifact_type, annotations, touched_at";
const IN = "org_id = ? AND repository = ?";

/** No manifest of the repository references the blob `b`, and it is no manifest. */
const UNREFERENCED = `NOT EXISTS (SELECT 1 FROM registry_references r
    WHERE r.org_id = b.org_id AND r.repository = b.repository AND r.digest = b.digest)
  AND NOT EXISTS (SELECT 1 FROM registry_manifests m
    WHERE m.org_id = b.org_id AND m.repository = b.repository AND m.digest = b.digest)`;

export function sqlRegistryStore(database: Database): RegistryStore {
  const findBlob: RegistryStore["findBlob"] = (org_id, repository, digest) =>
    readOne<RepositoryBlob>(database, `SELECT ${BLOB} FROM registry_blobs WHERE ${IN} AND digest = ?`, [
      org_id,
      repository,
      digest,
    ]);
  const knownKeys: RegistryStore["knownKeys"] = async (keys) => {
    if (keys.length === 0) return new Set();
    const sql = `SELECT DISTINCT key FROM registry_blobs WHERE key IN (${keys.map(() => "?").join(", ")})`;
    return new Set((await database.read<{ key: string }>(sql, keys)).map(({ key }) => key));
  };
  return {
    findBlob,
    knownKeys,
    findOrgBlob: (org_id, digest) =>
      readOne(database, `SELECT ${BLOB} FROM registry_blobs WHERE org_id = ? AND digest = ? LIMIT 1`, [org_id, digest]),

    async putBlob(blob) {
      const outcome = await database.write([{ ...insertBlob(blob), rows: 1 }]);
      const [kept] = outcome.ok ? (outcome.returned[0] ?? []) : [];
      return { ...blob, key: String(kept?.["key"]), node_id: String(kept?.["node_id"]) };
    },

    async mountBlob(org_id, digest, from, to, now) {
      const sql = `INSERT INTO registry_blobs (${BLOB})
        SELECT org_id, CAST(? AS TEXT), digest, size, key, node_id, CAST(? AS BIGINT) FROM registry_blobs
        WHERE org_id = ? AND repository = ? AND digest = ?
        ON CONFLICT (org_id, repository, digest) DO UPDATE SET touched_at = excluded.touched_at`;
      const outcome = await database.write([{ sql, args: [to, now, org_id, from, digest], rows: 1 }]);
      return outcome.ok ? await findBlob(org_id, to, digest) : undefined;
    },

    async deleteBlob(org_id, repository, digest) {
      const sql = `DELETE FROM registry_blobs AS b WHERE b.org_id = ? AND b.repository = ? AND b.digest = ?
        AND ${UNREFERENCED} RETURNING key`;
      const outcome = await database.write([{ sql, args: [org_id, repository, digest] }]);
      const key = outcome.ok ? outcome.returned[0]?.[0]?.["key"] : undefined;
      if (typeof key !== "string") return (await findBlob(org_id, repository, digest)) ? "referenced" : undefined;
      return (await knownKeys([key])).has(key) ? {} : { unused_key: key };
    },

    async usedBytes(org_id) {
      const sql = `SELECT coalesce(sum(size), 0) AS bytes FROM
        (SELECT DISTINCT key, size FROM registry_blobs WHERE org_id = ?) AS kept`;
      return Number((await readOne<{ bytes: number }>(database, sql, [org_id]))?.bytes ?? 0);
    },

    async countBlobs(org_id) {
      const sql = "SELECT count(*) AS count FROM registry_blobs WHERE org_id = ?";
      return Number((await readOne<{ count: number }>(database, sql, [org_id]))?.count ?? 0);
    },

    ...manifests(database),

    async collectBlobs(before, limit) {
      const old = `SELECT b.org_id, b.repository, b.digest FROM registry_blobs b
        WHERE b.touched_at < ? AND ${UNREFERENCED} ORDER BY b.touched_at LIMIT ?`;
      const sql = `DELETE FROM registry_blobs AS b WHERE b.touched_at < ? AND ${UNREFERENCED}
        AND (b.org_id, b.repository, b.digest) IN (${old}) RETURNING key, node_id, size`;
      const outcome = await database.write([{ sql, args: [before, before, limit] }]);
      const deleted = (outcome.ok ? (outcome.returned[0] ?? []) : []) as {
        key: string;
        node_id: string;
        size: number;
      }[];
      const known = await knownKeys(deleted.map(({ key }) => key));
      return [...new Map(deleted.map((one) => [one.key, { ...one }])).values()].filter(({ key }) => !known.has(key));
    },
  };
}

type ManifestStore = Pick<
  RegistryStore,
  | "findManifest"
  | "findTag"
  | "putManifest"
  | "deleteManifest"
  | "deleteTag"
  | "tags"
  | "referrers"
  | "countTags"
  | "indexesOf"
  | "hasRepository"
  | "repositories"
  | "tagsOfEach"
  | "untagged"
>;

function manifests(database: Database): ManifestStore {
  return {
    findManifest: (org_id, repository, digest) =>
      readOne<RepositoryManifest>(database, `SELECT ${MANIFEST} FROM registry_manifests WHERE ${IN} AND digest = ?`, [
        org_id,
        repository,
        digest,
      ]),

    async findTag(org_id, repository, tag) {
      const sql = `SELECT digest FROM registry_tags WHERE ${IN} AND tag = ?`;
      return (await readOne<{ digest: string }>(database, sql, [org_id, repository, tag]))?.digest;
    },

    putManifest: async (write) => (await database.write(manifestSteps(write))).ok,

    async deleteManifest(org_id, repository, digest) {
      const at = [org_id, repository, digest];
      const outcome = await database.write([
        { sql: `DELETE FROM registry_manifests WHERE ${IN} AND digest = ?`, args: at, rows: 1 },
        { sql: `DELETE FROM registry_tags WHERE ${IN} AND digest = ?`, args: at },
        { sql: `DELETE FROM registry_references WHERE ${IN} AND manifest = ?`, args: at },
      ]);
      return outcome.ok;
    },

    async deleteTag(org_id, repository, tag) {
      const sql = `DELETE FROM registry_tags WHERE ${IN} AND tag = ?`;
      return (await database.write([{ sql, args: [org_id, repository, tag], rows: 1 }])).ok;
    },

    tags: (org_id, repository, { last, limit }) =>
      database.read(`SELECT tag, digest FROM registry_tags WHERE ${IN} AND tag > ? ORDER BY tag LIMIT ?`, [
        org_id,
        repository,
        last,
        limit,
      ]),

    referrers: (org_id, repository, subject, { last, limit }) =>
      database.read<RepositoryManifest>(
        `SELECT ${MANIFEST} FROM registry_manifests WHERE ${IN} AND subject = ? AND digest > ? ORDER BY digest LIMIT ?`,
        [org_id, repository, subject, last, limit],
      ),

    async countTags(org_id, repository) {
      const sql = `SELECT count(*) AS count FROM registry_tags WHERE ${IN}`;
      return Number((await readOne<{ count: number }>(database, sql, [org_id, repository]))?.count ?? 0);
    },

    async indexesOf(org_id, repository, digest) {
      const sql = `SELECT manifest FROM registry_references WHERE ${IN} AND digest = ? ORDER BY manifest`;
      const found = await database.read<{ manifest: string }>(sql, [org_id, repository, digest]);
      return found.map(({ manifest }) => manifest);
    },

    async hasRepository(org_id, repository) {
      const sql = `SELECT 1 AS found FROM registry_blobs WHERE ${IN} LIMIT 1`;
      return (await database.read(sql, [org_id, repository])).length > 0;
    },

    repositories: (org_id, { last, limit }) =>
      database.read<Repository>(
        `SELECT b.org_id, b.repository, sum(b.size) AS bytes, max(b.touched_at) AS touched_at,
           (SELECT count(*) FROM registry_tags t WHERE t.org_id = b.org_id AND t.repository = b.repository) AS tags,
           (SELECT count(*) FROM registry_manifests m WHERE m.org_id = b.org_id AND m.repository = b.repository) AS manifests
         FROM registry_blobs b WHERE b.org_id = ? AND b.repository > ?
         GROUP BY b.org_id, b.repository ORDER BY b.repository LIMIT ?`,
        [org_id, last, limit],
      ),

    tagsOfEach: (org_id, { last, limit: repositories }, limit) =>
      // Each repository's share ends at its last tag within the limit, so that only these are read. SQLite keeps the
      // order of a CROSS JOIN.
      database.read<RepositoryTag>(
        `WITH share AS MATERIALIZED (SELECT r.repository, (SELECT max(f.tag) FROM (SELECT t.tag FROM registry_tags t
             WHERE t.org_id = ? AND t.repository = r.repository ORDER BY t.tag LIMIT ?) AS f) AS until
           FROM (SELECT DISTINCT repository FROM registry_blobs WHERE org_id = ? AND repository > ?
             ORDER BY repository LIMIT ?) AS r)
         SELECT t.repository, t.tag, t.digest FROM share CROSS JOIN registry_tags t
         WHERE t.org_id = ? AND t.repository = share.repository AND t.tag <= share.until ORDER BY t.repository, t.tag`,
        [org_id, limit, org_id, last, repositories, org_id],
      ),

    untagged: (before, limit) =>
      database.read<RepositoryManifest>(
        `SELECT ${MANIFEST} FROM registry_manifests m WHERE touched_at < ?
         AND NOT EXISTS (SELECT 1 FROM registry_tags t
           WHERE t.org_id = m.org_id AND t.repository = m.repository AND t.digest = m.digest)
         AND NOT EXISTS (SELECT 1 FROM registry_references r
           WHERE r.org_id = m.org_id AND r.repository = m.repository AND r.digest = m.digest)
         AND NOT EXISTS (SELECT 1 FROM registry_manifests s
           WHERE s.org_id = m.org_id AND s.repository = m.repository AND s.digest = m.subject)
         ORDER BY touched_at LIMIT ?`,
        [before, limit],
      ),
  };
}

function insertBlob({ org_id, repository, digest, size, key, node_id, touched_at }: RepositoryBlob): Step {
  const sql = `INSERT INTO registry_blobs (${BLOB}) VALUES (?, ?, ?, ?, ?, ?, ?)
    ON CONFLICT (org_id, repository, digest) DO UPDATE SET touched_at = excluded.touched_at RETURNING key, node_id`;
  return { sql, args: [org_id, repository, digest, size, key, node_id, touched_at] };
}

/** Referenced blobs are touched in the same write, so that clean-up keeps them. */
function manifestSteps({ manifest, blob, tag, blobs, manifests: listed }: ManifestWrite): Step[] {
  const { org_id, repository, digest, touched_at } = manifest;
  const { media_type, size, subject, artifact_type, annotations } = manifest;
  const touch = (table: string, one: string): Step => ({
    sql: `UPDATE ${table} SET touched_at = ? WHERE ${IN} AND digest = ?`,
    args: [touched_at, org_id, repository, one],
    rows: 1,
  });
  return [
    ...blobs.map((one) => touch("registry_blobs", one)),
    ...listed.map((one) => touch("registry_manifests", one)),
    insertBlob(blob),
    {
      sql: `INSERT INTO registry_manifests (${MANIFEST}) VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?)
        ON CONFLICT (org_id, repository, digest)
        DO UPDATE SET touched_at = excluded.touched_at, media_type = excluded.media_type`,
      args: [org_id, repository, digest, media_type, size, subject, artifact_type, annotations, touched_at],
    },
    ...[...blobs, ...listed].map((one) => ({
      sql: `INSERT INTO registry_references (org_id, repository, manifest, digest) VALUES (?, ?, ?, ?)
        ON CONFLICT (org_id, repository, manifest, digest) DO NOTHING`,
      args: [org_id, repository, digest, one],
    })),
    ...(tag === undefined
      ? []
      : [
          {
            sql: `INSERT INTO registry_tags (org_id, repository, tag, digest, updated_at) VALUES (?, ?, ?, ?, ?)
              ON CONFLICT (org_id, repository, tag)
              DO UPDATE SET digest = excluded.digest, updated_at = excluded.updated_at`,
            args: [org_id, repository, tag, digest, touched_at],
          },
        ]),
  ];
}
