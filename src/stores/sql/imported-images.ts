import type { ImportedImage, ImportedImages } from "#machines/runtime/imported-images.ts";
import { type Database, readOne } from "../database.ts";

const COLUMNS = "owner, name, digest, node_id, created_at";

export function sqlImportedImages(database: Database): ImportedImages {
  const read = async (where: string, args: readonly string[]): Promise<ImportedImage[]> => {
    const sql = `SELECT ${COLUMNS} FROM imported_images ${where} ORDER BY name, owner`;
    return (await database.read<ImportedImage>(sql, args)).map((row) => ({ ...row }));
  };
  return {
    async put({ owner, name, digest, node_id, created_at }) {
      const sql = `INSERT INTO imported_images (${COLUMNS}) VALUES (?, ?, ?, ?, ?) ON CONFLICT (owner, name) DO UPDATE
                   SET digest = excluded.digest, node_id = excluded.node_id, created_at = excluded.created_at`;
      await database.write([{ sql, args: [owner, name, digest, node_id, created_at] }]);
    },
    async find(owner, name) {
      const sql = `SELECT ${COLUMNS} FROM imported_images WHERE owner = ? AND name = ?`;
      const row = await readOne<ImportedImage>(database, sql, [owner, name]);
      return row && { ...row };
    },
    list: (owner) => (owner === undefined ? read("", []) : read("WHERE owner = ?", [owner])),
    withDigest: (digest) => read("WHERE digest = ?", [digest]),
    async remove(owner, name) {
      const sql = "DELETE FROM imported_images WHERE owner = ? AND name = ?";
      return (await database.write([{ sql, args: [owner, name], rows: 1 }])).ok;
    },
    async users(digest, org_id) {
      const of = org_id === undefined ? "" : "AND org_id = ?";
      const sql = `SELECT id FROM machines WHERE state <> 'destroyed' AND image_ref LIKE ? ${of} ORDER BY id`;
      const args = [`%"${digest}"%`, ...(org_id === undefined ? [] : [org_id])];
      return (await database.read<{ id: string }>(sql, args)).map(({ id }) => id);
    },
  };
}
