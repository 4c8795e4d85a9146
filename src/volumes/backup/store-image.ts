import { hash } from "node:crypto";
import { promisify } from "node:util";
import { constants, zstdCompress } from "node:zlib";
import type { ObjectStore } from "#core/objects.ts";
import type { Extent, ImageReader } from "../disk.ts";
import { VOLUME_LIMITS } from "../limits.ts";
import { digestOf, type Entry, encodeManifest, type Manifest } from "./manifest.ts";
import { manifestKey, packKey } from "./names.ts";

export interface Stored {
  /** Bytes of data in the snapshot, and of new packs. */
  size: number;
  stored: number;
  digest: string;
  packs: string[];
}

export interface StoreJob {
  snapshot_id: string;
  image: ImageReader;
  objects: ObjectStore;
  /** The previous snapshot, whose blocks are not stored again. */
  base: Manifest | undefined;
  /** Encrypted data does not compress. */
  compress: boolean;
  signal: AbortSignal;
  onProgress(done_bytes: number, total_bytes: number): void;
}

const { block_bytes, pack_bytes, pack_share, packs_parallel } = VOLUME_LIMITS;
/** Blocks per read: few calls, and short turns of the event loop. */
const READ_BLOCKS = 16;
const ZEROS = Buffer.alloc(block_bytes);
const squeeze = promisify(zstdCompress);
const FAST = { params: { [constants.ZSTD_c_compressionLevel]: 1 } };

/** Stores the blocks that the base does not have, then the manifest. Idempotent: names are the same. */
export async function storeImage(job: StoreJob): Promise<Stored> {
  const { image, objects, snapshot_id, signal, onProgress } = job;
  const known = knownBlocks(job.base);
  const packer = new Packer(job);
  const entries: Entry[] = [];
  const total = image.extents.reduce((sum, { length }) => sum + length, 0);
  let size = 0;
  let done = 0;
  for await (const batch of batchesOf(image)) {
    signal.throwIfAborted();
    const blocks = batch
      .filter(({ bytes }) => !isZero(bytes))
      .map((one) => ({ ...one, hash: hash("sha256", one.bytes) }));
    // New blocks are compressed in parallel on other threads, then placed in order.
    const fresh = await packer.prepare(blocks.filter((block) => !known.has(block.hash)));
    for (const { index, bytes, hash: name } of blocks) {
      const place = known.get(name) ?? (await packer.add(fresh.get(name) ?? { kept: bytes, compressed: false }));
      known.set(name, place);
      size += bytes.length;
      entries.push({ index, hash: name, ...place, pack: packer.numberOf(place.pack) });
    }
    done += batch.reduce((sum, { bytes }) => sum + bytes.length, 0);
    onProgress(Math.min(done, total), total);
  }
  await packer.end();
  const manifest: Manifest = { image_bytes: image.size, block_bytes, packs: packer.used(), entries };
  await objects.put(manifestKey(snapshot_id), encodeManifest(manifest));
  return {
    size,
    stored: packer.stored,
    digest: digestOf(manifest),
    packs: manifest.packs.map(({ name }) => name),
  };
}

/** Location of a block: pack name, offset and length. */
type Place = Omit<Entry, "index" | "hash" | "pack"> & { pack: Pack };
interface Pack {
  name: string;
  bytes: number;
}

interface Kept {
  kept: Buffer;
  compressed: boolean;
}

const isZero = (bytes: Buffer): boolean => bytes.equals(ZEROS.subarray(0, bytes.length));

/**
 * Blocks that need not be stored again, by hash. Packs with little live data are left out: their blocks are stored
 * again, so that they can be deleted with old snapshots and waste stays bounded.
 */
function knownBlocks(base: Manifest | undefined): Map<string, Place> {
  const known = new Map<string, Place>();
  if (!base || base.block_bytes !== block_bytes) return known;
  const needed = base.packs.map(() => 0);
  for (const { pack, length } of base.entries) needed[pack] = (needed[pack] ?? 0) + length;
  for (const { pack: number, offset, length, compressed, hash: name } of base.entries) {
    const pack = base.packs[number];
    if (!pack || (needed[number] ?? 0) < pack.bytes * pack_share) continue;
    known.set(name, { pack, offset, length, compressed });
  }
  return known;
}

