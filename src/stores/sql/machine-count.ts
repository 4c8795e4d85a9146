import { MACHINE_LIMITS } from "#machines/limits.ts";
import type { Machine } from "#machines/types.ts";
import type { Database, Step } from "../database.ts";

/** The number of machines of organization `c.org_id`: the stored count, and the rows since. */
const TOTAL =
  "c.machines + (SELECT coalesce(sum(d.machines), 0) FROM machine_count_deltas d WHERE d.org_id = c.org_id)";

const deltaStep = ({ id, org_id }: Machine, machines: 1 | -1): Step => ({
  sql: "INSERT INTO machine_count_deltas (id, org_id, machines) VALUES (?, ?, ?)",
  args: [`${id}${machines > 0 ? "+" : "-"}`, org_id, machines],
});

/**
 * Counts one more machine, if the limit allows it. Each write inserts its own row, so that none waits for another; only
 * near the limit are they serialized by the organization's row, which makes the count exact.
 */
export const countStep = (machine: Machine, limit: number): Step[] => [
  {
    sql: "INSERT INTO machine_counters (org_id, events, machines) VALUES (?, 0, 0) ON CONFLICT (org_id) DO NOTHING",
    args: [machine.org_id],
  },
  deltaStep(machine, 1),
  {
    sql: `UPDATE machine_counters SET machines = machines WHERE org_id = ?
          AND (SELECT ${TOTAL} FROM machine_counters c WHERE c.org_id = machine_counters.org_id) > ?`,
    args: [machine.org_id, limit - MACHINE_LIMITS.machines_counted_exactly],
  },
  {
    sql: `SELECT 1 AS room FROM machine_counters c WHERE c.org_id = ? AND ${TOTAL} <= ?`,
    args: [machine.org_id, limit],
    rows: 1,
  },
];

export const uncountStep = (machine: Machine): Step => deltaStep(machine, -1);

/** Rows at once. */
const FOLDED = 500;
const FOLD = `DELETE FROM machine_count_deltas WHERE id IN (${Array(FOLDED).fill("?").join(", ")})`;

/** Folds rows into their count. A row that another process has already folded is skipped. */
export async function foldCounts(database: Database): Promise<void> {
  const sql = "SELECT id, org_id, machines FROM machine_count_deltas ORDER BY org_id, id LIMIT ?";
  for (;;) {
    const rows = await database.read<{ id: string; org_id: string; machines: number }>(sql, [FOLDED]);
    const [first] = rows;
    if (!first) return;
    const { org_id } = first;
    const own = rows.filter((row) => row.org_id === org_id);
    const ids = own.map(({ id }) => id);
    const sum = own.reduce((total, { machines }) => total + machines, 0);
    const { ok } = await database.write([
      {
        sql: FOLD,
        // A constant number of arguments, so that it is one prepared statement.
        args: Array.from({ length: FOLDED }, (_, index) => ids[index] ?? first.id),
        rows: ids.length,
      },
      { sql: "UPDATE machine_counters SET machines = machines + ? WHERE org_id = ?", args: [sum, org_id], rows: 1 },
    ]);
    if (!ok) return;
  }
}
