/**
 * LTX files, version 3: one transaction (or one whole database) as a list of pages. All numbers big-endian.
 *
 *     header 100 B   "LTX1" flags page_size commit min_txid max_txid timestamp pre_checksum
 *                    wal_offset wal_size salt1 salt2 node_id, 20 zero bytes
 *     page           number (4) · flags (2) = 1 · size (4) · LZ4 block        ascending, without the lock page
 *     end            6 zero bytes
 *     index          (number, offset, size) as varints for each page · 0 · length of the index (8)
 *     trailer 16 B   post_checksum · file_checksum
 *
 * The file checksum covers everything before itself, with the pages as they are, not as they are packed.
 * Snapshots are read and written page by page, so that no database has to fit in memory.
 */
import { NO_PAGES } from "../position.ts";
import { Crc64 } from "./crc64.ts";
import { Lz4Error, lz4Bound, lz4Compress, lz4Expand, lz4Store, lz4Stored } from "./lz4.ts";
import { lockPage, type Page } from "./page-table.ts";
import { Slab } from "./slab.ts";

export interface LtxHeader {
  page_size: number;
  /** Database size in pages afterwards; 0 means deleted. */
  commit: number;
  min_txid: number;
  max_txid: number;
  /** Wall clock of the primary, milliseconds. */
  timestamp_ms: number;
  /** Checksum of the database before; 0 in a snapshot. */
  pre_checksum: bigint;
  /** Position in the primary's WAL. */
  wal_offset: number;
  wal_size: number;
  salt1: number;
  salt2: number;
  node_id: bigint;
}

/** The file violates the format, or its checksum does not match. */
export class LtxError extends Error {
  override readonly name = "LtxError";
}

export const LTX_HEADER_BYTES = 100;
const MAGIC = 0x4c545831;
const PAGE_HEADER_BYTES = 10;
const SIZE_FOLLOWS = 1;
const END_BYTES = 6;
/** Maximum size of an index entry: page number, offset, size. */
const INDEX_ENTRY_BYTES = 5 + 8 + 5;
export const LTX_TRAILER_BYTES = 16;

export type Packing = "store" | "compress";

function encodeHeader(header: LtxHeader, bytes: Buffer): void {
  bytes.fill(0, 0, LTX_HEADER_BYTES);
  bytes.writeUInt32BE(MAGIC, 0);
  bytes.writeUInt32BE(header.page_size, 8);
  bytes.writeUInt32BE(header.commit, 12);
  bytes.writeBigUInt64BE(BigInt(header.min_txid), 16);
  bytes.writeBigUInt64BE(BigInt(header.max_txid), 24);
  bytes.writeBigUInt64BE(BigInt(header.timestamp_ms), 32);
  bytes.writeBigUInt64BE(header.pre_checksum, 40);
  bytes.writeBigUInt64BE(BigInt(header.wal_offset), 48);
  bytes.writeBigUInt64BE(BigInt(header.wal_size), 56);
  bytes.writeUInt32BE(header.salt1, 64);
  bytes.writeUInt32BE(header.salt2, 68);
  bytes.writeBigUInt64BE(header.node_id, 72);
}

function safeNumber(bytes: Buffer, at: number, what: string): number {
  const value = bytes.readBigUInt64BE(at);
  if (value > BigInt(Number.MAX_SAFE_INTEGER)) throw new LtxError(`${what} is out of range`);
  return Number(value);
}

export function decodeHeader(bytes: Buffer): LtxHeader {
  if (bytes.length < LTX_HEADER_BYTES || bytes.readUInt32BE(0) !== MAGIC) throw new LtxError("not an LTX file");
  if (bytes.readUInt32BE(4) !== 0) throw new LtxError(`flags ${bytes.readUInt32BE(4)} are not supported`);
  const header: LtxHeader = {
    page_size: bytes.readUInt32BE(8),
    commit: bytes.readUInt32BE(12),
    min_txid: safeNumber(bytes, 16, "min_txid"),
    max_txid: safeNumber(bytes, 24, "max_txid"),
    timestamp_ms: safeNumber(bytes, 32, "timestamp"),
    pre_checksum: bytes.readBigUInt64BE(40),
    wal_offset: safeNumber(bytes, 48, "wal_offset"),
    wal_size: safeNumber(bytes, 56, "wal_size"),
    salt1: bytes.readUInt32BE(64),
    salt2: bytes.readUInt32BE(68),
    node_id: bytes.readBigUInt64BE(72),
  };
  const { page_size, min_txid, max_txid, pre_checksum } = header;
  if (page_size < 512 || page_size > 65536 || (page_size & (page_size - 1)) !== 0) {
    throw new LtxError(`page size ${page_size} is not one of SQLite's`);
  }
  if (min_txid < 1 || max_txid < min_txid) throw new LtxError(`txids ${min_txid} to ${max_txid} are not a range`);
  const first = min_txid === 1;
  if (first !== (pre_checksum === 0n)) throw new LtxError("only the first transaction has no checksum before it");
  return header;
}

