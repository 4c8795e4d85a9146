import type { AppRange } from "#apps/store.ts";
import { takePrefetched } from "#core/prefetched.ts";
import type { Work } from "#machines/lifecycle/writer.ts";
import { MACHINE_LIMITS } from "#machines/limits.ts";
import type { Change, Committed, Inserted, MachineStore } from "#machines/store.ts";
import type { Machine, MachineConfig, Operation, ShownMachine } from "#machines/types.ts";
import type { Database, Step, Value } from "../database.ts";
import { lookup } from "../lookup.ts";
import { appRange } from "./app-range.ts";
import { placeholders } from "./arguments.ts";
import { counted } from "./counted.ts";
import { eventReads, eventSteps } from "./event-log.ts";
import { exemptionRows } from "./exemptions.ts";
import { countStep, foldCounts, uncountStep } from "./machine-count.ts";
import { FROM, kindCondition, listQuery, orgListQuery, SELECT } from "./machine-lists.ts";
import {
  INSERT_MACHINE,
  insertArgs,
  MACHINE,
  type MachineRow,
  operationIn,
  SHOWN,
  toMachine,
  toShown,
  UPDATE_MACHINE,
  updateArgs,
  type WorkRow,
} from "./machine-rows.ts";
import { addSearched, countStates, putSearched } from "./machine-search.ts";
import { runReads, runSteps } from "./runs.ts";

const OPERATION = "id, machine_id, host_id, position, kind, payload, not_before, begun";
export const WORK = `SELECT ${MACHINE}, v.config, o.id AS o_id, o.position AS o_position, o.kind AS o_kind,
  o.payload AS o_payload, o.not_before AS o_not_before, o.begun AS o_begun
  ${FROM} LEFT JOIN machine_operations o ON o.machine_id = m.id WHERE m.id = ? ORDER BY o.position`;
const ALIVE = "(m.boot IS NOT NULL OR m.deadline_at IS NOT NULL OR m.next_run_at IS NOT NULL)";

export function sqlMachineStore(database: Database): MachineStore {
  const machines = async (sql: string, args: readonly Value[]): Promise<Machine[]> =>
    (await database.read<MachineRow>(sql, args)).map(toMachine);
  return {
    find: lookup(database, "machine", async (id) => {
      const [machine] = await machines(`${SELECT} WHERE m.id = ?`, [id]);
      return machine;
    }),
    async findWork(id) {
      const prefetched = await takePrefetched<Work>("work", id);
      if (prefetched) return prefetched;
      // One statement, so that state and operations are consistent.
      const rows = await database.read<MachineRow & WorkRow>(WORK, [id]);
      const [first] = rows;
      return first && { machine: toMachine(first), operations: rows.flatMap(operationIn) };
    },
    list: async (app_id, filter) => (await database.read<MachineRow>(...listQuery(app_id, filter))).map(toShown),
    listOrg: (org_id, filter) => machines(...orgListQuery(org_id, filter)),
    countStates: (org_id, filter, limit) => countStates(database, org_id, filter, limit),
    ...counted(database, "machines"),
    stateCounts(range) {
      const apps = appRange(range);
      const sql = `SELECT m.app_id, m.state, m.host_id, count(*) AS machines
        FROM (${apps.sql}) AS a JOIN machines m ON m.app_id = a.id WHERE m.state <> 'destroyed'
        GROUP BY m.app_id, m.state, m.host_id ORDER BY m.app_id, m.state, m.host_id`;
      return database.read(sql, apps.args);
    },
    oldestOfEach: (range, filter) => oldestOfEach(database, range, filter),

    insert: (change, limit) => insert(database, change, limit),
    commit: (change) => commit(database, change),

    async unfinished(host_ids) {
      const sql = `SELECT DISTINCT machine_id FROM machine_operations WHERE host_id IN (${placeholders(host_ids)})`;
      return (await database.read<{ machine_id: string }>(sql, host_ids)).map((row) => row.machine_id);
    },
    alive: (host_ids) => machines(`${SELECT} WHERE m.host_id IN (${placeholders(host_ids)}) AND ${ALIVE}`, host_ids),
    async anyAlive(host_id) {
      const sql = `SELECT 1 AS one FROM machines m WHERE m.host_id = ? AND ${ALIVE} LIMIT 1`;
      return (await database.read(sql, [host_id])).length > 0;
    },
    onHost: (host_id) =>
      machines(`${SELECT} WHERE m.host_id = ? AND m.state <> 'destroyed' ORDER BY m.created_at, m.id`, [host_id]),
    aliveAnywhere: () => machines(`${SELECT} WHERE ${ALIVE}`, []),
    changed: (since_ms) => database.read("SELECT id, revision FROM machines WHERE updated_at >= ?", [since_ms]),
    ...leftoverRows(database),
    ...exemptionRows(database),
    standbys: (machine_id) =>
      machines(`${SELECT} JOIN machine_standbys s ON s.machine_id = m.id WHERE s.stands_for = ?`, [machine_id]),

    ...eventReads(database),
    ...runReads(database),

    async versions(machine_id) {
      const sql =
        "SELECT instance_id, created_at, config FROM machine_versions WHERE machine_id = ? ORDER BY created_at DESC, instance_id DESC";
      const rows = await database.read<{ instance_id: string; created_at: number; config: string }>(sql, [machine_id]);
      return rows.map((row) => ({ ...row, config: JSON.parse(row.config) as MachineConfig }));
    },
    foldCounts: () => foldCounts(database),
    async purge(before_ms) {
      const sql = "DELETE FROM machines WHERE state = 'destroyed' AND pending = 0 AND updated_at < ? RETURNING id";
      const outcome = await database.write([{ sql, args: [before_ms] }]);
      return outcome.ok ? (outcome.returned[0]?.length ?? 0) : 0;
    },
  };
}

