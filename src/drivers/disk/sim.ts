import { createCipheriv, createDecipheriv } from "node:crypto";
import { assert } from "#core/assert.ts";
import { type DiskVolume, GIB, type ImageWriter, type VolumeDisk } from "#volumes/disk.ts";
import type { MountedVolume } from "#volumes/mounts.ts";
import type { Usage } from "#volumes/types.ts";
import { Images, withWriter } from "./images.ts";

/** Values of an empty file system. */
const BLOCK = 4096;
const SECTOR = 4096;

/**
 * A disk for simulated machines: volumes are sparse files without a file system or mounts, so no root is needed.
 * Snapshots, forks, restores and encryption (AES-256-XTS by sector) are real.
 */
export class SimDisk implements VolumeDisk {
  readonly name = "sim";
  readonly #images: Images;
  readonly #mounted = new Set<string>();
  /** Whether a mounted volume can grow; tests may disable it, as some kernels do. */
  online_growth = true;

  constructor(dir: string) {
    this.#images = new Images(dir);
  }

  async capabilities() {
    const { reflink } = this.#images;
    return {
      encryption: "sim" as const,
      encryption_reason: "",
      reflink,
      reflink_reason: reflink ? "" : "the file system of the data dir cannot share blocks",
    };
  }

  start(): Promise<void> {
    return this.#images.start();
  }

  async create({ id, size_gb }: DiskVolume): Promise<void> {
    await this.#images.make("volumes", id, size_gb * GIB, async () => {});
  }

  async fork(source: DiskVolume, target: DiskVolume): Promise<void> {
    const from = this.#images.path("volumes", source.id);
    await this.#images.make("volumes", target.id, 0, (file) => this.#images.copy(from, file));
    await this.#images.enlarge("volumes", target.id, target.size_gb * GIB);
  }

  async fill({ id, size_gb }: DiskVolume, write: (image: ImageWriter) => Promise<void>): Promise<void> {
    await this.#images.make("volumes", id, size_gb * GIB, (file) => withWriter(file, write));
  }

  async grow({ id, size_gb }: DiskVolume): Promise<"grown" | "at_next_mount"> {
    if (this.#mounted.has(id) && !this.online_growth) return "at_next_mount";
    await this.#images.enlarge("volumes", id, size_gb * GIB);
    return "grown";
  }

  async remove(volume_id: string): Promise<void> {
    this.#mounted.delete(volume_id);
    await this.#images.remove("volumes", volume_id);
  }

  async mount({ id, size_gb }: DiskVolume): Promise<MountedVolume> {
    await this.#images.enlarge("volumes", id, size_gb * GIB);
    this.#mounted.add(id);
    return { dir: this.#images.path("volumes", id) };
  }

  async unmount({ id }: DiskVolume): Promise<void> {
    this.#mounted.delete(id);
  }

  async takePoint({ id }: DiskVolume, point_id: string): Promise<{ frozen_ms: number }> {
    const from = this.#images.path("volumes", id);
    await this.#images.make("points", point_id, 0, (file) => this.#images.copy(from, file));
    return { frozen_ms: 0 };
  }

  openPoint(point_id: string) {
    return this.#images.reader("points", point_id);
  }

  dropPoint(point_id: string): Promise<void> {
    return this.#images.remove("points", point_id);
  }

  async usage({ id }: DiskVolume): Promise<Usage> {
    const { bytes, taken } = await this.#images.size("volumes", id);
    const [blocks, free] = [bytes / BLOCK, Math.max(0, Math.floor((bytes - taken) / BLOCK))];
    return { blocks, block_size: BLOCK, blocks_free: free, blocks_avail: free };
  }

  inventory() {
    return this.#images.inventory();
  }

  async close(): Promise<void> {}

  /** Writes whole sectors, as a program in a machine would; for tests. */
  async poke({ id, key }: DiskVolume, sector: number, bytes: Uint8Array): Promise<void> {
    assert(bytes.length % SECTOR === 0, "whole sectors are written");
    const cipher = key && ((n: number) => createCipheriv("aes-256-xts", key, tweak(n)));
    const out = cipher ? sectors(bytes, sector, (one, n) => cipher(n).update(one)) : bytes;
    await withWriter(this.#images.path("volumes", id), (image) => image.write(sector * SECTOR, out));
  }

  async peek({ id, key }: DiskVolume, sector: number, count: number): Promise<Buffer> {
    await using reader = await this.#images.reader("volumes", id);
    const bytes = await reader.read(sector * SECTOR, count * SECTOR);
    if (!key) return bytes;
    return sectors(bytes, sector, (one, n) => createDecipheriv("aes-256-xts", key, tweak(n)).update(one));
  }
}

function sectors(bytes: Uint8Array, first: number, change: (one: Uint8Array, n: number) => Buffer): Buffer {
  const parts: Buffer[] = [];
  for (let at = 0; at < bytes.length; at += SECTOR) {
    parts.push(change(bytes.subarray(at, at + SECTOR), first + at / SECTOR));
  }
  return Buffer.concat(parts);
}

function tweak(sector: number): Buffer {
  const bytes = Buffer.alloc(16);
  bytes.writeBigUInt64LE(BigInt(sector));
  return bytes;
}
