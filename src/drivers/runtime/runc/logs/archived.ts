/**
 * Archived logs: blocks compressed one by one with zstd, then which text each may contain, then an index, then its length,
 * checksum and a magic number. A reader finds a time, a place or an id without reading the rest, and damage costs one
 * block; a damaged index costs the file.
 */
import type { FileHandle } from "node:fs/promises";
import { promisify } from "node:util";
import { constants, crc32, zstdCompress, zstdDecompress } from "node:zlib";
import { gramsOf, mayContain } from "./grams.ts";
import type { Block } from "./parse.ts";

const MAGIC = "HLOG0001";
const TRAILER_BYTES = 8 + MAGIC.length;
/** Level 1 is as small as level 3 to 6 on blocks of this size, at a fraction of their CPU time (ADR 0079). */
const PARAMS = { [constants.ZSTD_c_compressionLevel]: 1, [constants.ZSTD_c_checksumFlag]: 1 };

const compress = promisify(zstdCompress);
const decompress = promisify(zstdDecompress);

export interface ArchivedBlock extends Block {
  /** Where its compressed bytes are. */
  at: number;
  size: number;
  /** Where its grams are, and their checksum; absent in older files. */
  grams?: { at: number; size: number; crc: number };
}

export class DamagedLog extends Error {
  override readonly name = "DamagedLog";
}

/** The bytes of an archived log with these blocks. */
export async function archive(raw: Buffer, ranges: readonly Block[]): Promise<Buffer> {
  const parts: Buffer[] = [];
  const blocks: ArchivedBlock[] = [];
  let at = 0;
  const add = (bytes: Buffer): { at: number; size: number } => {
    parts.push(bytes);
    at += bytes.length;
    return { at: at - bytes.length, size: bytes.length };
  };
  const grams: Buffer[] = [];
  for (const block of ranges) {
    const text = raw.subarray(block.from, block.from + block.length);
    blocks.push({ ...block, ...add(await compress(text, { params: PARAMS })) });
    grams.push(gramsOf(text));
  }
  // Together, so that a search reads those of all blocks at once.
  for (const [index, set] of grams.entries())
    Object.assign(blocks[index] as ArchivedBlock, { grams: { ...add(set), crc: crc32(set) } });
  const index = Buffer.from(JSON.stringify(blocks));
  const trailer = Buffer.alloc(TRAILER_BYTES);
  trailer.writeUInt32LE(index.length, 0);
  trailer.writeUInt32LE(crc32(index), 4);
  trailer.write(MAGIC, 8, "latin1");
  return Buffer.concat([...parts, index, trailer]);
}

export async function readIndex(handle: FileHandle): Promise<ArchivedBlock[]> {
  const { size } = await handle.stat();
  const trailer = await bytesAt(handle, size - TRAILER_BYTES, TRAILER_BYTES);
  if (trailer.toString("latin1", 8) !== MAGIC) throw new DamagedLog("its end is not that of an archived log");
  const length = trailer.readUInt32LE(0);
  const index = await bytesAt(handle, size - TRAILER_BYTES - length, length);
  if (crc32(index) !== trailer.readUInt32LE(4)) throw new DamagedLog("the checksum of its index is wrong");
  return JSON.parse(index.toString()) as ArchivedBlock[];
}

/** The blocks that may contain texts with these grams. */
export async function blocksWith(handle: FileHandle, wanted: readonly number[]): Promise<ArchivedBlock[]> {
  const blocks = await readIndex(handle);
  const known = wanted.length > 0 ? blocks.flatMap(({ grams }) => grams ?? []) : [];
  const [first, last] = [known[0], known.at(-1)];
  if (!first || !last) return blocks;
  const all = await bytesAt(handle, first.at, last.at + last.size - first.at);
  return blocks.filter(({ grams }) => {
    if (!grams) return true;
    const set = all.subarray(grams.at - first.at, grams.at - first.at + grams.size);
    // Damaged ones say nothing.
    return crc32(set) !== grams.crc || mayContain(set, wanted);
  });
}

export async function readBlock(handle: FileHandle, { at, size, length }: ArchivedBlock): Promise<Buffer> {
  const compressed = await bytesAt(handle, at, size);
  const bytes = await decompress(compressed, { maxOutputLength: length }).catch((cause: unknown) => {
    throw new DamagedLog(`its block at ${at} cannot be decompressed`, { cause });
  });
  if (bytes.length !== length) throw new DamagedLog(`its block at ${at} has ${bytes.length} of ${length} bytes`);
  return bytes;
}

async function bytesAt(handle: FileHandle, at: number, length: number): Promise<Buffer> {
  if (at < 0) throw new DamagedLog("it is too short");
  const bytes = Buffer.alloc(length);
  const { bytesRead } = await handle.read(bytes, 0, length, at);
  if (bytesRead < length) throw new DamagedLog(`it ends ${length - bytesRead} bytes early`);
  return bytes;
}
