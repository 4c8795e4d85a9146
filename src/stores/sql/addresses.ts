import type { AddressStore, ExposedApp } from "#network/store.ts";
import type { IpAssignment } from "#network/types.ts";
import type { Database } from "../database.ts";

const COLUMNS = "ip, app_id, type, region, shared, service_name, network, created_at";

type Row = Omit<IpAssignment, "shared"> & { shared: number };

export function sqlAddressStore(database: Database): AddressStore {
  return {
    exposed: () =>
      database.read<ExposedApp>(
        "SELECT id, name, org_id, created_at FROM apps WHERE id IN (SELECT app_id FROM ip_assignments) ORDER BY id",
      ),
    async assignments(app_id) {
      const where = app_id === undefined ? "" : "WHERE app_id = ?";
      const sql = `SELECT ${COLUMNS} FROM ip_assignments ${where} ORDER BY created_at, ip`;
      const rows = await database.read<Row>(sql, app_id === undefined ? [] : [app_id]);
      return rows.map((row) => ({ ...row, shared: row.shared === 1 }));
    },
    async insertAssignment({ ip, app_id, type, region, shared, service_name, network, created_at }, limit) {
      const outcome = await database.write([
        // Locks the app, so that concurrent inserts respect the limit.
        { sql: "UPDATE apps SET name = name WHERE id = ?", args: [app_id], rows: 1 },
        // A guard that must return no row.
        { sql: "SELECT 1 AS found FROM ip_assignments WHERE app_id = ? AND ip = ?", args: [app_id, ip], rows: 0 },
        {
          sql: "SELECT 1 AS found FROM ip_assignments WHERE ip = ? AND (shared = 0 OR ? = 0)",
          args: [ip, shared ? 1 : 0],
          rows: 0,
        },
        {
          sql: `INSERT INTO ip_assignments (${COLUMNS}) SELECT ?, ?, ?, ?, ?, ?, ?, ?
                WHERE (SELECT count(*) FROM ip_assignments WHERE app_id = ?) < ?`,
          args: [ip, app_id, type, region, shared ? 1 : 0, service_name, network, created_at, app_id, limit],
          rows: 1,
        },
      ]);
      return outcome.ok ? "inserted" : ((["no_app", "exists", "taken", "limit"] as const)[outcome.failed] ?? "limit");
    },
    async deleteAssignment(app_id, ip) {
      const sql = "DELETE FROM ip_assignments WHERE app_id = ? AND ip = ?";
      return (await database.write([{ sql, args: [app_id, ip], rows: 1 }])).ok;
    },
  };
}
