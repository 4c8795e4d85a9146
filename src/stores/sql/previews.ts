import { DEFAULT_PREVIEWS, type Preview, type PreviewSettings, type PreviewStore } from "#git/preview-store.ts";
import { type Database, readOne, type Value } from "../database.ts";
import { lockOrg } from "./auth.ts";
import { keyset } from "./keyset.ts";

const COLUMNS = [
  "id",
  "parent_id",
  "org_id",
  "branch",
  "app_name",
  "state",
  "git_commit",
  "copied",
  "created_by",
  "created_at",
  "pushed_at",
  "settled_at",
] as const;
const PREVIEW = COLUMNS.join(", ");
const DAY_MS = 24 * 60 * 60 * 1000;

type Row = Omit<Preview, "copied"> & { copied: string };
type SettingsRow = Omit<PreviewSettings, "enabled" | "secrets"> & { enabled: number; secrets: string };

const previewOf = (row: Row): Preview => ({ ...row, copied: JSON.parse(row.copied) as string[] });
const DEPLOYED = "SELECT 1 FROM releases r WHERE r.app_id = previews.id AND r.status = 'complete'";

export function sqlPreviewStore(database: Database): PreviewStore {
  return { ...settingsOf(database), ...readsOf(database), ...writesOf(database) };
}

function settingsOf(database: Database): Pick<PreviewStore, "settings" | "putSettings"> {
  return {
    async settings(app_id) {
      const sql = "SELECT enabled, days, most, secrets FROM preview_settings WHERE app_id = ?";
      const row = await readOne<SettingsRow>(database, sql, [app_id]);
      return row && { ...row, enabled: row.enabled === 1, secrets: JSON.parse(row.secrets) as string[] };
    },
    async putSettings(app_id, { enabled, days, most, secrets }) {
      const outcome = await database.write([
        {
          sql: `INSERT INTO preview_settings (app_id, enabled, days, most, secrets)
                SELECT id, CAST(? AS BIGINT), CAST(? AS BIGINT), CAST(? AS BIGINT), CAST(? AS TEXT) FROM apps WHERE id = ?
                ON CONFLICT (app_id) DO UPDATE SET enabled = excluded.enabled, days = excluded.days,
                most = excluded.most, secrets = excluded.secrets`,
          args: [enabled ? 1 : 0, days, most, JSON.stringify(secrets), app_id],
          rows: 1,
        },
      ]);
      return outcome.ok;
    },
  };
}

type Reads = Pick<PreviewStore, "find" | "named" | "byId" | "list" | "due" | "isDeployed" | "deployed">;

function readsOf(database: Database): Reads {
  const one = async (condition: string, args: readonly Value[]): Promise<Preview | undefined> => {
    const row = await readOne<Row>(database, `SELECT ${PREVIEW} FROM previews WHERE ${condition}`, args);
    return row && previewOf(row);
  };
  return {
    find: (parent_id, branch) => one("parent_id = ? AND branch = ?", [parent_id, branch]),
    named: (parent_id, app_name) => one("parent_id = ? AND app_name = ?", [parent_id, app_name]),
    byId: (id) => one("id = ?", [id]),

    async list(parent_id, page) {
      const { after, order, args } = keyset(["branch"], page);
      const sql = `SELECT ${PREVIEW} FROM previews WHERE parent_id = ?${after}${order}`;
      return (await database.read<Row>(sql, [parent_id, ...args])).map(previewOf);
    },

    async due(now, limit) {
      const days = `coalesce((SELECT s.days FROM preview_settings s WHERE s.app_id = previews.parent_id), ${DEFAULT_PREVIEWS.days})`;
      const rows = await database.read<Row>(
        `SELECT ${PREVIEW} FROM previews WHERE state = 'deleting'
         OR NOT EXISTS (SELECT 1 FROM apps p WHERE p.id = previews.parent_id)
         OR pushed_at + ${days} * ${DAY_MS} <= ?
         OR (settled_at <= ? AND (NOT EXISTS (${DEPLOYED}) OR NOT EXISTS (SELECT 1 FROM apps a WHERE a.id = previews.id)))
         ORDER BY id LIMIT ?`,
        [now, now, limit],
      );
      return rows.map(previewOf);
    },

    async deployed(parent_id) {
      const sql = `SELECT id FROM previews WHERE parent_id = ? AND EXISTS (${DEPLOYED})`;
      return new Set((await database.read<{ id: string }>(sql, [parent_id])).map(({ id }) => id));
    },
    isDeployed: async (id) =>
      (await readOne(database, "SELECT 1 FROM releases WHERE app_id = ? AND status = 'complete' LIMIT 1", [id])) !==
      undefined,
  };
}

