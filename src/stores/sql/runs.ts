import { MACHINE_LIMITS } from "#machines/limits.ts";
import { EXIT_NOT_SEEN } from "#machines/runs/record.ts";
import type { Run, RunChange, RunEnd } from "#machines/runs/types.ts";
import type { MachineStore } from "#machines/store.ts";
import { type Database, readOne, type Step } from "../database.ts";
import { placeholders } from "./arguments.ts";
import { keyset } from "./keyset.ts";

const COLUMNS = [
  "id",
  "app_id",
  "machine_id",
  "machine_name",
  "kind",
  "command",
  "image",
  "instance_id",
  "state",
  "started_by",
  "started_at",
  "ended_at",
  "exit_code",
  "signal",
  "oom_killed",
  "error",
] as const satisfies readonly (keyof Run)[];
const RUN = COLUMNS.map((column) => `r.${column}`).join(", ");

type Row = Omit<Run, "oom_killed"> & { oom_killed: number };

const runOf = (row: Row): Run => ({ ...row, oom_killed: row.oom_killed === 1 });

export function runSteps(machine_id: string, changes: readonly RunChange[]): Step[] {
  return changes.flatMap((change) => {
    if ("end" in change) return [endStep(machine_id, change.end)];
    if ("skip" in change) return insertSteps(change.skip);
    // A run that is still open ended with its host, and its exit is unknown.
    const lost: RunEnd = { ...UNSEEN, ended_at: change.begin.started_at };
    return [endStep(machine_id, lost), ...insertSteps(change.begin)];
  });
}

const UNSEEN = {
  state: "failed",
  exit_code: null,
  signal: null,
  oom_killed: false,
  error: EXIT_NOT_SEEN,
} as const;

const endStep = (machine_id: string, end: RunEnd): Step => ({
  sql: `UPDATE runs SET state = ?, ended_at = ?, exit_code = ?, signal = ?, oom_killed = ?, error = ?
        WHERE machine_id = ? AND ended_at IS NULL`,
  args: [end.state, end.ended_at, end.exit_code, end.signal, Number(end.oom_killed), end.error, machine_id],
});

function insertSteps(run: Run): Step[] {
  const row: Row = { ...run, oom_killed: Number(run.oom_killed) };
  return [
    {
      sql: `INSERT INTO runs (${COLUMNS.join(", ")}) VALUES (${placeholders(COLUMNS)})`,
      args: COLUMNS.map((column) => row[column]),
      rows: 1,
    },
    {
      sql: `DELETE FROM runs WHERE app_id = ? AND ended_at IS NOT NULL AND (started_at, id) <
            (SELECT started_at, id FROM runs WHERE app_id = ? ORDER BY started_at DESC, id DESC LIMIT 1 OFFSET ?)`,
      args: [run.app_id, run.app_id, MACHINE_LIMITS.runs_per_app - 1],
    },
  ];
}

type RunReads = Pick<MachineStore, "run" | "runs">;

export function runReads(database: Database): RunReads {
  return {
    async run(app_id, id) {
      const sql = `SELECT ${RUN}, (SELECT min(n.started_at) FROM runs n WHERE n.machine_id = r.machine_id
          AND n.started_at > r.started_at AND n.state <> 'skipped') AS next_at, m.host_id
        FROM runs r LEFT JOIN machines m ON m.id = r.machine_id WHERE r.app_id = ? AND r.id = ?`;
      const row = await readOne<Row & { next_at: number | null; host_id: string | null }>(database, sql, [app_id, id]);
      if (!row) return undefined;
      const { next_at, host_id, ...run } = row;
      return { run: runOf(run), next_at, ...(host_id === null ? {} : { host_id }) };
    },
    async runs(app_id, { machine_id, states, page }) {
      const { after, order, args } = keyset(["started_at", "id"], page, "DESC");
      const of = machine_id === undefined ? "" : " AND machine_id = ?";
      const are = states === undefined ? "" : ` AND state IN (${placeholders(states)})`;
      const sql = `SELECT ${RUN} FROM runs r WHERE app_id = ?${of}${are}${after}${order}`;
      const given = [app_id, ...(machine_id === undefined ? [] : [machine_id]), ...(states ?? []), ...args];
      return (await database.read<Row>(sql, given)).map(runOf);
    },
  };
}
