import type { MachineConfig } from "#machines/types.ts";
import { growthStep } from "#volumes/growth.ts";
import { VOLUME_LIMITS } from "#volumes/limits.ts";
import type { Change, Growing, Inserted, VolumeStore } from "#volumes/store.ts";
import type { Operation, Snapshot, Volume } from "#volumes/types.ts";
import { type Database, readOne, type Step, type Value } from "../database.ts";
import { placeholders } from "./arguments.ts";
import { counted } from "./counted.ts";
import { keyset } from "./keyset.ts";
import {
  insertOperation,
  insertSnapshot,
  insertVolume,
  operationIn,
  SNAPSHOT,
  toVolume,
  updateSnapshot,
  updateVolume,
  VOLUME,
  type VolumeRow,
  type WorkRow,
} from "./volume-rows.ts";

const FROM = `SELECT ${VOLUME} FROM volumes v`;
const SNAPSHOTS = `SELECT ${SNAPSHOT} FROM volume_snapshots s`;
const WORK = `SELECT ${VOLUME}, o.id AS o_id, o.host_id AS o_host_id, o.position AS o_position, o.kind AS o_kind, o.payload AS o_payload,
  o.tries AS o_tries FROM volumes v LEFT JOIN volume_operations o ON o.volume_id = v.id WHERE v.id = ? ORDER BY o.position`;
/** A snapshot that is the base of one being stored, or the source of a restore, is in use. */
const NEEDED = `EXISTS (SELECT 1 FROM volume_snapshots o WHERE o.base_snapshot_id = s.id AND o.status IN ('waiting', 'running'))
  OR EXISTS (SELECT 1 FROM volume_operations o WHERE o.reads = s.id)`;
/** Unattached, or its machine is being destroyed. */
const RELEASED = `(attached_machine_id IS NULL OR EXISTS (
  SELECT 1 FROM machines m WHERE m.id = attached_machine_id AND m.state IN ('destroying', 'destroyed')))`;
const PACKS_PER_STEP = 200;

export function sqlVolumeStore(database: Database): VolumeStore {
  const volumes = async (where: string, args: readonly Value[]): Promise<Volume[]> =>
    (await database.read<VolumeRow>(`${FROM} WHERE ${where}`, args)).map(toVolume);
  return {
    async find(id) {
      const [volume] = await volumes("v.id = ?", [id]);
      return volume;
    },
    async detaching(id) {
      const sql = `SELECT 1 AS one FROM volumes WHERE id = ? AND attached_machine_id IS NOT NULL AND ${RELEASED}`;
      return (await database.read(sql, [id])).length > 0;
    },
    findWork: (id) => findWork(database, id),
    list(app_id, { include_deleted, page }) {
      const { after, order, args } = keyset(["v.created_at", "v.id"], page);
      const state = include_deleted ? "" : " AND v.state <> 'destroyed'";
      return volumes(`v.app_id = ?${state}${after}${order}`, [app_id, ...args]);
    },
    all: (host_ids) => volumes(`v.host_id IN (${placeholders(host_ids)}) ORDER BY v.created_at, v.id`, host_ids),
    ...counted(database, "volumes"),
    async zones(app_id, name) {
      const named = name === undefined ? "" : " AND name = ?";
      const sql = `SELECT DISTINCT zone FROM volumes WHERE app_id = ?${named} AND state <> 'destroyed'`;
      const args = name === undefined ? [app_id] : [app_id, name];
      return (await database.read<{ zone: string }>(sql, args)).map(({ zone }) => zone);
    },

    insert: (change, guard) => insert(database, change, guard),
    async commit(change) {
      const guard = change.only_detached ? ` AND ${RELEASED}` : "";
      return (await database.write([updateVolume(change.volume, guard), ...contentSteps(change)])).ok;
    },
    async forget(id) {
      const sql = `DELETE FROM volumes WHERE id = ? AND state = 'destroyed' AND attached_machine_id IS NULL
        AND NOT EXISTS (SELECT 1 FROM volume_operations o WHERE o.volume_id = volumes.id OR o.reads = volumes.id)`;
      return (await database.write([{ sql, args: [id], rows: 1 }])).ok;
    },

    async unfinished(host_ids) {
      const sql = `SELECT DISTINCT volume_id FROM volume_operations WHERE host_id IN (${placeholders(host_ids)})`;
      return (await database.read<{ volume_id: string }>(sql, host_ids)).map((row) => row.volume_id);
    },
    async due(host_ids, now) {
      const own = `v.host_id IN (${placeholders(host_ids)})`;
      const busy = "EXISTS (SELECT 1 FROM volume_operations o WHERE o.volume_id = v.id OR o.reads = v.id)";
      const [backup, purge, orphans] = await Promise.all([
        volumes(`${own} AND v.state = 'created' AND (v.next_backup_at <= ? OR v.next_backup_at > ?)`, [
          ...host_ids,
          now,
          // Further ahead than ever scheduled: the clock was wrong when it was set.
          now + 2 * VOLUME_LIMITS.backup_every_ms,
        ]),
        volumes(
          `${own} AND v.state = 'destroyed' AND v.purge_at <= ? AND v.attached_machine_id IS NULL AND NOT ${busy}`,
          [...host_ids, now],
        ),
        volumes(
          `${own} AND v.state <> 'destroyed' AND NOT EXISTS (SELECT 1 FROM apps a WHERE a.id = v.app_id)`,
          host_ids,
        ),
      ]);
      return { backup, purge, orphans };
    },
    growing: (host_ids) => growing(database, host_ids),
    async identity(fresh) {
      const key = "objects_identity";
      await database.write([
        { sql: "INSERT INTO meta (key, value) VALUES (?, ?) ON CONFLICT (key) DO NOTHING", args: [key, fresh] },
      ]);
      return (
        (await readOne<{ value: string }>(database, "SELECT value FROM meta WHERE key = ?", [key]))?.value ?? fresh
      );
    },
    ...snapshotReads(database),
    async putSnapshot(snapshot) {
      await database.write([updateSnapshot(snapshot)]);
    },
    finishSnapshot: (snapshot, packs) => finishSnapshot(database, snapshot, packs),
    forgetSnapshot: (id) => forgetSnapshot(database, id),
  };
}