function writesOf(database: Database): Omit<PreviewStore, keyof Reads | "settings" | "putSettings"> {
  const { find } = readsOf(database);
  return {
    async insert(preview, { per_app, per_org }) {
      const row: Record<(typeof COLUMNS)[number], Value> = { ...preview, copied: JSON.stringify(preview.copied) };
      const { parent_id, org_id } = preview;
      const fits = (column: string, id: string, most: number) => ({
        sql: `SELECT 1 AS fits WHERE (SELECT count(*) FROM previews WHERE ${column} = ?) <= ?`,
        args: [id, most],
        rows: 1,
      });
      const outcome = await database.write([
        // Locks the organization, so that concurrent inserts respect the limit.
        lockOrg(org_id),
        {
          sql: `INSERT INTO previews (${PREVIEW}) SELECT ${COLUMNS.map((name) => castOf(row[name])).join(", ")}
                FROM apps WHERE apps.id = ? ON CONFLICT DO NOTHING`,
          args: [...COLUMNS.map((name) => row[name]), parent_id],
          rows: 1,
        },
        fits("parent_id", parent_id, per_app),
        fits("org_id", org_id, per_org),
      ]);
      if (outcome.ok) return undefined;
      if (outcome.failed === 2) return "app_limit";
      if (outcome.failed === 3) return "org_limit";
      return (await find(parent_id, preview.branch)) ? "exists" : "no_app";
    },

    async change(id, { copied, ...plain }) {
      const set: Record<string, Value> = { ...plain, ...(copied ? { copied: JSON.stringify(copied) } : {}) };
      const names = Object.keys(set);
      const sql = `UPDATE previews SET ${names.map((name) => `${name} = ?`).join(", ")} WHERE id = ?`;
      await database.write([{ sql, args: [...Object.values(set), id] }]);
    },

    async putDeleting(id) {
      const sql = "UPDATE previews SET state = 'deleting' WHERE id = ?";
      return (await database.write([{ sql, args: [id], rows: 1 }])).ok;
    },

    async remove(id) {
      const of_preview = "(SELECT token_id FROM preview_tokens WHERE preview_id = ?)";
      await database.write([
        { sql: `DELETE FROM tokens WHERE id IN ${of_preview}`, args: [id] },
        { sql: "DELETE FROM previews WHERE id = ? AND state = 'deleting'", args: [id] },
      ]);
    },

    async addToken(id, token_id, now) {
      const expired = `(SELECT t.id FROM tokens t JOIN preview_tokens p ON p.token_id = t.id
        WHERE p.preview_id = ? AND t.expires_at <= ?)`;
      await database.write([
        { sql: `DELETE FROM tokens WHERE id IN ${expired}`, args: [id, now] },
        {
          sql: "INSERT INTO preview_tokens (preview_id, token_id) VALUES (?, ?) ON CONFLICT DO NOTHING",
          args: [id, token_id],
        },
      ]);
    },
  };
}

/** PostgreSQL takes an argument in a SELECT for text. */
const castOf = (value: Value): string => (typeof value === "number" ? "CAST(? AS BIGINT)" : "CAST(? AS TEXT)");
