import { mkdir, rmdir, statfs } from "node:fs/promises";
import { join } from "node:path";
import {
  type DiskCapabilities,
  type DiskVolume,
  GIB,
  type ImageReader,
  type ImageWriter,
  type Inventory,
  type VolumeDisk,
} from "#volumes/disk.ts";
import { VOLUME_LIMITS } from "#volumes/limits.ts";
import type { MountedVolume } from "#volumes/mounts.ts";
import type { Usage } from "#volumes/types.ts";
import { growMounted, growUnmounted, makeExt4, quiet, readExt4 } from "./ext4.ts";
import { Images, withWriter } from "./images.ts";
import { thaw, whileFrozen } from "./kernel.ts";
import { DATA, LAYERS, type Layer, layerOf, unmountSoon } from "./layers.ts";
import { mountAt, mounts } from "./mountinfo.ts";
import { closePool, direct, hasPool, openPool, type PoolChoice } from "./pool.ts";
import { type Probed, probeEncryption } from "./probe.ts";
import { run } from "./programs.ts";

interface LoopParts {
  /** Root of all files. */
  dir: string;
  pool?: PoolChoice;
}

interface Prepared {
  images: Images;
  /** Why its files do not share blocks, if so. */
  reason: string;
  probed: Probed;
}

/**
 * Volumes as sparse files with ext4, mounted through loop devices. A loop device is detached with its mount, so none is
 * left behind; mounts are read from the kernel, never remembered.
 */
export class LoopDisk implements VolumeDisk {
  readonly name = "loop";
  readonly #root: string;
  readonly #choice: PoolChoice;
  #prepared: Promise<Prepared> | undefined;

  constructor({ dir, pool = "auto" }: LoopParts) {
    this.#root = dir;
    this.#choice = pool;
  }

  async capabilities(): Promise<DiskCapabilities> {
    const { images, reason, probed } = await this.#prepare();
    return {
      encryption: probed.encryption,
      encryption_reason: probed.reason,
      reflink: images.reflink,
      reflink_reason: images.reflink ? "" : reason,
    };
  }

