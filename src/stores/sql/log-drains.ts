import type { DrainStore } from "#machines/logs/drains/store.ts";
import type { Drain, DrainState } from "#machines/logs/drains/types.ts";
import type { Database } from "../database.ts";

const DRAIN = "id, org_id, app_id, kind, target, address, since, created_at, token_id";
const STATE =
  "drain_id, host_id, sent, refused, lost_gaps, lost_bytes, oldest_at, last_success_at, last_error, failures, updated_at";

export function sqlDrainStore(database: Database): DrainStore {
  return {
    drains: (org_id) =>
      org_id === undefined
        ? database.read<Drain>(`SELECT ${DRAIN} FROM log_drains ORDER BY id`)
        : database.read<Drain>(`SELECT ${DRAIN} FROM log_drains WHERE org_id = ? ORDER BY id`, [org_id]),

    async insert({ id, org_id, app_id, kind, target, address, since, created_at, token_id }, limit) {
      const outcome = await database.write([
        // Locks the organization, so that concurrent inserts respect the limit.
        { sql: "UPDATE orgs SET name = name WHERE id = ?", args: [org_id], rows: 1 },
        {
          // A repeated Idempotency-Key creates the same drain again.
          sql: `INSERT INTO log_drains (${DRAIN}) SELECT ?, ?, ?, ?, ?, ?, ?, ?, ?
                WHERE (SELECT count(*) FROM log_drains WHERE org_id = ? AND id <> ?) < ?
                ON CONFLICT (id) DO UPDATE SET target = excluded.target`,
          args: [id, org_id, app_id, kind, target, address, since, created_at, token_id, org_id, id, limit],
          rows: 1,
        },
      ]);
      return outcome.ok;
    },

    async delete(org_id, id) {
      const sql = "DELETE FROM log_drains WHERE org_id = ? AND id = ?";
      return (await database.write([{ sql, args: [org_id, id], rows: 1 }])).ok;
    },

    states: (org_id) =>
      database.read<DrainState>(
        `SELECT ${STATE} FROM log_drain_states WHERE drain_id IN (SELECT id FROM log_drains WHERE org_id = ?)
         ORDER BY drain_id, host_id`,
        [org_id],
      ),

    hostStates: (host_id) =>
      database.read<DrainState>(`SELECT ${STATE} FROM log_drain_states WHERE host_id = ?`, [host_id]),

    async putState(state) {
      const { drain_id, host_id, sent, refused, lost_gaps, lost_bytes, oldest_at, last_success_at } = state;
      const { last_error, failures, updated_at } = state;
      const outcome = await database.write([
        { sql: "UPDATE log_drains SET kind = kind WHERE id = ?", args: [drain_id], rows: 1 },
        {
          sql: `INSERT INTO log_drain_states (${STATE}) VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?)
                ON CONFLICT (drain_id, host_id) DO UPDATE SET sent = excluded.sent, refused = excluded.refused,
                  lost_gaps = excluded.lost_gaps, lost_bytes = excluded.lost_bytes, oldest_at = excluded.oldest_at,
                  last_success_at = excluded.last_success_at, last_error = excluded.last_error,
                  failures = excluded.failures, updated_at = excluded.updated_at`,
          args: [
            drain_id,
            host_id,
            sent,
            refused,
            lost_gaps,
            lost_bytes,
            oldest_at,
            last_success_at,
            last_error,
            failures,
            updated_at,
          ],
        },
      ]);
      return outcome.ok;
    },
  };
}
