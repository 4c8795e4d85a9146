import type { PageRequest } from "#core/list-page.ts";
import type { Operation, Snapshot, Volume } from "./types.ts";

/** One change of one volume: everything in it happens, or nothing. */
export interface Change {
  /** The volume as it shall be; `revision` is already the next one. */
  volume: Volume;
  add_operations?: readonly Operation[];
  put_operations?: readonly Operation[];
  remove_operations?: readonly string[];
  /** Takes back every operation that would fill it. */
  unfill?: boolean;
  add_snapshots?: readonly Snapshot[];
  put_snapshots?: readonly Snapshot[];
  /** Only if the volume is attached to nothing, or to a machine that is being destroyed; written while it still is. */
  only_detached?: boolean;
}

export type Inserted =
  | "inserted"
  | "exists"
  | "no_app"
  | "limit"
  /** Its zone must have no other volume of the app with this name, and has one. */
  | "zone_taken"
  /** The snapshot or the volume it is made from is gone. */
  | "no_source";

/** What the zone of a volume must not have: another of its name in the app, any other of the app, or no matter. */
export type UniqueZone = "name" | "app" | false;

/** Why a volume should grow: what its machine's mount says. */
export interface Growing {
  volume: Volume;
  extend_threshold_percent: number;
  /** By how much it grows at a time, at its size now. */
  add_size_gb: number;
  size_gb_limit: number | undefined;
}

export interface VolumeFilter {
  include_deleted?: boolean;
  /** After a volume's `created_at` and id; all when left out. */
  page?: PageRequest<readonly [created_at: number, id: string]>;
}

/**
 * Keeps and finds volumes, their unfinished operations and snapshots; decides nothing, reads no clock.
 * Implemented in stores/, examined by `store.suite.ts`.
 */
export interface VolumeStore {
  find(id: string): Promise<Volume | undefined>;
  /** Whether the machine that mounts it is being destroyed: that cannot be undone, and ends with the volume detached. */
  detaching(id: string): Promise<boolean>;
  /** The volume and its unfinished operations in order, both as of one moment. */
  findWork(id: string): Promise<{ volume: Volume; operations: Operation[] } | undefined>;
  /** By creation; deleted ones only when asked for. */
  list(app_id: string, filter: VolumeFilter): Promise<Volume[]>;
  /** Of every app, with deleted ones. */
  all(host_ids: readonly string[]): Promise<Volume[]>;
  count(app_id: string): Promise<number>;
  /** The same of the organization's apps that have any, or of some of them, by the app's id. */
  counts(org_id: string, app_ids?: readonly string[]): Promise<ReadonlyMap<string, number>>;
  /** In which zones the app has a volume of this name, or any. */
  zones(app_id: string, name: string | undefined): Promise<string[]>;

  /** `unique_zone`: not where another volume is. `source`: only while it is there. */
  insert(
    change: Change,
    guard: { limit: number; unique_zone: UniqueZone; source?: { snapshot_id?: string; volume_id?: string } },
  ): Promise<Inserted>;
  /** False when somebody changed the volume since it was read. Nothing was written then. */
  commit(change: Change): Promise<boolean>;
  /**
   * Forgets a deleted volume, and with it its key; its snapshots stay. False when it is not deleted, or an
   * operation or a machine still needs it.
   */
  forget(id: string): Promise<boolean>;

  /** Volumes that have unfinished operations. */
  unfinished(host_ids: readonly string[]): Promise<string[]>;
  /** Whose daily snapshot is due, whose data are to go, and those of apps that are gone. */
  due(host_ids: readonly string[], now: number): Promise<{ backup: Volume[]; purge: Volume[]; orphans: Volume[] }>;
  /** Volumes whose machine's config lets them grow. */
  growing(host_ids: readonly string[]): Promise<Growing[]>;

  findSnapshot(id: string): Promise<Snapshot | undefined>;
  /** Newest first; those of a deleted volume too. */
  snapshots(volume_id: string): Promise<Snapshot[]>;
  allSnapshots(): Promise<Snapshot[]>;
  /** How far it is; only while it is being stored. */
  putSnapshot(snapshot: Snapshot): Promise<void>;
  /** The snapshot is stored, and these packs hold it: false when it is gone, or no longer being stored. */
  finishSnapshot(snapshot: Snapshot, packs: readonly string[]): Promise<boolean>;
  /** Past their time, and no other is being built on them. */
  expired(now: number): Promise<Snapshot[]>;
  /** Forgets it; false while another is being built on it. Answers which packs nothing needs any more. */
  forgetSnapshot(id: string): Promise<string[] | false>;
  /**
   * Names this database among others: what is kept elsewhere is kept under it, so that two platforms with one
   * bucket never take each other's things for waste. The first one that is offered stays.
   */
  identity(fresh: string): Promise<string>;
  /** Every pack that a snapshot needs. */
  packs(): Promise<Set<string>>;
}