function snapshotReads(
  database: Database,
): Pick<VolumeStore, "findSnapshot" | "snapshots" | "allSnapshots" | "expired" | "packs"> {
  return {
    findSnapshot: (id) => readOne<Snapshot>(database, `${SNAPSHOTS} WHERE s.id = ?`, [id]),
    snapshots: (volume_id) =>
      database.read<Snapshot>(`${SNAPSHOTS} WHERE s.volume_id = ? ORDER BY s.created_at DESC, s.id DESC`, [volume_id]),
    allSnapshots: () => database.read<Snapshot>(`${SNAPSHOTS} ORDER BY s.created_at, s.id`),
    expired: (now) =>
      database.read<Snapshot>(
        `${SNAPSHOTS} WHERE s.expires_at <= ? AND s.status IN ('created', 'failed') AND NOT (${NEEDED})`,
        [now],
      ),
    async packs() {
      const rows = await database.read<{ pack: string }>("SELECT DISTINCT pack FROM snapshot_packs");
      return new Set(rows.map(({ pack }) => pack));
    },
  };
}

async function findWork(
  database: Database,
  id: string,
): Promise<{ volume: Volume; operations: Operation[] } | undefined> {
  // One statement, so that state and operations are consistent.
  const rows = await database.read<VolumeRow & WorkRow>(WORK, [id]);
  const [first] = rows;
  if (!first) return undefined;
  const { o_id: _id, o_host_id: _host, o_position: _position, ...rest } = first;
  const { o_kind: _kind, o_payload: _payload, o_tries: _tries, ...volume } = rest;
  return { volume: toVolume(volume), operations: rows.flatMap(operationIn) };
}

async function insert(
  database: Database,
  change: Change,
  { limit, unique_zone, source }: Parameters<VolumeStore["insert"]>[1],
): Promise<Inserted> {
  const { volume } = change;
  const { id, app_id, org_id, name, zone } = volume;
  const rivals = {
    name: { where: "app_id = ? AND zone = ? AND name = ?", args: [app_id, zone, name] },
    app: { where: "app_id = ? AND zone = ?", args: [app_id, zone] },
  };
  const rival = unique_zone ? rivals[unique_zone] : undefined;
  const alone = rival ? `NOT EXISTS (SELECT 1 FROM volumes WHERE ${rival.where} AND state <> 'destroyed')` : "1 = 1";
  const outcome = await database.write([
    // Locks the app against deletion and concurrent inserts into the same zone.
    { sql: "UPDATE apps SET name = name WHERE id = ?", args: [app_id], rows: 1 },
    ...sourceSteps(source),
    {
      sql: "SELECT 1 AS fits WHERE (SELECT count(*) FROM volumes WHERE org_id = ? AND state <> 'destroyed') < ?",
      args: [org_id, limit],
      rows: 1,
    },
    insertVolume(volume, alone, rival?.args ?? []),
    ...contentSteps(change),
  ]);
  if (outcome.ok) return "inserted";
  const [same] = await database.read("SELECT 1 AS one FROM volumes WHERE id = ?", [id]);
  if (same) return "exists";
  const sources = source ? 1 : 0;
  if (outcome.failed === 0) return "no_app";
  if (outcome.failed <= sources) return "no_source";
  return outcome.failed === sources + 1 ? "limit" : "zone_taken";
}