/** Collects new blocks into packs, and uploads each while the next one fills. */
class Packer {
  stored = 0;
  readonly #job: StoreJob;
  readonly #numbers = new Map<Pack, number>();
  readonly #storing = new Set<Promise<void>>();
  #parts: Buffer[] = [];
  #pack: Pack;
  #packs = 0;
  #failed: { error: unknown } | undefined;

  constructor(job: StoreJob) {
    this.#job = job;
    this.#pack = this.#next();
  }

  /** Compressed blocks, by hash. */
  async prepare(blocks: readonly { hash: string; bytes: Buffer }[]): Promise<Map<string, Kept>> {
    const { compress } = this.#job;
    const work = blocks.map(async ({ hash: name, bytes }): Promise<[string, Kept]> => {
      const small = compress ? await squeeze(bytes, FAST) : bytes;
      const compressed = small.length < bytes.length;
      return [name, { kept: compressed ? small : bytes, compressed }];
    });
    return new Map(await Promise.all(work));
  }

  async add({ kept, compressed }: Kept): Promise<Place> {
    if (this.#pack.bytes + kept.length > pack_bytes) await this.#flush();
    const place = { pack: this.#pack, offset: this.#pack.bytes, length: kept.length, compressed };
    this.#parts.push(kept);
    this.#pack.bytes += kept.length;
    return place;
  }

  /** Index of the pack in the manifest, which lists only used packs. */
  numberOf(pack: Pack): number {
    const known = this.#numbers.get(pack) ?? this.#numbers.size;
    this.#numbers.set(pack, known);
    return known;
  }

  used(): Manifest["packs"] {
    return [...this.#numbers.keys()].map(({ name, bytes }) => ({ name, bytes }));
  }

  async end(): Promise<void> {
    if (this.#pack.bytes > 0) await this.#flush();
    await Promise.all(this.#storing);
    if (this.#failed) throw this.#failed.error;
  }

  async #flush(): Promise<void> {
    const { objects } = this.#job;
    const { name, bytes } = this.#pack;
    const body = Buffer.concat(this.#parts);
    const storing = objects.put(packKey(name), body).then(
      () => void this.#storing.delete(storing),
      (error: unknown) => {
        this.#failed ??= { error };
        this.#storing.delete(storing);
      },
    );
    this.#storing.add(storing);
    this.stored += bytes;
    this.#parts = [];
    this.#pack = this.#next();
    while (this.#storing.size >= packs_parallel) await Promise.race(this.#storing);
    if (this.#failed) throw this.#failed.error;
  }

  #next(): Pack {
    return { name: `${this.#job.snapshot_id}-${this.#packs++}`, bytes: 0 };
  }
}

/** All blocks that may have data, in order and once, in batches. */
async function* batchesOf(image: ImageReader): AsyncGenerator<{ index: number; bytes: Buffer }[]> {
  for (const { first, count } of runsOf(image.extents)) {
    for (let at = first; at < first + count; at += READ_BLOCKS) {
      const blocks = Math.min(READ_BLOCKS, first + count - at);
      const bytes = await image.read(at * block_bytes, blocks * block_bytes);
      yield Array.from({ length: Math.ceil(bytes.length / block_bytes) }, (_, i) => ({
        index: at + i,
        bytes: bytes.subarray(i * block_bytes, (i + 1) * block_bytes),
      }));
    }
  }
}

/** Extents as runs of whole blocks, merged where they share a block. */
function runsOf(extents: readonly Extent[]): { first: number; count: number }[] {
  const runs: { first: number; count: number }[] = [];
  for (const { offset, length } of extents) {
    const first = Math.floor(offset / block_bytes);
    const end = Math.ceil((offset + length) / block_bytes);
    const last = runs.at(-1);
    if (last && first <= last.first + last.count) last.count = Math.max(last.count, end - last.first);
    else runs.push({ first, count: end - first });
  }
  return runs;
}
