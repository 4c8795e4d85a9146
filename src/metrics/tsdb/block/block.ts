import { closeSync, fstatSync, openSync, readSync } from "node:fs";
import { basename } from "node:path";
import { crc32, zstdDecompressSync } from "node:zlib";
import type { Columns, Labels } from "../../source.ts";
import { ByteReader, DamagedBytes } from "../bytes.ts";
import { decodeChunk } from "../chunk/chunk.ts";
import { clip } from "../columns.ts";
import { lowerBound } from "../index/postings.ts";
import {
  type Directory,
  decodeDirectory,
  type Extent,
  type Frame,
  type Group,
  LIST_SERIES,
  MAGIC,
  readLabels,
  TAIL_BYTES,
} from "./format.ts";
import type { FrameCache, UnpackedFrame } from "./frame-cache.ts";
import { type BlockName, parseBlockName } from "./writer.ts";

/** Maximum frame size; a larger one is damaged. */
const FRAME_BYTES_MOST = 64 * 1024 * 1024;
/** Output buffer of a usual frame, to avoid concatenation. */
const UNPACKING = { maxOutputLength: FRAME_BYTES_MOST, chunkSize: 160 * 1024 };
const NOWHERE = 0xffff_ffff;

/** A readable block. Everything but its frames is in memory. */
export class Block {
  readonly path: string;
  readonly name: BlockName;
  readonly directory: Directory;
  readonly bytes: number;
  /** The newest sample's time: `end_ms` is only where its span ends. */
  readonly max_ms: number;
  readonly #fd: number;
  readonly #cache: FrameCache;
  /** Damage found; the block is rewritten from the rest. */
  readonly damage: string[] = [];
  /** Series refs of the org, ascending, and their index in the block. */
  #refs = new Uint32Array(0);
  #places = new Uint32Array(0);
  /** Group by index. */
  readonly #groupOf: Uint32Array;

