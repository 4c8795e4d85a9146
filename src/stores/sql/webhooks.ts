import type { Webhook, WebhookStore } from "#machines/events/webhook-store.ts";
import type { Database } from "../database.ts";

const WEBHOOK = "id, org_id, app_id, url, secret, created_at, token_id, position, failures, retry_at, last_error";

export function sqlWebhookStore(database: Database): WebhookStore {
  return {
    webhooks: (org_id) =>
      org_id === undefined
        ? database.read<Webhook>(`SELECT ${WEBHOOK} FROM webhooks ORDER BY id`)
        : database.read<Webhook>(`SELECT ${WEBHOOK} FROM webhooks WHERE org_id = ? ORDER BY id`, [org_id]),
    async insertWebhook(hook, limit) {
      const { id, org_id, app_id, url, secret, created_at, token_id, position, failures, retry_at, last_error } = hook;
      const outcome = await database.write([
        // Locks the organization, so that concurrent inserts respect the limit.
        { sql: "UPDATE orgs SET name = name WHERE id = ?", args: [org_id], rows: 1 },
        {
          sql: `INSERT INTO webhooks (${WEBHOOK}) SELECT ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?
                WHERE (SELECT count(*) FROM webhooks WHERE org_id = ? AND id <> ?) < ?
                ON CONFLICT (id) DO UPDATE SET secret = excluded.secret`,
          // A repeated Idempotency-Key creates the same webhook again.
          args: [
            id,
            org_id,
            app_id,
            url,
            secret,
            created_at,
            token_id,
            position,
            failures,
            retry_at,
            last_error,
            org_id,
            id,
            limit,
          ],
          rows: 1,
        },
      ]);
      return outcome.ok;
    },
    async deleteWebhook(org_id, id) {
      const sql = "DELETE FROM webhooks WHERE org_id = ? AND id = ?";
      return (await database.write([{ sql, args: [org_id, id], rows: 1 }])).ok;
    },
    async claim(id, { runner, now, until }) {
      const sql = `UPDATE webhooks SET runner = ?, runner_until = ?
                   WHERE id = ? AND (runner = ? OR runner_until <= ?) RETURNING ${WEBHOOK}`;
      const outcome = await database.write([{ sql, args: [runner, until, id, runner, now] }]);
      const [row] = outcome.ok ? (outcome.returned[0] ?? []) : [];
      return row as Webhook | undefined;
    },
    async putProgress({ id, position, failures, retry_at, last_error }) {
      const sql = "UPDATE webhooks SET position = ?, failures = ?, retry_at = ?, last_error = ? WHERE id = ?";
      return (await database.write([{ sql, args: [position, failures, retry_at, last_error, id], rows: 1 }])).ok;
    },
  };
}
