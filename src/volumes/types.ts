import type { VolumeState } from "./states.ts";

/** How a volume is kept secret at rest: what the host can do, best first. */
export const ENCRYPTIONS = ["dm-crypt", "fscrypt", "gocryptfs", "sim"] as const;
export type Encryption = (typeof ENCRYPTIONS)[number];

/** A volume as it is kept. Times are milliseconds since 1970. */
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
  /** Null is none: what is written is on the disk as it is. */
  encryption: Encryption | null;
  /** The volume's own key, sealed. */
  sealed_key: Uint8Array | null;
  created_at: number;

  /** Goes up by one with every change: who read 7 may write only while it is 7. */
  revision: number;
  updated_at: number;
  state: VolumeState;
  size_gb: number;
  /** Written in the same change as the machine that mounts it. */
  attached_machine_id: string | null;
  /** The machine that runs on it does not see its new size yet. */
  needs_restart: boolean;
  auto_backup_enabled: boolean;
  snapshot_retention: number;
  /** When the next daily snapshot is due. */
  next_backup_at: number | null;
  /** The newest snapshot that its content was built from or kept in: the next one stores only what differs. */
  base_snapshot_id: string | null;
  deleted_at: number | null;
  /** When its data go; until then a deleted volume can be taken back. */
  purge_at: number | null;
  /** Why it failed. */
  error: string | null;
  /** As last seen, for when it cannot be asked. */
  usage: Usage | null;
}

/** The file system's own count. */
export interface Usage {
  blocks: number;
  block_size: number;
  blocks_free: number;
  blocks_avail: number;
}

export type OperationKind = "create" | "restore" | "fork" | "extend" | "snapshot" | "move" | "clear";

/** Something to be done to a volume: written with the state it leads to, carried out afterwards. */
export interface Operation {
  id: string;
  volume_id: string;
  host_id: string;
  /** Operations of one lane of one volume are carried out in this order. */
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
  /** Of an extend: where it goes back to when it cannot. */
  from_gb?: number;
  /** Of a move: where it goes. */
  to?: Pick<Volume, "host_id" | "region" | "zone">;
  /** Of a restore at the end of a move: what lies there under its name is of an earlier stay. */
  anew?: boolean;
}

/**
 * Storing a snapshot takes long and changes nothing of the volume, so it is not in the way of anything else; nor is
 * clearing away what a volume left on a host.
 */
export const queueOf = ({ volume_id, kind }: Pick<Operation, "volume_id" | "kind">): string =>
  kind === "snapshot" || kind === "clear" ? `${volume_id}:snapshots` : volume_id;

export type SnapshotStatus = "waiting" | "running" | "created" | "failed";

/** It is still to be stored, or is being stored. */
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
  /** The size of the volume at that moment. */
  volume_gb: number;
  fstype: string;
  encryption: Encryption | null;
  /** The volume's key, sealed for this snapshot: it outlives the volume. */
  sealed_key: Uint8Array | null;
  /** The snapshot whose blocks it shares; that one stays while this is being stored. */
  base_snapshot_id: string | null;
  /** Bytes of data in it, and what of them had to be stored. */
  size: number;
  stored: number;
  digest: string;
}
