import { createHash } from "node:crypto";
import { zstdCompressSync, zstdDecompressSync } from "node:zlib";
import { assert } from "#core/assert.ts";

/**
 * What a snapshot consists of: which block of the volume is where. Blocks that are all zeros are in none.
 *
 * Layout, zstd-compressed: a line of JSON (the header), then one entry per block in order: index (4 bytes),
 * pack (4, a place in the header's list), offset in the pack (4), length there (4, the highest bit set when it
 * is compressed), SHA-256 of the block (32). Numbers are little-endian.
 */
export interface Manifest {
  image_bytes: number;
  block_bytes: number;
  /** Names of the packs, and how many bytes each has. */
  packs: { name: string; bytes: number }[];
  entries: Entry[];
}

export interface Entry {
  index: number;
  pack: number;
  offset: number;
  length: number;
  compressed: boolean;
  /** Hex. */
  hash: string;
}

const ENTRY_BYTES = 48;
const COMPRESSED = 0x80000000;
const FORMAT = "hangar-volume-1";

export function encodeManifest({ image_bytes, block_bytes, packs, entries }: Manifest): Buffer {
  const head = Buffer.from(`${JSON.stringify({ format: FORMAT, image_bytes, block_bytes, packs })}\n`);
  const body = Buffer.alloc(entries.length * ENTRY_BYTES);
  entries.forEach(({ index, pack, offset, length, compressed, hash }, i) => {
    const at = i * ENTRY_BYTES;
    body.writeUInt32LE(index, at);
    body.writeUInt32LE(pack, at + 4);
    body.writeUInt32LE(offset, at + 8);
    body.writeUInt32LE((length | (compressed ? COMPRESSED : 0)) >>> 0, at + 12);
    body.write(hash, at + 16, "hex");
  });
  return zstdCompressSync(Buffer.concat([head, body]));
}

export function decodeManifest(bytes: Uint8Array): Manifest {
  const plain = zstdDecompressSync(bytes);
  const end = plain.indexOf("\n");
  const head = JSON.parse(plain.toString("utf8", 0, end)) as Omit<Manifest, "entries"> & { format: string };
  assert(head.format === FORMAT, `this version reads ${FORMAT}, not ${head.format}`);
  const body = plain.subarray(end + 1);
  assert(body.length % ENTRY_BYTES === 0, "the manifest is whole");
  const entries = Array.from({ length: body.length / ENTRY_BYTES }, (_, i): Entry => {
    const at = i * ENTRY_BYTES;
    const length = body.readUInt32LE(at + 12);
    return {
      index: body.readUInt32LE(at),
      pack: body.readUInt32LE(at + 4),
      offset: body.readUInt32LE(at + 8),
      length: (length & ~COMPRESSED) >>> 0,
      compressed: length >= COMPRESSED,
      hash: body.toString("hex", at + 16, at + ENTRY_BYTES),
    };
  });
  const { image_bytes, block_bytes, packs } = head;
  return { image_bytes, block_bytes, packs, entries };
}

/**
 * Identifies the content: a hash over the size and every block's index and hash. Two snapshots with the same digest
 * have the same content, however they are stored.
 */
export function digestOf({ image_bytes, block_bytes, entries }: Manifest): string {
  const hash = createHash("sha256").update(`${FORMAT} ${image_bytes} ${block_bytes}\n`);
  for (const { index, hash: block } of entries) hash.update(`${index} ${block}\n`);
  return `sha256:${hash.digest("hex")}`;
}