/** Locks the source, so that it is not deleted before the operation is written. */
function sourceSteps(source: { snapshot_id?: string; volume_id?: string } | undefined): Step[] {
  if (source?.snapshot_id !== undefined) {
    const sql = "UPDATE volume_snapshots SET status = status WHERE id = ? AND status = 'created'";
    return [{ sql, args: [source.snapshot_id], rows: 1 }];
  }
  if (source?.volume_id !== undefined) {
    const sql = "UPDATE volumes SET revision = revision + 1 WHERE id = ? AND state IN ('created', 'extending')";
    return [{ sql, args: [source.volume_id], rows: 1 }];
  }
  return [];
}

function contentSteps(change: Change): Step[] {
  const { add_operations = [], put_operations = [], remove_operations = [] } = change;
  const { add_snapshots = [], put_snapshots = [], unfill = false, volume } = change;
  const fillers = "DELETE FROM volume_operations WHERE volume_id = ? AND kind IN ('restore', 'fork')";
  return [
    ...(unfill ? [{ sql: fillers, args: [volume.id] }] : []),
    ...remove_operations.map(
      (id): Step => ({ sql: "DELETE FROM volume_operations WHERE id = ?", args: [id], rows: 1 }),
    ),
    ...put_operations.map(
      ({ id, tries }): Step => ({
        sql: "UPDATE volume_operations SET tries = ? WHERE id = ?",
        args: [tries, id],
        rows: 1,
      }),
    ),
    ...add_operations.map(insertOperation),
    ...add_snapshots.map(insertSnapshot),
    ...put_snapshots.map(updateSnapshot),
  ];
}

async function growing(database: Database, host_ids: readonly string[]): Promise<Growing[]> {
  const rows = await database.read<VolumeRow & { config: string }>(
    `SELECT ${VOLUME}, c.config FROM volumes v JOIN machines m ON m.id = v.attached_machine_id
     JOIN machine_versions c ON c.machine_id = m.id AND c.instance_id = m.instance_id
     WHERE v.host_id IN (${placeholders(host_ids)}) AND v.state = 'created' AND c.config LIKE '%extend_threshold_percent%'`,
    host_ids,
  );
  return rows.flatMap(({ config, ...row }): Growing[] => {
    const [mount] = (JSON.parse(config) as MachineConfig).mounts ?? [];
    const { extend_threshold_percent, size_gb_limit } = mount ?? {};
    const volume = toVolume(row);
    const add_size_gb = growthStep(mount ?? {}, volume.size_gb);
    if (!extend_threshold_percent || !add_size_gb) return [];
    return [{ volume, extend_threshold_percent, add_size_gb, size_gb_limit: size_gb_limit || undefined }];
  });
}

async function finishSnapshot(database: Database, snapshot: Snapshot, packs: readonly string[]): Promise<boolean> {
  const steps: Step[] = [updateSnapshot(snapshot)];
  for (let at = 0; at < packs.length; at += PACKS_PER_STEP) {
    const some = packs.slice(at, at + PACKS_PER_STEP);
    steps.push({
      sql: `INSERT INTO snapshot_packs (pack, snapshot_id) VALUES ${some.map(() => "(?, ?)").join(", ")}`,
      args: some.flatMap((pack) => [pack, snapshot.id]),
    });
  }
  return (await database.write(steps)).ok;
}

async function forgetSnapshot(database: Database, id: string): Promise<string[] | false> {
  const outcome = await database.write([
    // Locks first, so that the next step sees all dependants.
    { sql: "UPDATE volume_snapshots SET status = status WHERE id = ?", args: [id] },
    { sql: "DELETE FROM snapshot_packs WHERE snapshot_id = ? RETURNING pack", args: [id] },
    { sql: `SELECT 1 AS needed FROM volume_snapshots s WHERE s.id = ? AND (${NEEDED})`, args: [id], rows: 0 },
    { sql: "DELETE FROM volume_snapshots WHERE id = ?", args: [id] },
  ]);
  if (!outcome.ok) return false;
  const packs = (outcome.returned[1] ?? []).map((row) => String(row["pack"]));
  const rows = await database.read<{ pack: string }>("SELECT DISTINCT pack FROM snapshot_packs");
  const kept = new Set(rows.map(({ pack }) => pack));
  return packs.filter((pack) => !kept.has(pack));
}
