import type { BuildStore } from "#builds/store.ts";
import { type Build, ENDED, type OrgBuild } from "#builds/types.ts";
import { type Database, readOne } from "../database.ts";
import { placeholders } from "./arguments.ts";
import { keyset } from "./keyset.ts";

const COLUMNS = [
  "id",
  "app_id",
  "org_id",
  "state",
  "node_id",
  "cancel_requested",
  "dockerfile",
  "target",
  "no_cache",
  "files",
  "bytes",
  "image",
  "digest",
  "step",
  "error",
  "created_by",
  "created_at",
  "started_at",
  "ended_at",
] as const satisfies readonly (keyof Build)[];
const BUILD = COLUMNS.join(", ");
const OPEN = "state IN ('queued', 'running')";

type Flag = "cancel_requested" | "no_cache";
type Row = Omit<Build, Flag> & Record<Flag, number>;
type OrgRow = Omit<OrgBuild, Flag> & Record<Flag, number>;

const ORG_BUILD = `${COLUMNS.map((column) => `b.${column}`).join(", ")}, a.name AS app_name
  FROM builds b JOIN apps a ON a.id = b.app_id WHERE b.org_id = ?`;

const buildOf = <Of extends Row>(row: Of): Omit<Of, Flag> & Build => ({
  ...row,
  cancel_requested: row.cancel_requested === 1,
  no_cache: row.no_cache === 1,
});

export function sqlBuildStore(database: Database): BuildStore {
  return {
    async insert(build, { keep, open }) {
      const row: Row = { ...build, cancel_requested: Number(build.cancel_requested), no_cache: Number(build.no_cache) };
      const outcome = await database.write([
        // Locks the app, and fails when it was deleted.
        { sql: "UPDATE apps SET name = name WHERE id = ?", args: [build.app_id], rows: 1 },
        {
          sql: `INSERT INTO builds (${BUILD}) VALUES (${placeholders(COLUMNS)})`,
          args: COLUMNS.map((column) => row[column]),
          rows: 1,
        },
        {
          sql: `UPDATE builds SET state = state
                WHERE id = ? AND (SELECT count(*) FROM builds WHERE org_id = ? AND ${OPEN}) <= ?`,
          args: [build.id, build.org_id, open],
          rows: 1,
        },
        {
          sql: `DELETE FROM builds WHERE app_id = ? AND state IN (${placeholders(ENDED)}) AND id NOT IN
                (SELECT id FROM builds WHERE app_id = ? ORDER BY created_at DESC, id DESC LIMIT ?)`,
          args: [build.app_id, ...ENDED, build.app_id, keep],
        },
      ]);
      if (outcome.ok) return undefined;
      return outcome.failed === 0 ? "app is gone" : "too many are open";
    },

    async find(app_id, id) {
      const row = await readOne<Row>(database, `SELECT ${BUILD} FROM builds WHERE app_id = ? AND id = ?`, [app_id, id]);
      return row && buildOf(row);
    },

    async list(app_id, page) {
      const { after, order, args } = keyset(["created_at", "id"], page, "DESC");
      const sql = `SELECT ${BUILD} FROM builds WHERE app_id = ?${after}${order}`;
      return (await database.read<Row>(sql, [app_id, ...args])).map(buildOf);
    },

    async listOfOrg(org_id, states, page) {
      const { after, order, args } = keyset(["b.created_at", "b.id"], page, "DESC");
      const among = states.length > 0 ? ` AND b.state IN (${placeholders(states)})` : "";
      const found = await database.read<OrgRow>(`SELECT ${ORG_BUILD}${among}${after}${order}`, [
        org_id,
        ...states,
        ...args,
      ]);
      return found.map(buildOf);
    },

    async failedLast(org_id, since, limit) {
      const sql = `SELECT ${ORG_BUILD} AND b.created_at > ? AND b.state = 'failed'
        AND NOT EXISTS (SELECT 1 FROM builds n WHERE n.app_id = b.app_id AND (n.created_at, n.id) > (b.created_at, b.id)
          AND n.state <> 'cancelled')
        AND NOT EXISTS (SELECT 1 FROM releases r WHERE r.app_id = b.app_id AND r.created_at > b.created_at)
        ORDER BY b.created_at DESC, b.id DESC LIMIT ?`;
      return (await database.read<OrgRow>(sql, [org_id, since, limit])).map(buildOf);
    },

    async change(id, from, change) {
      const changed = Object.entries(change).filter(([, value]) => value !== undefined);
      const outcome = await database.write([
        {
          sql: `UPDATE builds SET ${changed.map(([column]) => `${column} = ?`).join(", ")}
                WHERE id = ? AND state IN (${placeholders(from)})`,
          args: [...changed.map(([, value]) => value), id, ...from],
          rows: 1,
        },
      ]);
      return outcome.ok;
    },

    async requestCancel(id) {
      const sql = "UPDATE builds SET cancel_requested = 1 WHERE id = ? AND state = 'running'";
      return (await database.write([{ sql, args: [id], rows: 1 }])).ok;
    },

    async unfinished(node_id) {
      const sql = `SELECT ${BUILD} FROM builds WHERE node_id = ? AND ${OPEN} ORDER BY created_at, id`;
      return (await database.read<Row>(sql, [node_id])).map(buildOf);
    },

    async appendLog(build_id, { seq, text }) {
      // A build whose app was deleted has no log any more.
      await database.write([
        {
          sql: `INSERT INTO build_logs (build_id, seq, text)
                SELECT id, CAST(? AS BIGINT), CAST(? AS TEXT) FROM builds WHERE id = ?`,
          args: [seq, text, build_id],
        },
      ]);
    },

    async log(build_id, after_seq, limit) {
      const sql = "SELECT seq, text FROM build_logs WHERE build_id = ? AND seq > ? ORDER BY seq LIMIT ?";
      const rows = await database.read<{ seq: number; text: string }>(sql, [build_id, after_seq, limit]);
      return rows.map(({ seq, text }) => ({ seq, text }));
    },
  };
}
