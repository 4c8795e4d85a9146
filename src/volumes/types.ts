import type { VolumeState } from "./states.ts";

/** Encryption at rest, best first. */
export const ENCRYPTIONS = ["dm-crypt", "fscrypt", "gocryptfs", "sim"] as const;
export type Encryption = (typeof ENCRYPTIONS)[number];

/** A volume as stored. Times are milliseconds since 1970. */
export interface Volume {
  id: string;
  org_id: string;
  app_id: string;
  app_name: string;
  name: string;
  region: string;
  zone: string;
  host_id: string;
  fstype: string;
  /** Null means unencrypted. */
  encryption: Encryption | null;
  /** The volume's own key, sealed. */
  sealed_key: Uint8Array | null;
  created_at: number;

  /** Incremented with every change, for optimistic locking. */
  revision: number;
  updated_at: number;
  state: VolumeState;
  size_gb: number;
  /** Written together with the machine that mounts it. */
  attached_machine_id: string | null;
  /** The running machine does not see the new size yet. */
  needs_restart: boolean;
  auto_backup_enabled: boolean;
  snapshot_retention: number;
  /** Next daily snapshot. */
  next_backup_at: number | null;
  /** The newest snapshot of its content: the next one stores only the difference. */
  base_snapshot_id: string | null;
  deleted_at: number | null;
  /** When its data is purged; until then a deleted volume can be restored. */
  purge_at: number | null;
  /** Why it failed. */
  error: string | null;
  /** Last known usage. */
  usage: Usage | null;
}

/** File system usage. */
export interface Usage {
  blocks: number;
  block_size: number;
  blocks_free: number;
  blocks_avail: number;
}

export type OperationKind = "create" | "restore" | "fork" | "extend" | "snapshot" | "move" | "clear";

/** A queued action on a volume: written with the state it leads to, carried out afterwards. */
export interface Operation {
  id: string;
  volume_id: string;
  host_id: string;
  /** Execution order within one queue of one volume. */
  position: number;
  kind: OperationKind;
  payload: OperationPayload;
  tries: number;
}

export interface OperationPayload {
  /** Of a restore, a snapshot and a move. */
  snapshot_id?: string;
  /** Of a fork. */
  source_volume_id?: string;
  /** Of an extend: the previous size, in case it fails. */
  from_gb?: number;
  /** Of a move: the new place. */
  to?: Pick<Volume, "host_id" | "region" | "zone">;
  /** Of a restore at the end of a move: replaces leftovers of an earlier stay. */
  anew?: boolean;
}

/**
 * Storing a snapshot takes long and does not change the volume, so it has a queue of its own; so has removing orphans.
 */
export const queueOf = ({ volume_id, kind }: Pick<Operation, "volume_id" | "kind">): string =>
  kind === "snapshot" || kind === "clear" ? `${volume_id}:snapshots` : volume_id;

export type SnapshotStatus = "waiting" | "running" | "created" | "failed";

/** Whether it is not stored yet. */
export const isUnfinished = ({ status }: Pick<Snapshot, "status">): boolean =>
  status === "waiting" || status === "running";

export interface Snapshot {
  id: string;
  volume_id: string;
  org_id: string;
  app_id: string;
  region: string;
  kind: "on_demand" | "daily";
  status: SnapshotStatus;
  message: string;
  created_at: number;
  updated_at: number;
  finished_at: number | null;
  retention_days: number;
  expires_at: number;
  /** Size of the volume at that time. */
  volume_gb: number;
  fstype: string;
  encryption: Encryption | null;
  /** The volume's key, sealed for this snapshot, which outlives the volume. */
  sealed_key: Uint8Array | null;
  /** The snapshot whose blocks it shares, kept while this one is being stored. */
  base_snapshot_id: string | null;
  /** Bytes of data, and bytes newly stored. */
  size: number;
  stored: number;
  digest: string;
}