  async start(): Promise<void> {
    if (!hasPool(this.#root)) return;
    await this.#prepare();
    // A file system that was frozen when we were killed thaws by itself, unless its helper was killed too.
    const ours = (await mounts()).filter(({ point, type }) => type === "ext4" && point.startsWith(this.#mountOf("")));
    for (const { point } of ours) await thaw(point);
  }

  /** Prepared on first use: a platform without volumes needs no pool. */
  #prepare(): Promise<Prepared> {
    this.#prepared ??= this.#make().catch((error: unknown) => {
      this.#prepared = undefined;
      throw error;
    });
    return this.#prepared;
  }

  async #make(): Promise<Prepared> {
    const { dir, reason } = await openPool(this.#root, this.#choice);
    const images = new Images(dir);
    await images.start();
    await mkdir(join(this.#template, DATA), { recursive: true });
    await mkdir(join(this.#root, "mnt"), { recursive: true, mode: 0o700 });
    return { images, reason, probed: await probeEncryption(this.#root, this.#template) };
  }

  async #images(): Promise<Images> {
    return (await this.#prepare()).images;
  }

  async close(): Promise<void> {
    await closePool(this.#root);
  }

  async create(volume: DiskVolume): Promise<void> {
    const { id, size_gb, key } = volume;
    const layer = layerOf(volume.encryption);
    await (await this.#images()).make("volumes", id, size_gb * GIB, async (file) => {
      await this.#onDevice(layer, file, volume, (target) => makeExt4(target, this.#template, layer.features));
      const { prepare } = layer;
      if (!prepare || !key) return;
      const mount = this.#mountOf(`${id}.new`);
      await this.#mounted(file, mount, () => prepare(mount, key));
    });
  }

  async fork(source: DiskVolume, target: DiskVolume): Promise<void> {
    await (await this.#images()).make("volumes", target.id, 0, async (file) => {
      await this.#copy(source, file);
    });
  }

  async fill({ id, size_gb }: DiskVolume, write: (image: ImageWriter) => Promise<void>): Promise<void> {
    await (await this.#images()).make("volumes", id, size_gb * GIB, (file) => withWriter(file, write));
  }

  async grow(volume: DiskVolume): Promise<"grown" | "at_next_mount"> {
    const { id, size_gb, key } = volume;
    const mount = await mountAt(this.#mountOf(id));
    await (await this.#images()).enlarge("volumes", id, size_gb * GIB);
    if (!mount) {
      await this.#growUnmounted(volume);
      return "grown";
    }
    const layer = layerOf(volume.encryption);
    await run("losetup", ["--set-capacity", await this.#loopOf(id)]);
    if (key) await layer.resize?.(id, key);
    return (await growMounted(mount.source)) ? "grown" : "at_next_mount";
  }

  async remove(volume_id: string): Promise<void> {
    const point = this.#mountOf(volume_id);
    // With every kind of encryption, because the kind may be unknown by now.
    for (const { close } of Object.values(LAYERS)) await close?.(point);
    if (await mountAt(point)) await unmountSoon(point);
    for (const { unmap } of Object.values(LAYERS)) await unmap?.(volume_id);
    await this.#unmountAndRemove(point);
    await (await this.#images()).remove("volumes", volume_id);
  }

  async mount(volume: DiskVolume): Promise<MountedVolume> {
    const { id, key, size_gb } = volume;
    const [point, layer] = [this.#mountOf(id), layerOf(volume.encryption)];
    if (!(await mountAt(point))) {
      await (await this.#images()).enlarge("volumes", id, size_gb * GIB);
      await this.#growUnmounted(volume);
      await mkdir(point, { recursive: true, mode: 0o700 });
      const image = (await this.#images()).path("volumes", id);
      if (layer.map && key) {
        const loop = await this.#attach(image);
        await mountExt4(await layer.map(loop, id, key), point);
        // In use now, so this sets autoclear: it is detached with its last user.
        await run("losetup", ["--detach", loop]);
      } else await mountExt4(image, point);
    }
    const dir = await layer.open(point, key);
    const mounted = await mountAt(point);
    return { dir, ...(mounted ? { device: mounted.source } : {}) };
  }

  async unmount({ id, encryption }: DiskVolume): Promise<void> {
    const [point, layer] = [this.#mountOf(id), layerOf(encryption)];
    await layer.close?.(point);
    if (await mountAt(point)) await (layer.close ? unmountSoon(point) : run("umount", [point]));
    await layer.unmap?.(id);
    await this.#unmountAndRemove(point);
  }

  /**
   * Removing the directory also unmounts it in other mount namespaces: a machine that was starting has a copy of all
   * mounts, which would keep the file system, and its unwritten data, alive.
   */
  async #unmountAndRemove(point: string): Promise<void> {
    await rmdir(point).catch(() => {});
  }

  async takePoint(volume: DiskVolume, point_id: string): Promise<{ frozen_ms: number }> {
    let frozen_ms = 0;
    await (await this.#images()).make("points", point_id, 0, async (file) => {
      frozen_ms = await this.#copy(volume, file);
    });
    return { frozen_ms };
  }

  async openPoint(point_id: string): Promise<ImageReader> {
    return await (await this.#images()).reader("points", point_id);
  }

  async dropPoint(point_id: string): Promise<void> {
    await (await this.#images()).remove("points", point_id);
  }

  async usage({ id, encryption }: DiskVolume): Promise<Usage | undefined> {
    const point = this.#mountOf(id);
    if (await mountAt(point)) {
      const { blocks, bsize, bfree, bavail } = await statfs(point);
      return { blocks, block_size: bsize, blocks_free: bfree, blocks_avail: bavail };
    }
    if (encryption === "dm-crypt") return undefined;
    const found = await readExt4((await this.#images()).path("volumes", id));
    if (!found) return undefined;
    const { bytes: _, ...usage } = found;
    return usage;
  }

  async inventory(): Promise<Inventory> {
    const nothing = { volumes: new Map<string, number>(), points: new Map<string, number>() };
    await mkdir(this.#root, { recursive: true, mode: 0o700 });
    const found = hasPool(this.#root)
      ? await (await this.#images()).inventory()
      : { ...nothing, free_bytes: Number.POSITIVE_INFINITY };
    // A pool appears as large as its disk; the disk's own free space is what counts.
    const { bsize, blocks, bavail } = await statfs(this.#root);
    return { ...found, total_bytes: bsize * blocks, free_bytes: Math.min(found.free_bytes, bsize * bavail) };
  }

  get #template(): string {
    return join(this.#root, "template");
  }

  #mountOf(id: string): string {
    return join(this.#root, "mnt", id);
  }

  /** Copies the current content; a mounted file system is synced, frozen and thawed. */
  async #copy({ id }: DiskVolume, to: string): Promise<number> {
    const images = await this.#images();
    const [point, from] = [this.#mountOf(id), images.path("volumes", id)];
    const copy = (): Promise<void> => images.copy(from, to);
    if (!(await mountAt(point))) {
      await copy();
      return 0;
    }
    // Syncs most data before freezing.
    await run("sync", ["--file-system", point]);
    const { frozen_ms } = await whileFrozen(point, VOLUME_LIMITS.freeze_ms, copy);
    return frozen_ms;
  }

  /** Grows a file system that is smaller than its volume because it could not grow online. */
  async #growUnmounted(volume: DiskVolume): Promise<void> {
    const { id, size_gb, encryption } = volume;
    const image = (await this.#images()).path("volumes", id);
    await quiet(image);
    const layer = layerOf(encryption);
    if (layer.map) return await this.#onDevice(layer, image, volume, growUnmounted);
    const found = await readExt4(image);
    if (found && found.bytes < size_gb * GIB) await growUnmounted(image);
  }

  /** Runs `work` on the file itself, or on a temporary device over it. */
  async #onDevice(
    { map, unmap }: Layer,
    file: string,
    { id, key }: DiskVolume,
    work: (target: string) => Promise<void>,
  ): Promise<void> {
    if (!map || !key) return await work(file);
    const loop = await this.#attach(file);
    try {
      await work(await map(loop, id, key));
    } finally {
      await unmap?.(id);
      await run("losetup", ["--detach", loop]);
    }
  }

  async #mounted(file: string, point: string, work: () => Promise<void>): Promise<void> {
    await mkdir(point, { recursive: true });
    if (await mountAt(point)) await run("umount", [point]);
    await mountExt4(file, point);
    try {
      await work();
    } finally {
      await run("umount", [point]);
      await this.#unmountAndRemove(point);
    }
  }

  async #attach(file: string): Promise<string> {
    return (await run("losetup", ["--find", "--show", "--direct-io=on", file])).trim();
  }

  async #loopOf(id: string): Promise<string> {
    const image = (await this.#images()).path("volumes", id);
    const [first = ""] = (await run("losetup", ["--noheadings", "--output", "NAME", "--associated", image])).split(
      "\n",
    );
    return first.trim();
  }
}

/**
 * `discard` frees deleted blocks, so the image stays small. The others matter when the pool's disk is full and a block
 * cannot be written: ext4 reports the error but keeps the block marked as unwritten, so later, successful writes to it
 * are lost after the next mount. With `dioread_lock` a block is marked before it is written; with `data_err=abort` no
 * more writes are accepted until the next mount.
 */
const OPTIONS = "nosuid,nodev,discard,errors=remount-ro,data_err=abort,dioread_lock";

async function mountExt4(device: string, point: string): Promise<void> {
  const loop = device.startsWith("/dev/") ? "" : "loop,";
  await run("mount", ["-t", "ext4", "-o", `${loop}${OPTIONS}`, device, point]);
  if (loop) await direct(point);
}