/** Each app's share ends at the creation of its last machine within the limit, so that only these are read. */
async function oldestOfEach(
  database: Database,
  range: AppRange,
  { limit, states }: { states?: readonly string[]; limit: number },
): Promise<(ShownMachine & { app_id: string })[]> {
  const apps = appRange(range);
  const kind = kindCondition(states ? { states } : {});
  const sql = `WITH share AS MATERIALIZED (SELECT a.id AS app_id, coalesce((SELECT m.created_at FROM machines m
      WHERE m.app_id = a.id${kind.sql} ORDER BY m.created_at, m.id LIMIT 1 OFFSET ?), ${Number.MAX_SAFE_INTEGER}) AS until
      FROM (${apps.sql}) AS a)
    SELECT m.app_id, ${SHOWN}, v.config FROM share JOIN machines m ON m.app_id = share.app_id AND m.created_at <= share.until
    JOIN machine_versions v ON v.machine_id = m.id AND v.instance_id = m.instance_id
    WHERE 1 = 1${kind.sql} ORDER BY m.created_at, m.id`;
  const rows = await database.read<MachineRow>(sql, [...kind.args, limit - 1, ...apps.args, ...kind.args]);
  // Some are as old as the last one.
  const shares = Map.groupBy(rows, ({ app_id }) => app_id);
  return [...shares.values()].flatMap((share) =>
    share.slice(0, limit).map((row) => ({ ...toShown(row), app_id: row.app_id })),
  );
}

/** Steps that belong together, and the store's result when one of them fails. */
type Group<Answer> = readonly [answer: Answer, steps: readonly Step[]];

/** Writes all groups in order. Returns undefined on success, otherwise the result of the failed group. */
async function writeGroups<Answer>(database: Database, groups: readonly Group<Answer>[]): Promise<Answer | undefined> {
  const outcome = await database.write(groups.flatMap(([, steps]) => steps));
  if (outcome.ok) return undefined;
  return groups.flatMap(([answer, steps]) => steps.map(() => answer))[outcome.failed];
}

/**
 * Contended rows, mainly the host's, are locked last: a process that is stopped while it sends a large config blocks
 * no others.
 */
