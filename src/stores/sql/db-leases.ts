import type { LeaseRow, LeaseRows } from "#replication/election/lease-rows.ts";
import { type Database, readOne } from "../database.ts";

const ROW = "revision, term, served_term, node, url, reserved_for, lasts_ms, in_sync";

/** The leases of apps' replicated databases, one row each. */
export function sqlLeaseRows(database: Database): (app_id: string, name: string) => LeaseRows {
  return (app_id, name) => ({
    read: () =>
      readOne<LeaseRow>(database, `SELECT ${ROW} FROM db_leases WHERE app_id = ? AND name = ?`, [app_id, name]),
    async swap(was, { revision, term, served_term, node, url, reserved_for, lasts_ms, in_sync }) {
      const values = [revision, term, served_term, node, url, reserved_for, lasts_ms, in_sync];
      const step =
        was === 0
          ? {
              sql: `INSERT INTO db_leases (app_id, name, ${ROW}) VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?) ON CONFLICT (app_id, name) DO NOTHING`,
              args: [app_id, name, ...values],
            }
          : {
              sql: `UPDATE db_leases SET revision = ?, term = ?, served_term = ?, node = ?, url = ?, reserved_for = ?,
                    lasts_ms = ?, in_sync = ?
                    WHERE app_id = ? AND name = ? AND revision = ?`,
              args: [...values, app_id, name, was],
            };
      return (await database.write([{ ...step, rows: 1 }])).ok;
    },
    close: () => Promise.resolve(),
  });
}