  /** Throws DamagedBytes when the directory cannot be read. */
  constructor(path: string, cache: FrameCache, register: (labels: Labels) => number) {
    const name = parseBlockName(basename(path));
    if (!name) throw new DamagedBytes("not a block's name");
    this.path = path;
    this.name = name;
    this.#cache = cache;
    this.#fd = openSync(path, "r");
    try {
      this.bytes = fstatSync(this.#fd).size;
      this.directory = this.#readDirectory();
      this.max_ms = newestIn(this.directory);
      this.#groupOf = groupsOf(this.directory);
      this.#registerAll(register);
    } catch (thrown) {
      closeSync(this.#fd);
      throw thrown;
    }
  }

  get start_ms(): number {
    return this.directory.start_ms;
  }

  get end_ms(): number {
    return this.directory.end_ms;
  }

  /** Series numbers, rising. */
  get refs(): Uint32Array {
    return this.#refs;
  }

  overlaps(start_ms: number, end_ms: number): boolean {
    return this.start_ms <= end_ms && this.end_ms > start_ms;
  }

  /** Index of a series in the block, or a negative number. */
  place(ref: number): number {
    const at = lowerBound(this.#refs, ref);
    return this.#refs[at] === ref ? (this.#places[at] as number) : -1;
  }

  has(ref: number): boolean {
    return this.#refs[lowerBound(this.#refs, ref)] === ref;
  }

  /** Appends the samples of the series at `place` in [start, end]. Damaged parts are skipped and recorded. */
  read(place: number, start_ms: number, end_ms: number, into: Columns): void {
    const group = this.directory.groups[this.#groupOf[place] as number] as Group;
    for (const frame of group.frames) {
      if (frame.max_ms < start_ms || frame.min_ms > end_ms) continue;
      const before = into.length;
      try {
        this.#readChunk(frame, place - group.first, into);
      } catch (thrown) {
        if (!(thrown instanceof DamagedBytes)) throw thrown;
        into.length = before;
        this.#note(`frame at byte ${frame.offset}: ${thrown.message}`);
      }
      clip(into, before, start_ms, end_ms);
    }
  }

  close(): void {
    closeSync(this.#fd);
  }

  #readChunk(frame: Frame, index: number, into: Columns): void {
    const { bytes, offsets } = this.#unpacked(frame);
    const at = offsets[index];
    const end = offsets[index + 1];
    if (at === undefined || end === undefined || at === end) return;
    decodeChunk(bytes, at, this.start_ms, into);
  }

  #unpacked(frame: Frame): UnpackedFrame {
    if (frame.unpacked) return frame.unpacked;
    const bytes = this.#readPacked(frame);
    const from = new ByteReader(bytes);
    const count = from.varint();
    if (count > bytes.length) throw new DamagedBytes("an impossible number of chunks");
    const offsets = new Uint32Array(count + 1);
    for (let i = 0; i < count; i++) offsets[i + 1] = (offsets[i] as number) + from.varint();
    for (let i = 0; i <= count; i++) offsets[i] = (offsets[i] as number) + from.at;
    if ((offsets[count] as number) > bytes.length) throw new DamagedBytes("chunks reach past their frame");
    const unpacked = { bytes, offsets };
    this.#cache.keep(frame, unpacked);
    return unpacked;
  }

  #readDirectory(): Directory {
    if (this.bytes < MAGIC.length + TAIL_BYTES) throw new DamagedBytes("too short for a block");
    const tail = this.#readBytes(this.bytes - TAIL_BYTES, TAIL_BYTES);
    const length = tail.readUInt32LE(0);
    if (!tail.subarray(8).equals(MAGIC)) throw new DamagedBytes("the block's last bytes are wrong");
    if (length > this.bytes - MAGIC.length - TAIL_BYTES) throw new DamagedBytes("the directory is too long");
    const directory = this.#readBytes(this.bytes - TAIL_BYTES - length, length);
    if (crc32(directory) !== tail.readUInt32LE(4)) throw new DamagedBytes("the directory's checksum is wrong");
    return decodeDirectory(directory);
  }

  #registerAll(register: (labels: Labels) => number): void {
    const { series, lists } = this.directory;
    const refs = new Uint32Array(series).fill(NOWHERE);
    lists.forEach((extent, k) => {
      try {
        const from = new ByteReader(this.#readPacked(extent));
        let labels: Labels = [];
        for (let place = k * LIST_SERIES; !from.done && place < series; place++) {
          labels = readLabels(from, labels);
          refs[place] = register(labels);
        }
      } catch (thrown) {
        if (!(thrown instanceof DamagedBytes)) throw thrown;
        this.#note(`label list at byte ${extent.offset}: ${thrown.message}`);
      }
    });
    this.#places = Uint32Array.from(refs.keys()).filter((place) => refs[place] !== NOWHERE);
    this.#places.sort((a, b) => (refs[a] as number) - (refs[b] as number));
    this.#refs = this.#places.map((place) => refs[place] as number);
  }

  #readPacked(extent: Extent): Uint8Array {
    const packed = this.#readBytes(extent.offset, extent.length);
    if (crc32(packed) !== extent.crc) throw new DamagedBytes("the checksum is wrong");
    try {
      return zstdDecompressSync(packed, UNPACKING);
    } catch (cause) {
      throw new DamagedBytes("it cannot be unpacked", { cause });
    }
  }

  #readBytes(offset: number, length: number): Buffer {
    const bytes = Buffer.allocUnsafe(length);
    for (let at = 0; at < length; ) {
      const read = readSync(this.#fd, bytes, at, length - at, offset + at);
      if (read === 0) throw new DamagedBytes("the file is shorter than it says");
      at += read;
    }
    return bytes;
  }

  #note(what: string): void {
    if (!this.damage.includes(what)) this.damage.push(what);
  }
}

function newestIn({ groups }: Directory): number {
  let newest = -Infinity;
  for (const { frames } of groups) for (const { max_ms } of frames) newest = Math.max(newest, max_ms);
  return newest;
}

function groupsOf({ groups, series }: Directory): Uint32Array {
  const groupOf = new Uint32Array(series);
  groups.forEach(({ first, count }, index) => {
    groupOf.fill(index, first, first + count);
  });
  return groupOf;
}
