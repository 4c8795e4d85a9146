/**
 * Stores imported images as they were sent, packed, for the other processes of the platform: in the shared object
 * store, or on the disk of the process that imported them, which serves them (remote-layer-store.ts). Fetched data is
 * trusted no more than a registry's: documents and layers that do not match their digests are refused.
 */
import { createReadStream, createWriteStream } from "node:fs";
import { open, rm } from "node:fs/promises";
import { pipeline } from "node:stream/promises";
import { createZstdCompress } from "node:zlib";
import { fail } from "#core/errors.ts";
import type { ObjectStore } from "#core/objects.ts";
import { digestOf, hexOf } from "./blobs.ts";
import { type Layout, temporary } from "./files.ts";

export interface PackedLayer {
  diff_id: string;
  /** Absent when it is here, and stored already. */
  file?: string;
  start: number;
  length: number;
  /** Digest in the original manifest. Absent when the manifest is our own. */
  digest?: string;
  /** The `diff_id` was claimed, not computed by us. */
  claimed?: boolean;
}

/** An image: its documents, and the files and positions of its layers. */
export interface Packed {
  /** The document of its digest first, then its dependencies. */
  documents: readonly Buffer[];
  layers: readonly PackedLayer[];
}

/** Read access for other processes: documents and layers, by digest. */
export interface LayerStoreReader {
  document(digest: string): Promise<Buffer | undefined>;
  /** Writes the packed layer to a file. Returns false, without a file, when there is none. */
  layer(diff_id: string, file: string, signal: AbortSignal): Promise<boolean>;
  remove(digests: Unneeded): Promise<void>;
}

export interface Unneeded {
  documents: readonly string[];
  layers: readonly string[];
}

const documentKey = (digest: string): string => `documents/${hexOf(digest)}`;
const layerKey = (diff_id: string): string => `layers/${hexOf(diff_id)}`;

export class LayerStore implements LayerStoreReader {
  readonly #objects: ObjectStore;
  readonly #layout: Layout;

  constructor(objects: ObjectStore, layout: Layout) {
    this.#objects = objects;
    this.#layout = layout;
  }

  async document(digest: string): Promise<Buffer | undefined> {
    return await this.#objects.get(documentKey(digest));
  }

  async layer(diff_id: string, file: string): Promise<boolean> {
    return await this.#objects.getFile(layerKey(diff_id), file);
  }

  /** Whether all of these layers are stored. */
  async has(diff_ids: readonly string[]): Promise<boolean> {
    const found = await Promise.all(diff_ids.map((diff_id) => this.#objects.head(layerKey(diff_id))));
    return found.every(Boolean);
  }

  /** Stores the image's layers. Existing ones stay. */
  async put({ documents, layers }: Packed, signal: AbortSignal): Promise<void> {
    for (const { file, diff_id, ...place } of layers) {
      const key = layerKey(diff_id);
      if (await this.#objects.head(key)) continue;
      if (file === undefined) refuseRemoved(diff_id);
      await this.#putLayer(key, file, place, signal);
    }
    for (const bytes of documents) await this.#objects.put(documentKey(digestOf(bytes)), bytes);
  }

  async remove({ documents, layers }: Unneeded): Promise<void> {
    await this.#objects.delete([...documents.map(documentKey), ...layers.map(layerKey)]);
  }

  async #putLayer(
    key: string,
    file: string,
    { start, length }: { start: number; length: number },
    signal: AbortSignal,
  ): Promise<void> {
    // Checked first, so that a stream that cannot be opened has an error handler.
    const plain = await isPlain(file, start);
    const packed = temporary(this.#layout, "packed");
    const source = createReadStream(file, { start, end: Math.max(start, start + length - 1) });
    const into = createWriteStream(packed, { mode: 0o600, flags: "wx" });
    try {
      if (plain) await pipeline(source, createZstdCompress(), into, { signal });
      else await pipeline(source, into, { signal });
      await this.#objects.put(key, { file: packed });
    } finally {
      await rm(packed, { force: true });
    }
  }
}

/** The image that a layer was taken from is gone. */
export function refuseRemoved(diff_id: string): never {
  fail("image_not_found", `layer ${diff_id} was removed meanwhile, with the image that it is from`, {
    hint: "do it again",
  });
}

/** Whether it is neither gzip nor zstd: those are stored unchanged. */
async function isPlain(file: string, start: number): Promise<boolean> {
  const handle = await open(file, "r");
  try {
    const { buffer } = await handle.read(Buffer.alloc(4), 0, 4, start);
    return !/^(1f8b|28b52ffd)/.test(buffer.toString("hex"));
  } finally {
    await handle.close();
  }
}