async function insert(database: Database, change: Change, limit: number): Promise<Inserted> {
  const { machine } = change;
  const failed = await writeGroups<Inserted>(database, [
    ["exists", [{ sql: INSERT_MACHINE, args: insertArgs(machine), rows: 1 }]],
    ["volume", attachStep(change)],
    ["exists", contentSteps(change)],
    ["limit", countStep(machine, limit)],
    ["exists", eventSteps(database, machine, change.events)],
    ["capacity", reserveStep(change)],
  ]);
  if (failed !== "exists") return failed ?? "inserted";
  const [same] = await database.read("SELECT 1 FROM machines WHERE id = ?", [machine.id]);
  if (same) return "exists";
  const [app] = await database.read("SELECT 1 FROM apps WHERE id = ?", [machine.app_id]);
  return app ? "name_taken" : "no_app";
}

async function commit(database: Database, change: Change): Promise<Committed> {
  const { machine } = change;
  const destroyed = machine.state === "destroyed" && change.events.some((event) => event.status === "destroyed");
  const failed = await writeGroups<Committed>(database, [
    // The revision guards everything that was read: state, version, lease.
    ["conflict", [{ sql: UPDATE_MACHINE, args: updateArgs(machine), rows: 1 }]],
    ["conflict", contentSteps(change)],
    ["conflict", destroyed ? goneSteps(machine) : []],
    ["conflict", eventSteps(database, machine, change.events)],
    ["unmoved", moveSteps(change)],
    ["capacity", reserveStep(change)],
  ]);
  return failed ?? "done";
}

const goneSteps = (machine: Machine): Step[] => [
  {
    sql: "UPDATE volumes SET attached_machine_id = NULL, needs_restart = 0, revision = revision + 1 WHERE attached_machine_id = ?",
    args: [machine.id],
  },
  uncountStep(machine),
];

/** In the same write as the machine, so that a volume never has two. */
function attachStep({ machine, attach }: Change): Step[] {
  if (attach === undefined) return [];
  return [
    {
      sql: `UPDATE volumes SET attached_machine_id = ?, revision = revision + 1
            WHERE id = ? AND app_id = ? AND host_id = ? AND attached_machine_id IS NULL AND state = 'created'`,
      args: [machine.id, attach, machine.app_id, machine.host_id],
      rows: 1,
    },
  ];
}

/** Orphans are recorded with the move, so that the old host removes them when it can. */
function moveSteps({ machine, moved_from }: Change): Step[] {
  if (!moved_from) return [];
  const { id, host_id, region, private_ip } = machine;
  return [
    {
      // Not to a host that still has orphans of it.
      sql: `UPDATE machines SET host_id = ?, region = ?, private_ip = ? WHERE id = ?
            AND NOT EXISTS (SELECT 1 FROM host_leftovers l WHERE l.host_id = ? AND l.machine_id = machines.id)`,
      args: [host_id, region, private_ip, id, host_id],
      rows: 1,
    },
    putSearched(machine),
    {
      // Locks the host's row until the commit: its return happens before or after.
      sql: `UPDATE hosts SET used_cpus = used_cpus - ?, used_memory_mb = used_memory_mb - ? WHERE id = ?
            ${moved_from.epoch === null ? "" : "AND state = 'failed' AND epoch = ?"}`,
      args: [
        moved_from.cpus,
        moved_from.memory_mb,
        moved_from.host_id,
        ...(moved_from.epoch === null ? [] : [moved_from.epoch]),
      ],
      rows: 1,
    },
    {
      sql: "INSERT INTO host_leftovers (host_id, machine_id) VALUES (?, ?) ON CONFLICT DO NOTHING",
      args: [moved_from.host_id, id],
    },
    { sql: "UPDATE machine_operations SET host_id = ? WHERE machine_id = ?", args: [host_id, id] },
    {
      // After locking the host's row. An exempt machine there is not started elsewhere.
      sql: "DELETE FROM unfenced_machines WHERE machine_id = ?",
      args: [id],
      ...(moved_from.epoch === null ? {} : { rows: 0 }),
    },
  ];
}

function leftoverRows(database: Database): Pick<MachineStore, "leftovers" | "clearedAway"> {
  return {
    async leftovers(host_id) {
      const sql = "SELECT machine_id FROM host_leftovers WHERE host_id = ?";
      return (await database.read<{ machine_id: string }>(sql, [host_id])).map((row) => row.machine_id);
    },
    async clearedAway(host_id, machine_id) {
      const sql = "DELETE FROM host_leftovers WHERE host_id = ? AND machine_id = ?";
      await database.write([{ sql, args: [host_id, machine_id] }]);
    },
  };
}

