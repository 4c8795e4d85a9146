/**
 * A streaming tar parser: the old format, ustar, GNU long names and pax. Anything that does not strictly follow one of
 * these is a `LayerFault`: two readers that parse an ambiguous archive differently can be exploited, one that refuses
 * cannot.
 *
 * Names stay as they are, byte for byte, in strings of one character per byte (latin1): they need not be UTF-8.
 */
import { LayerFault } from "./refusal.ts";

export type EntryType = "file" | "hardlink" | "symlink" | "char" | "block" | "directory" | "fifo";

export interface TarEntry {
  path: string;
  type: EntryType;
  mode: number;
  uid: number;
  gid: number;
  /** Seconds since 1970. */
  mtime: number;
  /** Size of the content; 0 for everything but files. */
  size: number;
  /** Target of a link. */
  link: string;
}

export interface TarSink {
  entry(entry: TarEntry): void;
  /** Content of the current entry, in order. */
  data(chunk: Buffer): void;
}

export interface TarLimits {
  pax_bytes: number;
  path_bytes: number;
}

const BLOCK = 512;
const TYPES: Record<string, EntryType> = {
  "\0": "file",
  "0": "file",
  "7": "file",
  "1": "hardlink",
  "2": "symlink",
  "3": "char",
  "4": "block",
  "5": "directory",
  "6": "fifo",
};
/** Extended headers about the next entry, or about all that follow. */
const EXTENDED = new Set(["x", "g", "L", "K"]);

export class TarReader {
  readonly #sink: TarSink;
  readonly #limits: TarLimits;
  /** An incomplete block. */
  #rest: Buffer = Buffer.alloc(0);
  /** Remaining content and padding of the current entry. */
  #left = 0;
  #filling = 0;
  #extended: { type: string; chunks: Buffer[] } | undefined;
  #next: Map<string, string> = new Map();
  #global: Map<string, string> = new Map();
  #zeroes = 0;
  #ended = false;

  constructor(sink: TarSink, limits: TarLimits) {
    this.#sink = sink;
    this.#limits = limits;
  }

  /** Bytes that need not be read: a file reader may skip them with `skip`. */
  get skippable(): number {
    return this.#extended || this.#rest.length > 0 ? 0 : this.#left + this.#filling;
  }

