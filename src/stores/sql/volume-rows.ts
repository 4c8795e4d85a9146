import type { Operation, Snapshot, Volume } from "#volumes/types.ts";
import type { Step, Value } from "../database.ts";
import { toValue } from "./arguments.ts";

/** Columns set at creation, and columns that every change writes. Objects are JSON. */
const FIXED = [
  "id",
  "org_id",
  "app_id",
  "app_name",
  "name",
  "fstype",
  "encryption",
  "sealed_key",
  "created_at",
] as const;
/** Without `attached_machine_id`, which is written with the machine that mounts the volume. */
const CHANGING = [
  "revision",
  "updated_at",
  "region",
  "zone",
  "host_id",
  "state",
  "size_gb",
  "needs_restart",
  "auto_backup_enabled",
  "snapshot_retention",
  "next_backup_at",
  "base_snapshot_id",
  "deleted_at",
  "purge_at",
  "error",
  "usage",
] as const;
const SNAPSHOT_COLUMNS = [
  "id",
  "volume_id",
  "org_id",
  "app_id",
  "region",
  "kind",
  "status",
  "message",
  "created_at",
  "updated_at",
  "finished_at",
  "retention_days",
  "expires_at",
  "volume_gb",
  "fstype",
  "encryption",
  "sealed_key",
  "base_snapshot_id",
  "size",
  "stored",
  "digest",
] as const;

const COLUMNS = [...FIXED, "attached_machine_id", ...CHANGING] as const;
const list = (columns: readonly string[], table: string): string => columns.map((one) => `${table}.${one}`).join(", ");
export const VOLUME = list(COLUMNS, "v");
export const SNAPSHOT = list(SNAPSHOT_COLUMNS, "s");

export type VolumeRow = Omit<Volume, "needs_restart" | "auto_backup_enabled" | "usage"> & {
  needs_restart: number;
  auto_backup_enabled: number;
  usage: string | null;
};

export const toVolume = (row: VolumeRow): Volume => ({
  ...row,
  needs_restart: row.needs_restart === 1,
  auto_backup_enabled: row.auto_backup_enabled === 1,
  usage: row.usage === null ? null : (JSON.parse(row.usage) as Volume["usage"]),
});

export const insertVolume = (volume: Volume, guard: string, args: readonly Value[]): Step => ({
  sql: `INSERT INTO volumes (${COLUMNS.join(", ")}) SELECT ${COLUMNS.map(() => "?").join(", ")}
        WHERE ${guard} ON CONFLICT DO NOTHING`,
  args: [...COLUMNS.map((column) => toValue(volume[column])), ...args],
  rows: 1,
});

export const updateVolume = (volume: Volume, guard: string): Step => ({
  sql: `UPDATE volumes SET ${CHANGING.map((column) => `${column} = ?`).join(", ")} WHERE id = ? AND revision = ?${guard}`,
  args: [...CHANGING.map((column) => toValue(volume[column])), volume.id, volume.revision - 1],
  rows: 1,
});

export const insertSnapshot = (snapshot: Snapshot): Step => ({
  sql: `INSERT INTO volume_snapshots (${SNAPSHOT_COLUMNS.join(", ")}) VALUES (${SNAPSHOT_COLUMNS.map(() => "?").join(", ")})`,
  args: SNAPSHOT_COLUMNS.map((column) => toValue(snapshot[column])),
});

const PROGRESS = [
  "status",
  "message",
  "updated_at",
  "finished_at",
  "base_snapshot_id",
  "size",
  "stored",
  "digest",
] as const;

/** Only while it is being stored; a stored one is immutable. */
export const updateSnapshot = (snapshot: Snapshot): Step => ({
  sql: `UPDATE volume_snapshots SET ${PROGRESS.map((column) => `${column} = ?`).join(", ")}
        WHERE id = ? AND status IN ('waiting', 'running')`,
  args: [...PROGRESS.map((column) => toValue(snapshot[column])), snapshot.id],
  rows: 1,
});

/** The operation joined to a volume; all null when it has none. */
export interface WorkRow {
  o_id: string | null;
  /** Not always the volume's host: orphans are removed where they are. */
  o_host_id: string;
  o_position: number;
  o_kind: Operation["kind"];
  o_payload: string;
  o_tries: number;
}

export function operationIn(row: VolumeRow & WorkRow): Operation[] {
  if (row.o_id === null) return [];
  return [
    {
      id: row.o_id,
      volume_id: row.id,
      host_id: row.o_host_id,
      position: row.o_position,
      kind: row.o_kind,
      payload: JSON.parse(row.o_payload) as Operation["payload"],
      tries: row.o_tries,
    },
  ];
}

export const insertOperation = (operation: Operation): Step => {
  const { id, volume_id, host_id, position, kind, payload, tries } = operation;
  // Its source is kept until it has finished.
  const reads = kind === "restore" ? payload.snapshot_id : payload.source_volume_id;
  return {
    sql: `INSERT INTO volume_operations (id, volume_id, host_id, position, kind, payload, reads, tries)
          VALUES (?, ?, ?, ?, ?, ?, ?, ?)`,
    args: [id, volume_id, host_id, position, kind, JSON.stringify(payload), reads ?? null, tries],
  };
};