function reserveStep({ machine, reserve }: Change): Step[] {
  if (!reserve) return [];
  const { cpus, memory_mb } = reserve;
  return [
    {
      sql: `UPDATE hosts SET used_cpus = used_cpus + ?, used_memory_mb = used_memory_mb + ?
            WHERE id = ? AND (? <= 0 OR ((cpus = 0 OR used_cpus + ? <= cpus) AND (memory_mb = 0 OR used_memory_mb + ? <= memory_mb)))`,
      args: [cpus, memory_mb, machine.host_id, cpus > 0 || memory_mb > 0 ? 1 : 0, cpus, memory_mb],
      rows: 1,
    },
  ];
}

function contentSteps(change: Change): Step[] {
  const { machine } = change;
  return [
    ...(change.new_version ? versionSteps(machine) : []),
    ...(change.new_metadata ? [putConfig(machine)] : []),
    ...(change.new_version || change.new_metadata ? indexSteps(machine) : []),
    ...runSteps(machine.id, change.runs ?? []),
    ...change.remove_operations.map((id) => ({ sql: "DELETE FROM machine_operations WHERE id = ?", args: [id] })),
    ...change.put_operations.map(putOperation),
    ...change.add_operations.map(addOperation),
  ];
}

function versionSteps(machine: Machine): Step[] {
  const { id, instance_id, updated_at, revision, config } = machine;
  const insert: Step = {
    sql: "INSERT INTO machine_versions (machine_id, instance_id, created_at, config) VALUES (?, ?, ?, ?)",
    args: [id, instance_id, updated_at, JSON.stringify(config)],
  };
  if (revision === 1) return [insert, addSearched(machine)];
  return [
    insert,
    putSearched(machine),
    {
      sql: `DELETE FROM machine_versions WHERE machine_id = ? AND instance_id <> ? AND instance_id IN (
              SELECT instance_id FROM machine_versions WHERE machine_id = ?
              ORDER BY created_at DESC, instance_id DESC LIMIT 1000 OFFSET ?)`,
      args: [id, instance_id, id, MACHINE_LIMITS.versions_kept],
    },
  ];
}

const putConfig = ({ id, instance_id, config }: Machine): Step => ({
  sql: "UPDATE machine_versions SET config = ? WHERE machine_id = ? AND instance_id = ?",
  args: [JSON.stringify(config), id, instance_id],
  rows: 1,
});

/** Index rows for lists and standbys. A first version has none to delete. */
function indexSteps({ id, app_id, revision, config }: Machine): Step[] {
  const first = revision === 1;
  const clear = ["machine_metadata", "machine_standbys"].map((table) => ({
    sql: `DELETE FROM ${table} WHERE machine_id = ?`,
    args: [id],
  }));
  return [
    ...(first ? [] : clear),
    ...Object.entries(config.metadata ?? {}).map(([key, value]) => ({
      sql: "INSERT INTO machine_metadata (machine_id, key, value, app_id) VALUES (?, ?, ?, ?)",
      args: [id, key, value, app_id],
    })),
    ...[...new Set(config.standbys)].map((stands_for) => ({
      sql: "INSERT INTO machine_standbys (machine_id, stands_for) VALUES (?, ?)",
      args: [id, stands_for],
    })),
  ];
}

const operationArgs = (operation: Operation): Value[] => [
  operation.id,
  operation.machine_id,
  operation.host_id,
  operation.position,
  operation.kind,
  JSON.stringify(operation.payload),
  operation.not_before,
  operation.begun ? 1 : 0,
];

const addOperation = (operation: Operation): Step => ({
  sql: `INSERT INTO machine_operations (${OPERATION}) VALUES (?, ?, ?, ?, ?, ?, ?, ?)`,
  args: operationArgs(operation),
});

const putOperation = ({ id, payload, not_before, begun }: Operation): Step => ({
  sql: "UPDATE machine_operations SET payload = ?, not_before = ?, begun = ? WHERE id = ?",
  args: [JSON.stringify(payload), not_before, begun ? 1 : 0, id],
  rows: 1,
});
