import type { Delivery, GitWebhook, GitWebhookStore } from "#git/webhook-store.ts";
import { type Database, readOne, type Value } from "../database.ts";

const HOOK = "id, app_id, repository, username, password, secret, token, token_id, created_by, created_at";
const DELIVERY_COLUMNS = [
  "id",
  "webhook_id",
  "node_id",
  "delivery",
  "digest",
  "event",
  "branch",
  "action",
  "state",
  "result",
  "git_commit",
  "received_at",
  "ended_at",
] as const;
const DELIVERY = DELIVERY_COLUMNS.join(", ");
const OPEN = "state IN ('queued', 'running')";

export function sqlGitWebhookStore(database: Database): GitWebhookStore {
  return { ...hooksOf(database), ...deliveriesOf(database) };
}

type Hooks = Pick<GitWebhookStore, "insert" | "find" | "list" | "delete">;

function hooksOf(database: Database): Hooks {
  return {
    async insert(hook, limit) {
      const { id, app_id, repository, username, password, secret, token, token_id, created_by, created_at } = hook;
      const row = [id, app_id, repository, username, password, secret, token, token_id, created_by, created_at];
      const outcome = await database.write([
        // Locks the app, so that concurrent inserts respect the limit.
        { sql: "UPDATE apps SET name = name WHERE id = ?", args: [app_id], rows: 1 },
        {
          sql: `INSERT INTO git_webhooks (${HOOK}) SELECT ?, ?, ?, ?, ?, ?, ?, ?, ?, ?
                WHERE (SELECT count(*) FROM git_webhooks WHERE app_id = ? AND id <> ?) < ?
                ON CONFLICT (id) DO UPDATE SET secret = excluded.secret, token = excluded.token, token_id = excluded.token_id`,
          // A repeated Idempotency-Key creates the same webhook again.
          args: [...row, app_id, id, limit],
          rows: 1,
        },
      ]);
      return outcome.ok;
    },
    find: (id) => readOne<GitWebhook>(database, `SELECT ${HOOK} FROM git_webhooks WHERE id = ?`, [id]),
    list: (app_id) =>
      database.read<GitWebhook>(`SELECT ${HOOK} FROM git_webhooks WHERE app_id = ? ORDER BY id`, [app_id]),
    async delete(app_id, id) {
      const sql = "DELETE FROM git_webhooks WHERE app_id = ? AND id = ?";
      return (await database.write([{ sql, args: [app_id, id], rows: 1 }])).ok;
    },
  };
}

function deliveriesOf(database: Database): Omit<GitWebhookStore, keyof Hooks> {
  return {
    async receive(delivery, { open, keep }) {
      const { webhook_id, digest, node_id, received_at } = delivery;
      const room = {
        sql: `SELECT 1 AS fits WHERE (SELECT count(*) FROM git_deliveries WHERE webhook_id = ? AND ${OPEN}) < ?`,
        args: [webhook_id, open],
        rows: 1,
      };
      const lock = { sql: "UPDATE git_webhooks SET id = id WHERE id = ?", args: [webhook_id], rows: 1 };
      const repeat = await database.write([
        lock,
        {
          sql: `UPDATE git_deliveries SET state = 'queued', result = '', ended_at = NULL, node_id = ?, received_at = ?
                WHERE webhook_id = ? AND digest = ? AND state = 'failed'`,
          args: [node_id, received_at, webhook_id, digest],
          rows: 1,
        },
      ]);
      if (repeat.ok) return "new";
      const outcome = await database.write([
        lock,
        room,
        {
          sql: `INSERT INTO git_deliveries (${DELIVERY}) VALUES (${DELIVERY_COLUMNS.map(() => "?").join(", ")})
                ON CONFLICT (webhook_id, digest) DO NOTHING`,
          args: DELIVERY_COLUMNS.map((name): Value => delivery[name]),
          rows: 1,
        },
        {
          sql: `DELETE FROM git_deliveries WHERE webhook_id = ? AND NOT (${OPEN}) AND id NOT IN
                (SELECT id FROM git_deliveries WHERE webhook_id = ? ORDER BY received_at DESC, id DESC LIMIT ?)`,
          args: [webhook_id, webhook_id, keep],
        },
      ]);
      if (outcome.ok) return "new";
      return outcome.failed === 1 ? "full" : "repeated";
    },

    async change(id, change) {
      const names = Object.keys(change);
      const sql = `UPDATE git_deliveries SET ${names.map((name) => `${name} = ?`).join(", ")} WHERE id = ?`;
      await database.write([{ sql, args: [...(Object.values(change) as Value[]), id] }]);
    },
    deliveries: (webhook_id, limit) =>
      database.read<Delivery>(
        `SELECT ${DELIVERY} FROM git_deliveries WHERE webhook_id = ? ORDER BY received_at DESC, id DESC LIMIT ?`,
        [webhook_id, limit],
      ),
    unfinished: (node_id) =>
      database.read<Delivery>(
        `SELECT ${DELIVERY} FROM git_deliveries WHERE node_id = ? AND ${OPEN} ORDER BY received_at, id`,
        [node_id],
      ),
  };
}
