/** Constructs the parts of the volumes module. */

import type { Clock } from "#core/clock.ts";
import { randomIds } from "#core/ids.ts";
import type { Log } from "#core/log.ts";
import type { Notifier } from "#core/notifier.ts";
import type { ObjectStore } from "#core/objects.ts";
import type { Sealer } from "#core/sealer.ts";
import type { HostService } from "#hosts/service.ts";
import type { VolumeDisk } from "./disk.ts";
import { VolumeExecutor } from "./executor.ts";
import { Garbage } from "./garbage.ts";
import { VolumeKeys } from "./keys.ts";
import { VOLUME_LIMITS } from "./limits.ts";
import { Locks } from "./locks.ts";
import type { MountedVolume, VolumeMounts } from "./mounts.ts";
import { VolumeResponses } from "./responses.ts";
import { type Grown, VolumeScheduler } from "./scheduler.ts";
import { VolumeService } from "./service.ts";
import { SnapshotService } from "./snapshots.ts";
import type { VolumeStore } from "./store.ts";
import type { Volume } from "./types.ts";
import { VolumeWriter } from "./writer.ts";

export interface VolumeModuleParts {
  store: VolumeStore;
  hosts: HostService;
  disk: VolumeDisk;
  objects: ObjectStore;
  sealer: Sealer;
  clock: Clock;
  log: Log;
  undelete_ms: number;
  /** Whether all hosts share the object store, so that volumes can move. */
  movable?: boolean;
  /** Set when several processes share one database. */
  notifier?: Notifier;
  /** Called after automatic growth. */
  grown?: (grown: Grown) => Promise<void>;
}

export class VolumeModule implements VolumeMounts {
  readonly volumes: VolumeService;
  readonly snapshots: SnapshotService;
  readonly executor: VolumeExecutor;
  readonly scheduler: VolumeScheduler;
  readonly garbage: Garbage;
  readonly responses: VolumeResponses;
  readonly parts: VolumeModuleParts;
  readonly #keys: VolumeKeys;
  readonly #locks = new Locks();
  readonly #writer: VolumeWriter;

  constructor(parts: VolumeModuleParts) {
    const { store, hosts, disk, objects, sealer, clock, log, undelete_ms } = parts;
    this.parts = parts;
    const keys = new VolumeKeys(sealer);
    const host_ids = hosts.own;
    const writer = new VolumeWriter({ store, clock });
    const executor = new VolumeExecutor({
      host_ids,
      store,
      disk,
      objects,
      keys,
      locks: this.#locks,
      writer,
      clock,
      log,
      ...(parts.notifier ? { notifier: parts.notifier } : {}),
    });
    this.#keys = keys;
    this.#writer = writer;
    this.executor = executor;
    this.volumes = new VolumeService({ store, writer, executor, hosts, disk, keys, clock, undelete_ms });
    this.snapshots = new SnapshotService({ store, writer, executor, keys, objects, clock });
    this.garbage = new Garbage({ host_ids, store, disk, objects, snapshots: this.snapshots, clock });
    this.responses = new VolumeResponses({ disk, keys, hosts, executor });
    const { volumes, snapshots, garbage } = this;
    this.scheduler = new VolumeScheduler({
      host_ids,
      store,
      disk,
      keys,
      volumes,
      snapshots,
      garbage,
      clock,
      log,
      grown: parts.grown,
    });
  }

  async start(): Promise<void> {
    await this.parts.disk.start();
    await this.executor.start();
    this.scheduler.start();
  }

  async close(): Promise<void> {
    await this.scheduler.close();
    await this.executor.close();
    await this.parts.disk.close();
  }

  /** Where a volume is, for placing its machine. */
  async locate(volume_id: string) {
    const volume = await this.parts.store.find(volume_id);
    return volume && volume.state !== "destroyed" ? placeOf(volume) : undefined;
  }

  async named(app_id: string, name: string) {
    const volumes = await this.parts.store.list(app_id, {});
    return volumes.filter((volume) => volume.name === name).map(placeOf);
  }

  get movable(): boolean {
    return this.parts.movable ?? false;
  }

  /**
   * Starts moving a volume to its machine's host; if that is not possible now, it happens when the machine starts
   * there.
   */
  async follow(volume_id: string, host_id: string): Promise<void> {
    const { log, clock } = this.parts;
    try {
      await this.volumes.move(volume_id, host_id, randomIds(clock));
    } catch (error) {
      log.info({ error, volume: volume_id, host: host_id }, "a volume follows its machine later");
    }
  }

  /** Resolves when a volume is on this host and ready, or cannot be; `mount` reports why. */
  async migrate(volume_id: string, host_id: string, signal: AbortSignal, extend?: () => void): Promise<void> {
    const { store, clock } = this.parts;
    for (;;) {
      const volume = await store.find(volume_id);
      const here = volume?.host_id === host_id;
      if (!volume || !this.movable || volume.state === "failed" || volume.state === "destroyed") return;
      if (here && volume.state !== "moving" && volume.state !== "restoring") return;
      if (!here) await this.follow(volume_id, host_id);
      extend?.();
      await clock.sleep(VOLUME_LIMITS.look_ms, signal);
    }
  }

  /** Mounts a volume; one that could not grow online grows now. */
  async mount(volume_id: string): Promise<MountedVolume> {
    const { store, disk, hosts } = this.parts;
    return await this.#locks.with([volume_id], async () => {
      const volume = await store.find(volume_id);
      if (!volume || volume.state === "destroyed") throw new Error(`volume ${volume_id} no longer exists`);
      if (volume.state === "moving" || volume.state === "restoring" || !hosts.own.includes(volume.host_id))
        throw new Error(`volume ${volume_id} is ${volume.state} on host ${volume.host_id}`);
      const mounted = await disk.mount(this.#keys.open(volume));
      if (volume.needs_restart) await this.#writer.change(volume_id, () => ({ set: { needs_restart: false } }));
      return mounted;
    });
  }

  async unmount(volume_id: string): Promise<void> {
    const { store, disk } = this.parts;
    await this.#locks.with([volume_id], async () => {
      const volume = await store.find(volume_id);
      if (!volume) return;
      const opened = this.#keys.open(volume);
      const usage = await disk.usage(opened).catch(() => undefined);
      await disk.unmount(opened);
      // Stores usage that only a mounted file system can report.
      if (usage) await this.#writer.change(volume_id, () => ({ set: { usage } }));
    });
  }

  /** Data for the volume metrics. */
  async measurements() {
    const { store, hosts } = this.parts;
    const volumes = (await store.all(hosts.own)).filter(({ state }) => state !== "destroyed");
    return await Promise.all(volumes.map((volume) => this.responses.measure(volume)));
  }
}

function placeOf({ id, app_id, name, size_gb, encryption, region, host_id, attached_machine_id, state }: Volume) {
  const unready = state === "created" ? {} : { unready: `it is ${state}` };
  const encrypted = encryption !== null;
  return { id, app_id, name, size_gb, encrypted, region, host_id, attached_machine_id, ...unready };
}
