import { type Clock, isoTime } from "#core/clock.ts";
import type { ObjectStore } from "#core/objects.ts";
import { MANIFESTS, PACKS, packOwner } from "./backup/names.ts";
import type { VolumeDisk } from "./disk.ts";
import type { SnapshotService } from "./snapshots.ts";
import type { VolumeStore } from "./store.ts";
import { isUnfinished, type Snapshot, type Volume } from "./types.ts";

interface GarbageParts {
  host_ids: readonly string[];
  store: VolumeStore;
  disk: VolumeDisk;
  objects: ObjectStore;
  snapshots: SnapshotService;
  clock: Clock;
}

/** Unused data that takes disk space, and why it is unused. */
export interface Waste {
  kind: "expired snapshot" | "deleted volume" | "unknown image" | "unknown point" | "unknown object";
  id: string;
  bytes: number;
  reason: string;
}

interface CollectOptions {
  /** Also expired snapshots, by default; not while the clock is unreliable. */
  expired?: boolean;
  /** Also deleted volumes that could still be restored. */
  deleted: boolean;
  /**
   * Also unknown images and objects. Only on explicit request: after the loss of a database they are the only remaining
   * data.
   */
  unknown: boolean;
}

interface Finding extends Waste {
  remove(): Promise<void>;
}

const wasteOf = ({ kind, id, bytes, reason }: Finding): Waste => ({ kind, id, bytes, reason });

/** Finds unused data, reports it, and deletes it on request. */
export class Garbage {
  readonly #parts: GarbageParts;

  constructor(parts: GarbageParts) {
    this.#parts = parts;
  }

  /** Lists what would be deleted. */
  async preview(input: CollectOptions): Promise<Waste[]> {
    return (await this.#find(input)).map(wasteOf);
  }

  async collect(input: CollectOptions): Promise<Waste[]> {
    const found = await this.#find(input);
    for (const { remove } of found) await remove();
    return found.map(wasteOf);
  }

  async #find(input: CollectOptions): Promise<Finding[]> {
    const { store, disk, objects, host_ids, clock } = this.#parts;
    // Data is listed before the database is read, because new data is recorded before it exists.
    const packs = input.unknown ? await objects.list(PACKS) : [];
    const manifests = input.unknown ? await objects.list(MANIFESTS) : [];
    const inventory = await disk.inventory();
    const [volumes, snapshots, needed] = await Promise.all([store.all(host_ids), store.allSnapshots(), store.packs()]);
    const expired = (input.expired ?? true) ? await store.expired(clock.now()) : [];
    return [
      ...expired.map((snapshot) => this.#expired(snapshot)),
      ...(input.deleted ? this.#deleted(volumes, inventory.volumes) : []),
      ...this.#unknownPoints(snapshots, inventory.points),
      ...(input.unknown ? this.#unknownImages(volumes, inventory.volumes) : []),
      ...(input.unknown ? this.#unknownObjects(snapshots, needed, [...packs, ...manifests]) : []),
    ];
  }

  #expired(snapshot: Snapshot): Finding {
    const { snapshots } = this.#parts;
    const { id, stored, retention_days } = snapshot;
    const reason = `older than the ${retention_days} days it was to be kept`;
    return {
      kind: "expired snapshot",
      id,
      bytes: stored,
      reason,
      remove: async () => void (await snapshots.forget(snapshot)),
    };
  }

  /**
   * Purges a deleted volume: its row and key first, then the data. So a full disk is no obstacle, and a crash leaves
   * only an unknown image.
   */
  async purge({ id }: Volume): Promise<void> {
    const { store, disk } = this.#parts;
    if (await store.forget(id)) await disk.remove(id);
  }

  #deleted(volumes: readonly Volume[], sizes: ReadonlyMap<string, number>): Finding[] {
    return volumes
      .filter(({ state }) => state === "destroyed")
      .map((volume) => ({
        kind: "deleted volume",
        id: volume.id,
        bytes: sizes.get(volume.id) ?? 0,
        reason: `deleted; could be taken back until ${isoTime(volume.purge_at ?? 0)}`,
        remove: () => this.purge(volume),
      }));
  }

  #unknownImages(volumes: readonly Volume[], images: ReadonlyMap<string, number>): Finding[] {
    const { disk } = this.#parts;
    const ids = new Set(volumes.map(({ id }) => id));
    return [...images]
      .filter(([id]) => !ids.has(id))
      .map(([id, bytes]) => {
        const reason = "no volume has this id";
        return { kind: "unknown image", id, bytes, reason, remove: () => disk.remove(id) };
      });
  }

  /** Points are copies being stored: those without an unfinished snapshot are unused. */
  #unknownPoints(snapshots: readonly Snapshot[], points: ReadonlyMap<string, number>): Finding[] {
    const { disk } = this.#parts;
    const taken = new Set(snapshots.filter(isUnfinished).map(({ id }) => id));
    return [...points]
      .filter(([id]) => !taken.has(id))
      .map(([id, bytes]) => {
        const reason = "no snapshot is being stored from it";
        return { kind: "unknown point", id, bytes, reason, remove: () => disk.dropPoint(id) };
      });
  }

  #unknownObjects(
    snapshots: readonly Snapshot[],
    needed: ReadonlySet<string>,
    there: readonly { key: string; size: number }[],
  ): Finding[] {
    const { objects } = this.#parts;
    const known = new Set(snapshots.map(({ id }) => id));
    const unfinished = new Set(snapshots.filter(isUnfinished).map(({ id }) => id));
    const isWaste = (key: string): boolean => {
      if (key.startsWith(MANIFESTS)) return !known.has(key.slice(MANIFESTS.length));
      const pack = key.slice(PACKS.length);
      return !needed.has(pack) && !unfinished.has(packOwner(pack));
    };
    return there
      .filter(({ key }) => isWaste(key))
      .map(({ key, size }) => ({
        kind: "unknown object",
        id: key,
        bytes: size,
        reason: "no snapshot needs it",
        remove: () => objects.delete([key]),
      }));
  }
}