  skip(bytes: number): void {
    const content = Math.min(bytes, this.#left);
    this.#left -= content;
    this.#filling -= bytes - content;
  }

  write(input: Buffer): void {
    let chunk = input;
    while (chunk.length > 0 && !this.#ended) chunk = this.#step(chunk);
  }

  /** Ends the archive. Fails when it is truncated. */
  end(): void {
    if (this.#ended) return;
    // Some tools omit the zero blocks; the end of an entry is accepted too.
    if (this.#rest.length > 0 || this.#left + this.#filling > 0 || this.#extended || this.#next.size > 0)
      throw new LayerFault("the archive is cut short");
  }

  /** Consumes part of the chunk and returns the rest. */
  #step(chunk: Buffer): Buffer {
    if (this.#left > 0) return this.#content(chunk);
    if (this.#filling > 0) {
      const skipped = Math.min(this.#filling, chunk.length);
      this.#filling -= skipped;
      return chunk.subarray(skipped);
    }
    const wanted = BLOCK - this.#rest.length;
    const block =
      this.#rest.length === 0 ? chunk.subarray(0, BLOCK) : Buffer.concat([this.#rest, chunk.subarray(0, wanted)]);
    if (block.length < BLOCK) {
      this.#rest = Buffer.from(block);
      return chunk.subarray(chunk.length);
    }
    this.#rest = Buffer.alloc(0);
    this.#header(block);
    return chunk.subarray(wanted);
  }

  #content(chunk: Buffer): Buffer {
    const part = chunk.subarray(0, this.#left);
    this.#left -= part.length;
    if (this.#extended) this.#extended.chunks.push(Buffer.from(part));
    else this.#sink.data(part);
    if (this.#left === 0 && this.#extended) {
      const { type, chunks } = this.#extended;
      this.#extended = undefined;
      this.#extend(type, Buffer.concat(chunks));
    }
    return chunk.subarray(part.length);
  }

  #header(block: Buffer): void {
    if (block.every((byte) => byte === 0)) {
      this.#zeroes++;
      // Two zero blocks end the archive; what follows is padding.
      this.#ended = this.#zeroes === 2;
      return;
    }
    if (this.#zeroes > 0) throw new LayerFault("an entry follows the end of the archive");
    checkSum(block);
    const type = block.toString("latin1", 156, 157);
    const size = numberOf(block, 124, 12, "size");
    if (EXTENDED.has(type)) {
      if (size > this.#limits.pax_bytes)
        throw new LayerFault(`an extended header has ${size} bytes (limit pax_bytes is ${this.#limits.pax_bytes})`);
      this.#extended = { type, chunks: [] };
      this.#expect(size);
      if (size === 0) this.#extended = undefined;
      return;
    }
    this.#entry(block, type, size);
  }

  #entry(block: Buffer, flag: string, headerSize: number): void {
    const extra = (name: string): string | undefined => this.#next.get(name) ?? this.#global.get(name);
    const kind = TYPES[flag];
    if (!kind)
      throw new LayerFault(`an entry is of the type ${JSON.stringify(flag)}, which is not a file, folder or link`);
    if ([...this.#next.keys(), ...this.#global.keys()].some((name) => name.startsWith("GNU.sparse.")))
      throw new LayerFault("an entry is a sparse file, which layers may not have");
    const path = extra("path") ?? ustarPath(block);
    // Old archives mark a directory only by a trailing slash.
    const type = kind === "file" && path.endsWith("/") ? "directory" : kind;
    const size = numberFrom(extra("size"), headerSize, "size");
    const entry: TarEntry = {
      path,
      type,
      mode: numberOf(block, 100, 8, "mode") & 0o7777,
      uid: numberFrom(extra("uid"), numberOf(block, 108, 8, "uid"), "uid"),
      gid: numberFrom(extra("gid"), numberOf(block, 116, 8, "gid"), "gid"),
      mtime: secondsFrom(extra("mtime"), numberOf(block, 136, 12, "mtime", true)),
      // Links, folders and devices have no content, whatever their header says.
      size: type === "file" ? size : 0,
      link: extra("linkpath") ?? text(block, 157, 100),
    };
    this.#next = new Map();
    this.#checkNames(entry);
    this.#sink.entry(entry);
    this.#expect(entry.size);
  }

  #checkNames({ path, link }: TarEntry): void {
    for (const name of [path, link]) {
      if (name.includes("\0")) throw new LayerFault("a name holds a zero byte");
      if (name.length > this.#limits.path_bytes)
        throw new LayerFault(`a path has ${name.length} bytes (limit path_bytes is ${this.#limits.path_bytes})`);
    }
  }

  #expect(size: number): void {
    this.#left = size;
    this.#filling = (BLOCK - (size % BLOCK)) % BLOCK;
  }

  #extend(type: string, data: Buffer): void {
    if (type === "x" || type === "g") {
      const records = paxRecords(data);
      const into = type === "x" ? this.#next : this.#global;
      for (const [name, value] of records) into.set(name, value);
      return;
    }
    const end = data.indexOf(0);
    this.#next.set(type === "L" ? "path" : "linkpath", data.toString("latin1", 0, end < 0 ? data.length : end));
  }
}

function checkSum(block: Buffer): void {
  let sum = 0;
  for (let i = 0; i < BLOCK; i++) sum += i >= 148 && i < 156 ? 32 : (block[i] ?? 0);
  if (sum !== Number.parseInt(text(block, 148, 8).trim(), 8))
    throw new LayerFault("this is not a tar archive, or it is damaged");
}

function text(block: Buffer, start: number, length: number): string {
  const field = block.subarray(start, start + length);
  const end = field.indexOf(0);
  return field.toString("latin1", 0, end < 0 ? length : end);
}

function ustarPath(block: Buffer): string {
  const name = text(block, 0, 100);
  // Only POSIX archives have the prefix there; GNU's have times.
  const posix = block.toString("latin1", 257, 263) === "ustar\0";
  const prefix = posix ? text(block, 345, 155) : "";
  return prefix === "" ? name : `${prefix}/${name}`;
}

/** Octal digits, or GNU's big-endian number when the first bit is set. */
function numberOf(block: Buffer, start: number, length: number, what: string, signed = false): number {
  const first = block[start] ?? 0;
  if (first & 0x80) return bigNumber(block.subarray(start, start + length), what, signed);
  const digits = text(block, start, length).trim();
  if (digits === "") return 0;
  if (!/^[0-7]+$/.test(digits)) throw new LayerFault(`the ${what} of an entry is not a number`);
  return Number.parseInt(digits, 8);
}

function bigNumber(field: Buffer, what: string, signed: boolean): number {
  const negative = ((field[0] ?? 0) & 0x40) !== 0;
  if (negative) {
    // Only times may lie before 1970; how long before does not matter.
    if (signed) return 0;
    throw new LayerFault(`the ${what} of an entry is negative`);
  }
  const value = field.reduce((sum, byte, i) => sum * 256 + (i === 0 ? byte & 0x3f : byte), 0);
  if (!Number.isSafeInteger(value)) throw new LayerFault(`the ${what} of an entry is too large`);
  return value;
}

function numberFrom(given: string | undefined, otherwise: number, what: string): number {
  if (given === undefined) return otherwise;
  if (!/^\d{1,15}$/.test(given)) throw new LayerFault(`the ${what} of an entry is not a number`);
  return Number(given);
}

function secondsFrom(given: string | undefined, otherwise: number): number {
  const value = given === undefined ? otherwise : Number(given);
  // A time that no file system can store is clamped.
  return Number.isFinite(value) ? Math.min(Math.max(value, 0), 2 ** 33) : 0;
}

/** `length key=value\n`, one after the other; the length counts itself. */
function paxRecords(data: Buffer): [string, string][] {
  const records: [string, string][] = [];
  let at = 0;
  while (at < data.length) {
    const space = data.indexOf(32, at);
    const digits = space < 0 ? "" : data.toString("latin1", at, space);
    const length = /^\d{1,9}$/.test(digits) ? Number(digits) : 0;
    const record = data.toString("latin1", space + 1, at + length);
    const equals = record.indexOf("=");
    if (length === 0 || at + length > data.length || !record.endsWith("\n") || equals < 1)
      throw new LayerFault("an extended header is damaged");
    records.push([record.slice(0, equals), record.slice(equals + 1, -1)]);
    at += length;
  }
  return records;
}
