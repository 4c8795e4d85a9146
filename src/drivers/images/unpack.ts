/** Unpacks one layer, or only reads it. Its file calls are synchronous, so it runs in a thread of its own. */
import { createHash, type Hash } from "node:crypto";
import { createReadStream } from "node:fs";
import { pipeline, type Readable, type Transform } from "node:stream";
import { createGunzip, createZstdDecompress } from "node:zlib";
import { syncFileSystem } from "./libc.ts";
import type { ImageLimits } from "./limits.ts";
import { LayerFault } from "./refusal.ts";
import { TarReader } from "./tar.ts";
import { Tree, type TreeFacts } from "./tree.ts";

export interface UnpackTask {
  /** The layer: a whole file, or part of an archive. */
  file: string;
  start: number;
  length: number;
  /** An empty directory; without it the layer is only read and hashed. */
  into?: string | undefined;
  limits: ImageLimits;
}

/** The result of unpacking, with the layer's digests. */
export interface Unpacked extends TreeFacts {
  /** SHA-256 of the uncompressed tar. */
  diff_id: string;
  /** SHA-256 of the received bytes, compressed or not. */
  digest: string;
}

const NOTHING: TreeFacts = { entries: 0, bytes: 0, left_out: 0, opaque_root: false };

export async function unpack({ file, start, length, into, limits }: UnpackTask): Promise<Unpacked> {
  const hash = createHash("sha256");
  const tree = into === undefined ? undefined : new Tree(into, limits);
  const reader = tree && new TarReader(tree, limits);
  let grown = 0;
  let read: Hash | undefined;
  try {
    const { chunks, packed } = await plain(file, start, length);
    read = packed;
    for await (const chunk of chunks) {
      hash.update(chunk);
      grown += chunk.length;
      if (grown > limits.ratio_from_bytes && grown > length * limits.ratio)
        throw new LayerFault(`it grows to more than ${limits.ratio} times its size (limit ratio)`);
      // Twice the size, for headers and padding: a tar of many empty files is mostly that.
      if (grown > limits.tree_bytes * 2) throw new LayerFault("it unpacks to more than limit tree_bytes allows");
      reader?.write(chunk);
    }
    reader?.end();
    tree?.end();
  } finally {
    tree?.abandon();
  }
  if (into !== undefined) syncFileSystem(into);
  const diff_id = sum(hash);
  return { ...(tree?.facts ?? NOTHING), diff_id, digest: read ? sum(read) : diff_id };
}

const sum = (hash: Hash): string => `sha256:${hash.digest("hex")}`;

const MAGIC: readonly [name: string, bytes: Buffer, open: (() => Transform) | undefined][] = [
  ["gzip", Buffer.from("1f8b", "hex"), createGunzip],
  ["zstd", Buffer.from("28b52ffd", "hex"), createZstdDecompress],
  ["bzip2", Buffer.from("425a68", "hex"), undefined],
  ["xz", Buffer.from("fd377a585a00", "hex"), undefined],
];

/** A decompressed layer. */
interface Plain {
  chunks: AsyncIterable<Buffer>;
  /** Hash of the compressed bytes, final when all were read; absent without compression. */
  packed?: Hash;
}

/** Decompresses the layer. The format is detected from its first bytes, because media types are often wrong. */
async function plain(file: string, start: number, length: number): Promise<Plain> {
  if (length === 0) throw new LayerFault("it is empty");
  const source = createReadStream(file, { start, end: start + length - 1, highWaterMark: 256 * 1024 });
  const first = await peek(source);
  const [name, , open] = MAGIC.find(([, bytes]) => first.subarray(0, bytes.length).equals(bytes)) ?? [];
  if (name === undefined) return { chunks: source as AsyncIterable<Buffer> };
  if (!open) {
    source.destroy();
    throw new LayerFault(`it is compressed with ${name}; layers may be gzip, zstd or plain`);
  }
  const packed = createHash("sha256");
  async function* hashed(chunks: AsyncIterable<Buffer>): AsyncIterable<Buffer> {
    for await (const chunk of chunks) {
      packed.update(chunk);
      yield chunk;
    }
  }
  // An early end of one stage ends the others; the reader gets the error.
  const decoder = pipeline(source, hashed, open(), () => {});
  return { chunks: spoken(decoder, name), packed };
}

/** Returns the first chunk and pushes it back (unshift). */
async function peek(source: Readable): Promise<Buffer> {
  for await (const chunk of source.iterator({ destroyOnReturn: false })) {
    source.unshift(chunk);
    return chunk as Buffer;
  }
  return Buffer.alloc(0);
}

/** Reports a decoder's error as a fault of the layer. */
async function* spoken(decoder: Transform, name: string): AsyncIterable<Buffer> {
  try {
    yield* decoder as AsyncIterable<Buffer>;
  } catch (thrown) {
    if (/^(Z_|ZSTD_|ERR_ZLIB|ERR_BUFFER)/.test(String((thrown as { code?: string }).code)))
      throw new LayerFault(`its ${name} data are damaged or cut short`, { cause: thrown });
    throw thrown;
  }
}
