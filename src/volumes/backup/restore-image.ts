import { hash } from "node:crypto";
import { promisify } from "node:util";
import { zstdDecompress } from "node:zlib";
import { messageOf } from "#core/assert.ts";
import type { ObjectStore } from "#core/objects.ts";
import type { ImageWriter } from "../disk.ts";
import { VOLUME_LIMITS } from "../limits.ts";
import { decodeManifest, digestOf, type Entry, type Manifest } from "./manifest.ts";
import { manifestKey, packKey } from "./names.ts";

/** The stored snapshot is corrupt or incomplete. A retry does not help. */
export class DamagedSnapshot extends Error {
  override readonly name = "DamagedSnapshot";
}

const expand = promisify(zstdDecompress);

/** Reads the manifest; with a digest, verifies it. */
export async function readManifest(objects: ObjectStore, snapshot_id: string, digest?: string): Promise<Manifest> {
  const bytes = await objects.get(manifestKey(snapshot_id));
  if (!bytes) throw new DamagedSnapshot(`snapshot ${snapshot_id} is not in ${objects.place}`);
  const manifest = decoded(bytes, `the list of blocks of snapshot ${snapshot_id} in ${objects.place}`);
  if (digest !== undefined && digestOf(manifest) !== digest) {
    throw new DamagedSnapshot(`the list of blocks of snapshot ${snapshot_id} in ${objects.place} was changed`);
  }
  return manifest;
}

function decoded(bytes: Uint8Array, what: string): Manifest {
  try {
    return decodeManifest(bytes);
  } catch (cause) {
    throw new DamagedSnapshot(`${what} cannot be read: ${messageOf(cause)}`, { cause });
  }
}

export interface RestoreJob {
  manifest: Manifest;
  objects: ObjectStore;
  image: ImageWriter;
  signal: AbortSignal;
  onProgress(done_bytes: number, total_bytes: number): void;
}

/** Writes every block of the snapshot, verifying its hash first. */
export async function restoreImage({ manifest, objects, image, signal, onProgress }: RestoreJob): Promise<void> {
  const { packs, entries } = manifest;
  const total = entries.reduce((sum, { length }) => sum + length, 0);
  const byPack = [...Map.groupBy(entries, ({ pack }) => pack)];
  let done = 0;
  let next = 0;
  const worker = async (): Promise<void> => {
    for (let own = byPack[next++]; own; own = byPack[next++]) {
      const [number, blocks] = own;
      signal.throwIfAborted();
      const pack = packs[number];
      const bytes = pack && (await fetchPack(objects, pack.name, blocks));
      if (!bytes) throw new DamagedSnapshot(`pack ${pack?.name ?? number} is missing in ${objects.place}`);
      for (const entry of blocks) {
        await image.write(entry.index * manifest.block_bytes, await blockIn(bytes, entry, objects.place));
        done += entry.length;
      }
      onProgress(done, total);
    }
  };
  await Promise.all(Array.from({ length: VOLUME_LIMITS.packs_parallel }, worker));
}

/** Fetches the needed range of the pack: from the first to the last block. */
async function fetchPack(
  objects: ObjectStore,
  name: string,
  blocks: readonly Entry[],
): Promise<{ offset: number; bytes: Buffer } | undefined> {
  let offset = Number.POSITIVE_INFINITY;
  let end = 0;
  for (const entry of blocks) {
    offset = Math.min(offset, entry.offset);
    end = Math.max(end, entry.offset + entry.length);
  }
  const bytes = await objects.get(packKey(name), { offset, length: end - offset });
  return bytes && { offset, bytes };
}

async function blockIn(part: { offset: number; bytes: Buffer }, entry: Entry, place: string): Promise<Buffer> {
  const { offset, length, compressed, hash: name, index } = entry;
  const stored = part.bytes.subarray(offset - part.offset, offset - part.offset + length);
  const block = compressed ? await expand(stored).catch(() => undefined) : stored;
  if (!block || hash("sha256", block) !== name) throw new DamagedSnapshot(`block ${index} in ${place} is damaged`);
  return block;
}
