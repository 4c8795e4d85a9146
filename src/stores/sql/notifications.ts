import type { GroupState } from "#alerts/notify/dispatch.ts";
import type { NotificationStore, StoredConfig } from "#alerts/notify/store.ts";
import type { Notification, Silence } from "#alerts/notify/types.ts";
import { type Database, readOne, type Step, type Value } from "../database.ts";
import { renewed } from "./alerts.ts";

const NOTIFICATION =
  "id, org_id, receiver, integration, group_key, body, created_at, attempts, retry_at, last_error, delivered_at";
type SilenceRow = Omit<Silence, "matchers"> & { matchers: string };

export function sqlNotificationStore(database: Database): NotificationStore {
  return {
    ...silences(database),

    config: (org_id) =>
      readOne<StoredConfig>(
        database,
        "SELECT org_id, content, token_id, updated_at FROM alert_configs WHERE org_id = ?",
        [org_id],
      ),

    async putConfig({ org_id, content, token_id, updated_at }) {
      const sql = `INSERT INTO alert_configs (org_id, content, token_id, updated_at)
                   SELECT id, ?, CAST(? AS TEXT), CAST(? AS BIGINT) FROM orgs WHERE id = ?
                   ON CONFLICT (org_id) DO UPDATE SET content = excluded.content, token_id = excluded.token_id,
                     updated_at = excluded.updated_at`;
      return (await database.write([{ sql, args: [content, token_id, updated_at, org_id], rows: 1 }])).ok;
    },

    async deleteConfig(org_id) {
      return (await database.write([{ sql: "DELETE FROM alert_configs WHERE org_id = ?", args: [org_id], rows: 1 }]))
        .ok;
    },

    async groups(org_id) {
      const sql = "SELECT state FROM alert_groups WHERE org_id = ?";
      return (await database.read<{ state: string }>(sql, [org_id])).map(
        ({ state }) => JSON.parse(state) as GroupState,
      );
    },

    async putGroups(org_id, { groups, removed, notifications }, claim) {
      const outcome = await database.write([
        renewed(org_id, claim),
        ...groups.map(
          (group): Step => ({
            sql: `INSERT INTO alert_groups (org_id, group_key, state) VALUES (?, ?, ?)
                ON CONFLICT (org_id, group_key) DO UPDATE SET state = excluded.state`,
            args: [org_id, group.key, JSON.stringify(group)],
          }),
        ),
        ...removed.map(
          (key): Step => ({
            sql: "DELETE FROM alert_groups WHERE org_id = ? AND group_key = ?",
            args: [org_id, key],
          }),
        ),
        ...notifications.map(
          (one): Step => ({
            sql: `INSERT INTO notifications (${NOTIFICATION}) VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?)`,
            args: valuesOf(one),
          }),
        ),
      ]);
      return outcome.ok;
    },

    pending: (org_id, limit) =>
      database.read<Notification>(
        `SELECT ${NOTIFICATION} FROM notifications WHERE org_id = ? AND retry_at IS NOT NULL ORDER BY id LIMIT ?`,
        [org_id, limit],
      ),

    notifications: (org_id, limit) =>
      database.read<Notification>(
        `SELECT ${NOTIFICATION} FROM notifications WHERE org_id = ? ORDER BY id DESC LIMIT ?`,
        [org_id, limit],
      ),

    async putDelivery({ id, attempts, retry_at, last_error, delivered_at }) {
      const sql = "UPDATE notifications SET attempts = ?, retry_at = ?, last_error = ?, delivered_at = ? WHERE id = ?";
      await database.write([{ sql, args: [attempts, retry_at, last_error, delivered_at, id] }]);
    },

    async forget(before) {
      await database.write([
        { sql: "DELETE FROM notifications WHERE created_at < ?", args: [before] },
        { sql: "DELETE FROM silences WHERE ends_at < ?", args: [before] },
      ]);
    },
  };
}

/** In the order of the columns. */
function valuesOf(one: Notification): Value[] {
  const { id, org_id, receiver, integration, group_key, body, created_at } = one;
  const { attempts, retry_at, last_error, delivered_at } = one;
  const fixed = [id, org_id, receiver, integration, group_key, body, created_at];
  return [...fixed, attempts, retry_at, last_error, delivered_at];
}

function silences(database: Database): Pick<NotificationStore, "silences" | "putSilence" | "expireSilence"> {
  return {
    async silences(org_id, since) {
      const sql = `SELECT id, org_id, matchers, starts_at, ends_at, created_by, comment, updated_at FROM silences
                   WHERE org_id = ? AND ends_at > ? ORDER BY id DESC`;
      const rows = await database.read<SilenceRow>(sql, [org_id, since]);
      return rows.map((row) => ({ ...row, matchers: JSON.parse(row.matchers) as string[] }));
    },

    async putSilence({ id, org_id, matchers, starts_at, ends_at, created_by, comment, updated_at }, limit, now) {
      const texts = JSON.stringify(matchers);
      const values = [id, org_id, texts, starts_at, ends_at, created_by, comment, updated_at];
      const outcome = await database.write([
        // Locks the organization, so that concurrent inserts respect the limit.
        { sql: "UPDATE orgs SET name = name WHERE id = ?", args: [org_id], rows: 1 },
        {
          sql: `INSERT INTO silences (id, org_id, matchers, starts_at, ends_at, created_by, comment, updated_at)
                SELECT CAST(? AS TEXT), CAST(? AS TEXT), CAST(? AS TEXT), CAST(? AS BIGINT), CAST(? AS BIGINT),
                  CAST(? AS TEXT), CAST(? AS TEXT), CAST(? AS BIGINT)
                WHERE (SELECT count(*) FROM silences WHERE org_id = ? AND ends_at > ? AND id <> ?) < ?
                ON CONFLICT (id) DO NOTHING`,
          args: [...values, org_id, now, id, limit],
        },
        { sql: "SELECT 1 FROM silences WHERE id = ? AND org_id = ?", args: [id, org_id], rows: 1 },
      ]);
      return outcome.ok;
    },

    async expireSilence(org_id, id, now) {
      const sql = "UPDATE silences SET ends_at = ?, updated_at = ? WHERE org_id = ? AND id = ? AND ends_at > ?";
      return (await database.write([{ sql, args: [now, now, org_id, id, now], rows: 1 }])).ok;
    },
  };
}