/** Whether the file contains the whole database, and so applies to any state. */
export function isSnapshot(header: Pick<LtxHeader, "min_txid">): boolean {
  return header.min_txid === 1;
}

function varint(value: number, into: number[]): void {
  let rest = value;
  for (; rest >= 128; rest = Math.floor(rest / 128)) into.push((rest % 128) | 128);
  into.push(rest);
}

/**
 * Writes one file incrementally: `begin`, every `page` in ascending order, `end`. Each also as `…Into`, which writes to
 * a buffer with enough space and returns the size.
 */
export class LtxWriter {
  readonly #header: LtxHeader;
  readonly #pack: (source: Buffer, target: Buffer, at: number) => number;
  readonly #crc = new Crc64();
  readonly #index: number[] = [];
  #offset = 0;

  constructor(header: LtxHeader, packing: Packing = "store") {
    this.#header = header;
    this.#pack = packing === "store" ? lz4Store : lz4Compress;
  }

  begin(): Buffer {
    const bytes = Buffer.allocUnsafeSlow(LTX_HEADER_BYTES);
    this.beginInto(bytes);
    return bytes;
  }

  /** At the start of `bytes`. */
  beginInto(bytes: Buffer): number {
    encodeHeader(this.#header, bytes);
    this.#crc.update(bytes, 0, LTX_HEADER_BYTES);
    this.#offset = LTX_HEADER_BYTES;
    return LTX_HEADER_BYTES;
  }

  page(page: Page): Buffer {
    const bytes = Buffer.allocUnsafe(pageBound(page.data.length));
    return bytes.subarray(0, this.pageInto(page, bytes, 0));
  }

  /** `pageBound` bytes must be free. */
  pageInto(page: Page, bytes: Buffer, at: number): number {
    const { number, data } = page;
    const size = this.#pack(data, bytes, at + PAGE_HEADER_BYTES);
    bytes.writeUInt32BE(number, at);
    bytes.writeUInt16BE(SIZE_FOLLOWS, at + 4);
    bytes.writeUInt32BE(size, at + 6);
    this.#crc.update(bytes, at, at + PAGE_HEADER_BYTES);
    this.#crc.absorb(page);
    for (const value of [number, this.#offset, PAGE_HEADER_BYTES + size]) varint(value, this.#index);
    this.#offset += PAGE_HEADER_BYTES + size;
    return PAGE_HEADER_BYTES + size;
  }

  end(post_checksum: bigint): Buffer {
    const bytes = Buffer.allocUnsafeSlow(END_BYTES + this.#index.length + 1 + 8 + LTX_TRAILER_BYTES);
    this.endInto(post_checksum, bytes, 0);
    return bytes;
  }

  endInto(post_checksum: bigint, bytes: Buffer, at: number): number {
    this.#index.push(0);
    const index_at = at + END_BYTES;
    const index_end = index_at + this.#index.length;
    bytes.fill(0, at, index_at);
    bytes.set(this.#index, index_at);
    bytes.writeBigUInt64BE(BigInt(this.#index.length), index_end);
    bytes.writeBigUInt64BE(post_checksum, index_end + 8);
    this.#crc.update(bytes, at, index_end + 16);
    bytes.writeBigUInt64BE(this.#crc.flagged, index_end + 16);
    return index_end + 24 - at;
  }
}

function pageBound(page_size: number): number {
  return PAGE_HEADER_BYTES + lz4Bound(page_size);
}

const slab = new Slab();

/** Encodes a whole file into one buffer: this runs for every transaction. */
export function encodeLtx(header: LtxHeader, pages: readonly Page[], post_checksum: bigint, packing?: Packing): Buffer {
  const writer = new LtxWriter(header, packing);
  const bound = pages.length * (pageBound(header.page_size) + INDEX_ENTRY_BYTES);
  const bytes = slab.reserve(LTX_HEADER_BYTES + bound + END_BYTES + 9 + LTX_TRAILER_BYTES);
  let at = writer.beginInto(bytes);
  for (const page of pages) at += writer.pageInto(page, bytes, at);
  at += writer.endInto(post_checksum, bytes, at);
  return slab.keep(bytes, at);
}

/** Returns the memory of an `encodeLtx` file for reuse; it must not be read afterwards. */
export function giveBackLtx(bytes: Buffer): void {
  slab.giveBack(bytes);
}

/** A source of a file's bytes: the next ones are in `bytes`, from `at` on. */
export interface ByteSource {
  bytes: Buffer;
  at: number;
  /** Ensures that `count` bytes are available; throws `LtxError` otherwise. */
  need(count: number): void;
}

function bytesSource(bytes: Buffer): ByteSource {
  return {
    bytes,
    at: 0,
    need(count) {
      if (count > this.bytes.length - this.at) throw new LtxError("the file ends too early");
    },
  };
}

/**
 * Reads one file incrementally: `next` until undefined, then `end`, which verifies it. Uncompressed pages stay in the
 * source buffer.
 */
export class LtxReader {
  readonly header: LtxHeader;
  readonly #source: ByteSource;
  readonly #crc = new Crc64();
  #previous = 0;

  constructor(source: ByteSource) {
    this.#source = source;
    source.need(LTX_HEADER_BYTES);
    this.header = decodeHeader(source.bytes.subarray(source.at, source.at + LTX_HEADER_BYTES));
    this.#pass(LTX_HEADER_BYTES);
  }

  next(): Page | undefined {
    const { page_size, commit } = this.header;
    const source = this.#source;
    source.need(END_BYTES);
    const number = source.bytes.readUInt32BE(source.at);
    if (number === 0) {
      this.#pass(END_BYTES);
      return undefined;
    }
    if (number <= this.#previous) throw new LtxError(`page ${number} after page ${this.#previous}`);
    if (number > commit || number === lockPage(page_size)) throw new LtxError(`page ${number} does not belong here`);
    source.need(PAGE_HEADER_BYTES);
    if (source.bytes.readUInt16BE(source.at + 4) !== SIZE_FOLLOWS)
      throw new LtxError(`page ${number} has unknown flags`);
    const size = source.bytes.readUInt32BE(source.at + 6);
    if (size > lz4Bound(page_size)) throw new LtxError(`page ${number} is ${size} bytes packed`);
    this.#pass(PAGE_HEADER_BYTES);
    source.need(size);
    const page: Page = { number, data: unpack(source.bytes, source.at, size, page_size, number) };
    source.at += size;
    this.#crc.absorb(page);
    this.#previous = number;
    return page;
  }

  /** Verifies the file and returns the checksum of the database after it. */
  end(): { post_checksum: bigint } {
    const source = this.#source;
    this.#skipIndex();
    source.need(LTX_TRAILER_BYTES);
    const post_checksum = source.bytes.readBigUInt64BE(source.at);
    this.#pass(8);
    if (source.bytes.readBigUInt64BE(source.at) !== this.#crc.flagged) {
      throw new LtxError("the file checksum does not match");
    }
    source.at += 8;
    if (this.header.commit === 0 && post_checksum !== NO_PAGES) throw new LtxError("a deleted database has a checksum");
    return { post_checksum };
  }

  #skipIndex(): void {
    const source = this.#source;
    let length = 0;
    const value = (): number => {
      let [result, scale] = [0, 1];
      for (;;) {
        source.need(1);
        const byte = source.bytes[source.at++] ?? 0;
        this.#crc.byte(byte);
        length++;
        result += (byte & 127) * scale;
        scale *= 128;
        if (byte < 128) return result;
        if (scale > 2 ** 56) throw new LtxError("a number in the index is too long");
      }
    };
    while (value() !== 0) {
      value();
      value();
    }
    source.need(8);
    if (Number(source.bytes.readBigUInt64BE(source.at)) !== length) throw new LtxError("the index has another length");
    this.#pass(8);
  }

  /** Goes on behind bytes that are part of the checksum as they are. */
  #pass(count: number): void {
    const source = this.#source;
    this.#crc.update(source.bytes, source.at, source.at + count);
    source.at += count;
  }
}

/** A page in place, or in new memory when it is compressed. */
function unpack(bytes: Buffer, at: number, size: number, page_size: number, number: number): Buffer {
  const stored = lz4Stored(bytes, at, at + size, page_size);
  if (stored >= 0) return bytes.subarray(stored, stored + page_size);
  try {
    const data = Buffer.allocUnsafeSlow(page_size);
    lz4Expand(bytes.subarray(at, at + size), data);
    return data;
  } catch (cause) {
    if (cause instanceof Lz4Error) throw new LtxError(`page ${number}: ${cause.message}`, { cause });
    throw cause;
  }
}

export interface Ltx {
  header: LtxHeader;
  pages: Page[];
  post_checksum: bigint;
}

/** The pages are valid as long as `bytes`: most are views of it. */
export function decodeLtx(bytes: Buffer): Ltx {
  const reader = new LtxReader(bytesSource(bytes));
  const pages: Page[] = [];
  for (let page = reader.next(); page; page = reader.next()) pages.push(page);
  return { header: reader.header, pages, ...reader.end() };
}

/** The checksum after the transaction, from a file or only its end. */
export function postChecksum(bytes: Buffer): bigint {
  return bytes.readBigUInt64BE(bytes.length - LTX_TRAILER_BYTES);
}
