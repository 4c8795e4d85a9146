/**
 * The work of each kind of volume operation. Every step is idempotent, because a crash can happen after any line; the
 * result is recorded together with the end of the operation.
 */
import { assert } from "#core/assert.ts";
import type { Clock } from "#core/clock.ts";
import type { ObjectStore } from "#core/objects.ts";
import type { Manifest } from "./backup/manifest.ts";
import { DamagedSnapshot, readManifest, restoreImage } from "./backup/restore-image.ts";
import { storeImage } from "./backup/store-image.ts";
import type { VolumeDisk } from "./disk.ts";
import type { VolumeKeys } from "./keys.ts";
import type { Locks } from "./locks.ts";
import type { VolumeStore } from "./store.ts";
import { isUnfinished, type Operation, type OperationKind, type Snapshot, type Volume } from "./types.ts";
import { type Decision, transition } from "./writer.ts";

export interface WorkParts {
  store: VolumeStore;
  disk: VolumeDisk;
  objects: ObjectStore;
  keys: VolumeKeys;
  locks: Locks;
  clock: Clock;
}

export interface Job {
  volume: Volume;
  operation: Operation;
  signal: AbortSignal;
  onProgress(done_bytes: number, total_bytes: number): void;
}

/** The resulting change of the volume. */
export type Outcome = (volume: Volume) => Decision;

export const WORK: Record<OperationKind, (parts: WorkParts, job: Job) => Promise<Outcome>> = {
  create,
  restore,
  fork,
  extend,
  snapshot,
  move,
  clear,
};

const done = (volume: Volume): Decision => ({ set: { state: transition(volume, "done"), error: null } });

async function create({ disk, keys, locks }: WorkParts, { volume }: Job): Promise<Outcome> {
  await locks.with([volume.id], () => disk.create(keys.open(volume)));
  return done;
}

async function fork({ store, disk, keys, locks }: WorkParts, { volume, operation }: Job): Promise<Outcome> {
  const source = await store.find(operation.payload.source_volume_id ?? "");
  if (!source) throw new DamagedSnapshot(`volume ${operation.payload.source_volume_id} no longer exists`);
  await locks.with([source.id, volume.id], () => disk.fork(keys.open(source), keys.open(volume)));
  await locks.with([volume.id], () => disk.grow(keys.open(volume)));
  return done;
}

async function restore(parts: WorkParts, { volume, operation, signal, onProgress }: Job): Promise<Outcome> {
  const { store, disk, objects, keys, locks } = parts;
  const snapshot = await store.findSnapshot(operation.payload.snapshot_id ?? "");
  if (!snapshot) throw new DamagedSnapshot(`snapshot ${operation.payload.snapshot_id} no longer exists`);
  const manifest = await readManifest(objects, snapshot.id, snapshot.digest);
  await locks.with([volume.id], async () => {
    const own = keys.open(volume);
    if (operation.payload.anew) await disk.remove(volume.id);
    await disk.fill(own, (image) => restoreImage({ manifest, objects, image, signal, onProgress }));
    await disk.grow(own);
  });
  return done;
}

async function extend({ disk, keys, locks }: WorkParts, { volume }: Job): Promise<Outcome> {
  const grown = await locks.with([volume.id], () => disk.grow(keys.open(volume)));
  return (now) => ({ set: { state: transition(now, "done"), needs_restart: grown === "at_next_mount", error: null } });
}

async function snapshot(parts: WorkParts, { volume, operation, signal, onProgress }: Job): Promise<Outcome> {
  const { store, disk, keys, locks, objects, clock } = parts;
  const snapshot = await store.findSnapshot(operation.payload.snapshot_id ?? "");
  if (snapshot && isUnfinished(snapshot)) {
    await locks.with([volume.id], () => disk.takePoint(keys.open(volume), snapshot.id));
    const { base, running } = await pinBase(parts, volume, snapshot);
    await using image = await disk.openPoint(snapshot.id);
    const compress = snapshot.encryption === null;
    const job = { snapshot_id: snapshot.id, image, objects, base, compress, signal, onProgress };
    const { packs, size, stored, digest } = await storeImage(job);
    const now = clock.now();
    const finished: Snapshot = {
      ...running,
      status: "created",
      finished_at: now,
      updated_at: now,
      message: "",
      size,
      stored,
      digest,
    };
    assert(await store.finishSnapshot(finished, packs), "no other process finishes a snapshot");
  }
  await disk.dropPoint(operation.payload.snapshot_id ?? "");
  return () => ({ set: snapshot ? { base_snapshot_id: snapshot.id } : {} });
}

/**
 * Moves a volume: its content is stored as a snapshot, and the write that records it assigns the new host. Before that
 * it is complete here, after that in the store.
 */
async function move(parts: WorkParts, job: Job): Promise<Outcome> {
  const { id, volume_id, host_id, position, payload } = job.operation;
  const { to, snapshot_id = "" } = payload;
  assert(to, "a move goes somewhere");
  await snapshot(parts, job);
  // A stored snapshot could be deleted, and the local data is removed once the volume belongs to the other host.
  if ((await parts.store.findSnapshot(snapshot_id))?.status !== "created")
    throw new DamagedSnapshot(`snapshot ${snapshot_id} was deleted before the volume could move`);
  const next = { volume_id, tries: 0 };
  const fill: Operation = {
    ...next,
    id: `${id}-fill`,
    host_id: to.host_id,
    position: position + 1,
    kind: "restore",
    payload: { snapshot_id, anew: true },
  };
  const rest: Operation = { ...next, id: `${id}-clear`, host_id, position: position + 2, kind: "clear", payload: {} };
  return (volume) => ({
    set: { ...to, state: transition(volume, "stored"), base_snapshot_id: snapshot_id },
    add_operations: [fill, rest],
  });
}

/** Removes what a moved volume left here, unless it has returned. */
async function clear({ store, disk, locks }: WorkParts, { volume: { id }, operation }: Job): Promise<Outcome> {
  await locks.with([id], async () => {
    if ((await store.find(id))?.host_id !== operation.host_id) await disk.remove(id);
  });
  return () => ({});
}

/** Keeps the base until this snapshot is stored; it is read again after that was recorded. */
async function pinBase(
  { store, objects, clock }: WorkParts,
  { base_snapshot_id }: Volume,
  snapshot: Snapshot,
): Promise<{ base: Manifest | undefined; running: Snapshot }> {
  const running: Snapshot = { ...snapshot, status: "running", base_snapshot_id, updated_at: clock.now() };
  await store.putSnapshot(running);
  const before = base_snapshot_id === null ? undefined : await store.findSnapshot(base_snapshot_id);
  if (before?.status !== "created") return { base: undefined, running };
  // A damaged base is not used: this snapshot stores everything.
  const base = await readManifest(objects, before.id, before.digest).catch((error: unknown) => {
    if (error instanceof DamagedSnapshot) return undefined;
    throw error;
  });
  return { base, running };
}
