import type { Tenure } from "#hosts/types.ts";
import { ON_HOST_LOSS } from "#machines/exemptions.ts";
import type { MachineStore } from "#machines/store.ts";
import type { Database, Step } from "../database.ts";

/** Another host may start it, or its standby, when this one is lost. */
const MAY_LEAVE = `(
  (EXISTS (SELECT 1 FROM machine_metadata d
           WHERE d.machine_id = m.id AND d.key = '${ON_HOST_LOSS.key}' AND d.value = '${ON_HOST_LOSS.value}')
   AND NOT EXISTS (SELECT 1 FROM volumes v WHERE v.attached_machine_id = m.id))
  OR EXISTS (SELECT 1 FROM machine_standbys s JOIN machines b ON b.id = s.machine_id
             WHERE s.stands_for = m.id AND b.app_id = m.app_id AND b.state <> 'destroyed'))`;

const MISFENCED = `SELECT m.id, m.boot, CASE WHEN ${MAY_LEAVE} THEN 1 ELSE 0 END AS may_leave
  FROM machines m LEFT JOIN unfenced_machines u ON u.machine_id = m.id
  WHERE m.host_id = ? AND m.boot IS NOT NULL
  AND ((u.machine_id IS NOT NULL AND ${MAY_LEAVE})
    OR ((u.machine_id IS NULL OR u.host_id <> m.host_id OR u.boot <> m.boot) AND NOT ${MAY_LEAVE}))`;

const ADD = `INSERT INTO unfenced_machines (machine_id, host_id, boot)
  SELECT m.id, m.host_id, m.boot FROM machines m WHERE m.id = ? AND m.host_id = ? AND m.boot = ? AND NOT ${MAY_LEAVE}
  ON CONFLICT (machine_id) DO UPDATE SET host_id = excluded.host_id, boot = excluded.boot RETURNING machine_id`;

/** Locks the host's row until the commit, so that losing the host happens before or after. */
const held = ({ id, node_id, epoch }: Tenure): Step => ({
  sql: "UPDATE hosts SET epoch = epoch WHERE id = ? AND node_id = ? AND epoch = ? AND state = 'ok'",
  args: [id, node_id, epoch],
  rows: 1,
});

export function exemptionRows(
  database: Database,
): Pick<MachineStore, "exempt" | "misfenced" | "addExempt" | "removeExempt"> {
  return {
    async exempt(host_id) {
      const sql = "SELECT machine_id FROM unfenced_machines WHERE host_id = ?";
      return (await database.read<{ machine_id: string }>(sql, [host_id])).map((row) => row.machine_id);
    },
    async misfenced(host_id) {
      const rows = await database.read<{ id: string; boot: string; may_leave: number }>(MISFENCED, [host_id]);
      return rows.map((row) => ({ ...row, may_leave: row.may_leave === 1 }));
    },
    async addExempt(tenure, machines) {
      const add = machines.map(({ id, boot }) => ({ sql: ADD, args: [id, tenure.id, boot] }));
      const outcome = await database.write([held(tenure), ...add]);
      return outcome.ok ? outcome.returned.flat().map((row) => String(row["machine_id"])) : [];
    },
    async removeExempt(tenure, machine_ids) {
      const sql = "DELETE FROM unfenced_machines WHERE machine_id = ? AND host_id = ?";
      await database.write([held(tenure), ...machine_ids.map((id) => ({ sql, args: [id, tenure.id] }))]);
    },
  };
}
