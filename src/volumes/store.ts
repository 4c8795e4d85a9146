import type { AppRange } from "#apps/store.ts";
import type { PageRequest } from "#core/list-page.ts";
import type { Operation, Snapshot, Volume } from "./types.ts";

/** One atomic change of one volume. */
export interface Change {
  /** The volume after the change; `revision` is already incremented. */
  volume: Volume;
  add_operations?: readonly Operation[];
  put_operations?: readonly Operation[];
  remove_operations?: readonly string[];
  /** Cancels operations that would fill it. */
  unfill?: boolean;
  add_snapshots?: readonly Snapshot[];
  put_snapshots?: readonly Snapshot[];
  /** Only if the volume is unattached, or its machine is being destroyed. */
  only_detached?: boolean;
}

export type Inserted =
  | "inserted"
  | "exists"
  | "no_app"
  | "limit"
  /** Its zone already has a volume of the app with this name. */
  | "zone_taken"
  /** Its source snapshot or volume was deleted. */
  | "no_source";

/** Uniqueness within a zone: by name in the app, by app, or none. */
export type UniqueZone = "name" | "app" | false;

/** A volume with automatic growth: the rule of its machine's mount. */
export interface Growing {
  volume: Volume;
  extend_threshold_percent: number;
  /** Growth step at its current size. */
  add_size_gb: number;
  size_gb_limit: number | undefined;
}

export interface VolumeFilter {
  include_deleted?: boolean;
  /** Starts after this `created_at` and id; all when absent. */
  page?: PageRequest<readonly [created_at: number, id: string]>;
}

/**
 * Stores volumes, unfinished operations and snapshots; decides nothing, reads no clock. Implemented in stores/, tested
 * by `store.suite.ts`.
 */
export interface VolumeStore {
  find(id: string): Promise<Volume | undefined>;
  /** Whether its machine is being destroyed, which always ends with the volume detached. */
  detaching(id: string): Promise<boolean>;
  /** The volume and its unfinished operations in order, read together. */
  findWork(id: string): Promise<{ volume: Volume; operations: Operation[] } | undefined>;
  /** Ordered by creation; deleted ones only on request. */
  list(app_id: string, filter: VolumeFilter): Promise<Volume[]>;
  /** Volumes of all apps, including deleted ones. */
  all(host_ids: readonly string[]): Promise<Volume[]>;
  count(app_id: string): Promise<number>;
  /** Counts by app id, for apps that have any. */
  counts(range: AppRange): Promise<ReadonlyMap<string, number>>;
  /** Zones in which the app has a volume of this name, or any. */
  zones(app_id: string, name: string | undefined): Promise<string[]>;

  /** `unique_zone`: refuses a zone with another volume. `source`: must still exist. */
  insert(
    change: Change,
    guard: { limit: number; unique_zone: UniqueZone; source?: { snapshot_id?: string; volume_id?: string } },
  ): Promise<Inserted>;
  /** Returns false, writing nothing, when the volume changed since it was read. */
  commit(change: Change): Promise<boolean>;
  /**
   * Deletes a deleted volume's row and key; its snapshots stay. Returns false when it is not deleted, or an operation
   * or a machine still needs it.
   */
  forget(id: string): Promise<boolean>;

  /** Volumes that have unfinished operations. */
  unfinished(host_ids: readonly string[]): Promise<string[]>;
  /** Volumes due for a daily snapshot or for purging, and those of deleted apps. */
  due(host_ids: readonly string[], now: number): Promise<{ backup: Volume[]; purge: Volume[]; orphans: Volume[] }>;
  /** Volumes whose machine's config enables growth. */
  growing(host_ids: readonly string[]): Promise<Growing[]>;

  findSnapshot(id: string): Promise<Snapshot | undefined>;
  /** Newest first, including those of a deleted volume. */
  snapshots(volume_id: string): Promise<Snapshot[]>;
  allSnapshots(): Promise<Snapshot[]>;
  /** Stores progress, only while it is being stored. */
  putSnapshot(snapshot: Snapshot): Promise<void>;
  /** Records a stored snapshot and its packs; returns false when it was deleted or is not being stored. */
  finishSnapshot(snapshot: Snapshot, packs: readonly string[]): Promise<boolean>;
  /** Expired snapshots that are not the base of another. */
  expired(now: number): Promise<Snapshot[]>;
  /** Deletes it; returns false while it is a base. Returns packs that are no longer needed. */
  forgetSnapshot(id: string): Promise<string[] | false>;
  /**
   * Identifies this database: data in a bucket is stored under it, so that two platforms on one bucket do not delete
   * each other's. The first offered value stays.
   */
  identity(fresh: string): Promise<string>;
  /** All packs that snapshots need. */
  packs(): Promise<Set<string>>;
}
