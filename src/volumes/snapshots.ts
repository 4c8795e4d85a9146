import type { Clock } from "#core/clock.ts";
import { fail } from "#core/errors.ts";
import type { Ids } from "#core/ids.ts";
import type { ObjectStore } from "#core/objects.ts";
import { manifestKey, packKey } from "./backup/names.ts";
import type { VolumeExecutor } from "./executor.ts";
import type { VolumeKeys } from "./keys.ts";
import { VOLUME_LIMITS } from "./limits.ts";
import { refuseState } from "./rules.ts";
import type { VolumeStore } from "./store.ts";
import { isUnfinished, type Snapshot, type Volume } from "./types.ts";
import { queued, type VolumeWriter } from "./writer.ts";

interface SnapshotParts {
  store: VolumeStore;
  writer: VolumeWriter;
  executor: VolumeExecutor;
  keys: VolumeKeys;
  objects: ObjectStore;
  clock: Clock;
}

const DAY_MS = 24 * 3600 * 1000;

/** Creates snapshots on demand and daily, lists and expires them. */
export class SnapshotService {
  readonly #parts: SnapshotParts;

  constructor(parts: SnapshotParts) {
    this.#parts = parts;
  }

  /** Also of a deleted volume while they are kept; not found when the volume never existed. */
  async list(app_id: string, volume_id: string): Promise<Snapshot[]> {
    const { store } = this.#parts;
    const [all, volume] = await Promise.all([store.snapshots(volume_id), store.find(volume_id)]);
    const snapshots = all.filter((one) => one.app_id === app_id);
    if (snapshots.length === 0 && volume?.app_id !== app_id) {
      fail("not_found", `volume not found: ${volume_id}`);
    }
    return snapshots;
  }

  async get(app_id: string, volume_id: string, id: string): Promise<Snapshot> {
    const snapshot = await this.#parts.store.findSnapshot(id);
    if (snapshot?.app_id !== app_id || snapshot.volume_id !== volume_id) fail("not_found", `snapshot not found: ${id}`);
    return snapshot;
  }

  /** Returns once it is recorded; it is taken and stored afterwards. */
  async create(volume_id: string, ids: Ids): Promise<Snapshot> {
    const id = `vs_${ids.short()}`;
    const { store } = this.#parts;
    const before = await store.snapshots(volume_id);
    if (before.length >= VOLUME_LIMITS.snapshots_per_volume) {
      const { snapshots_per_volume } = VOLUME_LIMITS;
      fail("limit_reached", `a volume has at most ${snapshots_per_volume} snapshots (limit snapshots_per_volume)`);
    }
    return await this.#add(volume_id, id, "on_demand", ids);
  }

  /** Takes the daily one, if it is due; missed ones are skipped. */
  async daily({ id }: Volume, ids: Ids): Promise<void> {
    const before = await this.#parts.store.snapshots(id);
    if (before.some(isUnfinished) || before.length >= VOLUME_LIMITS.snapshots_per_volume)
      return await this.#postpone(id);
    await this.#add(id, `vs_${ids.short()}`, "daily", ids);
  }

  async #postpone(id: string): Promise<void> {
    const { writer, clock } = this.#parts;
    const next_backup_at = clock.now() + VOLUME_LIMITS.backup_every_ms;
    await writer.change(id, ({ volume }) => (volume.next_backup_at === null ? undefined : { set: { next_backup_at } }));
  }

  async #add(volume_id: string, id: string, kind: Snapshot["kind"], ids: Ids): Promise<Snapshot> {
    const { writer, keys, clock, executor, store } = this.#parts;
    const now = clock.now();
    await writer.change(volume_id, (work) => {
      const { volume, operations } = work;
      // The same request again, after a crash between write and response.
      if (operations.some(({ payload }) => payload.snapshot_id === id)) return undefined;
      refuseState(volume, volume.state === "created" || volume.state === "extending", "kept in a snapshot");
      const operation = queued(work, "snapshot", { snapshot_id: id }, ids);
      const next = kind === "daily" ? { set: { next_backup_at: now + VOLUME_LIMITS.backup_every_ms } } : {};
      return {
        ...next,
        add_operations: [operation],
        add_snapshots: [blank(volume, { id, kind, now, sealed_key: keys.forSnapshot(id, volume) })],
      };
    });
    executor.wake(volume_id);
    return (await store.findSnapshot(id)) ?? fail("not_found", `snapshot not found: ${id}`);
  }

  /** Deletes it before it expires. Refused while it is the base of another, or a restore reads it. */
  async delete(snapshot: Snapshot): Promise<void> {
    if (isUnfinished(snapshot)) {
      fail("volume_not_ready", `snapshot ${snapshot.id} is still being stored`, { retry_after_s: 5 });
    }
    if (await this.forget(snapshot)) return;
    fail(
      "conflict",
      `snapshot ${snapshot.id} is in use: another snapshot depends on it, or a volume is being restored from it`,
      {
        retry_after_s: 5,
      },
    );
  }

  /** Deletes the row first, then unused packs: a crash in between leaves only waste. */
  async forget({ id }: Snapshot): Promise<boolean> {
    const { store, objects } = this.#parts;
    const packs = await store.forgetSnapshot(id);
    if (packs === false) return false;
    await objects.delete([manifestKey(id), ...packs.map(packKey)]);
    return true;
  }
}

/** A new snapshot record. */
export function blank(
  volume: Volume,
  { id, kind, now, sealed_key }: Pick<Snapshot, "id" | "kind" | "sealed_key"> & { now: number },
): Snapshot {
  const { id: volume_id, org_id, app_id, region, size_gb, fstype, encryption, snapshot_retention } = volume;
  return {
    id,
    volume_id,
    org_id,
    app_id,
    region,
    kind,
    status: "waiting",
    message: "",
    created_at: now,
    updated_at: now,
    finished_at: null,
    retention_days: snapshot_retention,
    expires_at: now + snapshot_retention * DAY_MS,
    volume_gb: size_gb,
    fstype,
    encryption,
    sealed_key,
    base_snapshot_id: null,
    size: 0,
    stored: 0,
    digest: "",
  };
}
