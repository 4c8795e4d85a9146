import {
  closeSync,
  fsyncSync,
  openSync,
  readdirSync,
  readFileSync,
  readSync,
  rmSync,
  statSync,
  writeFileSync,
} from "node:fs";
import { join } from "node:path";
import { crc32 } from "node:zlib";
import { makeDir, StorageError, writeAll } from "../tsdb/files.ts";
import { REMOTE_LIMITS } from "./limits.ts";

/** A write request's series for one tenant, not yet packed. */
export interface Entry {
  tenant: number;
  bytes: Buffer;
}

interface Segment {
  number: number;
  bytes: number;
}

/** length · crc of what follows · tenant, each 32 bits, and the bytes. */
const HEADER_BYTES = 12;

/**
 * Samples that wait for the engine, in files that are written at the end and read from the beginning:
 *
 *     00000001.queue …     entries back to back; a file goes when all of it was sent
 *     position             how far the first file was sent
 *
 * What was put in survives kill -9 at once and a power cut after `sync`. Sending is at least once: after a crash the
 * entries since the last position go a second time, and the same sample twice is one sample.
 */
export class DiskQueue {
  readonly #dir: string;
  readonly #segments: Segment[] = [];
  /** Where the next entry is read in the first segment. */
  #at = 0;
  #fd: number | undefined;
  #readFd: { number: number; fd: number } | undefined;
  /** Dropped because the queue was full, or could not be read. */
  dropped_bytes = 0;

  constructor(dir: string) {
    this.#dir = dir;
    makeDir(dir);
    const names = readdirSync(dir).filter((name) => /^\d{8}\.queue$/.test(name));
    for (const name of names.sort()) {
      this.#segments.push({ number: Number.parseInt(name, 10), bytes: statSync(join(dir, name)).size });
    }
    this.#at = this.#readPosition();
  }

  get bytes(): number {
    return this.#segments.reduce((sum, { bytes }) => sum + bytes, 0) - this.#at;
  }

  /** Throws StorageError when the write fails: then nothing was added. */
  put(tenant: number, bytes: Uint8Array): void {
    const header = Buffer.alloc(HEADER_BYTES);
    header.writeUInt32LE(bytes.length, 0);
    header.writeUInt32LE(tenant, 8);
    header.writeUInt32LE(crc32(bytes, crc32(header.subarray(8))), 4);
    try {
      const segment = this.#writable();
      writeAll(this.#fd as number, Buffer.concat([header, bytes]));
      segment.bytes += HEADER_BYTES + bytes.length;
    } catch (thrown) {
      // Half an entry may be there; nothing follows it, so the rest of the file is not read.
      this.#finishWriting();
      throw new StorageError("samples for the metrics engine cannot be queued on disk", thrown);
    }
    this.#dropOldest();
  }

  /** The first entries of one tenant, up to so many bytes (one at least), and what to call when they were taken. */
  peek(most_bytes: number): { entries: Entry[]; taken: () => void } | undefined {
    const entries: Entry[] = [];
    let at = this.#at;
    let bytes = 0;
    for (const [first] = this.#segments; first; ) {
      const entry = this.#read(first, at);
      if (!entry) break;
      if (entries[0] && (entries[0].tenant !== entry.tenant || bytes + entry.bytes.length > most_bytes)) break;
      entries.push(entry);
      bytes += entry.bytes.length;
      at += HEADER_BYTES + entry.bytes.length;
    }
    if (entries.length === 0) return this.#nextSegment() ? this.peek(most_bytes) : undefined;
    const [segment] = this.#segments;
    return {
      entries,
      taken: () => {
        if (this.#segments[0] !== segment) return; // It was dropped meanwhile.
        this.#at = at;
        this.#writePosition();
      },
    };
  }

  sync(): void {
    if (this.#fd !== undefined) fsyncSync(this.#fd);
  }

  close(): void {
    this.sync();
    this.#finishWriting();
    this.#finishReading();
  }

  #path(number: number): string {
    return join(this.#dir, `${String(number).padStart(8, "0")}.queue`);
  }

  /** The last segment, or a new one: a file of an earlier run is never written to again. */
  #writable(): Segment {
    let last = this.#segments.at(-1);
    if (this.#fd === undefined || !last || last.bytes >= REMOTE_LIMITS.queue_segment_bytes) {
      this.#finishWriting();
      last = { number: (last?.number ?? 0) + 1, bytes: 0 };
      this.#fd = openSync(this.#path(last.number), "wx");
      this.#segments.push(last);
    }
    return last;
  }

  #read(segment: Segment, at: number): Entry | undefined {
    if (at + HEADER_BYTES > segment.bytes) return undefined;
    if (this.#readFd?.number !== segment.number) {
      this.#finishReading();
      this.#readFd = { number: segment.number, fd: openSync(this.#path(segment.number), "r") };
    }
    const { fd } = this.#readFd;
    const header = Buffer.alloc(HEADER_BYTES);
    readSync(fd, header, 0, HEADER_BYTES, at);
    const length = header.readUInt32LE(0);
    if (at + HEADER_BYTES + length > segment.bytes) return undefined;
    const bytes = Buffer.allocUnsafeSlow(length);
    readSync(fd, bytes, 0, length, at + HEADER_BYTES);
    if (crc32(bytes, crc32(header.subarray(8))) !== header.readUInt32LE(4)) return undefined;
    return { tenant: header.readUInt32LE(8), bytes };
  }

  /** Nothing more to read in the first segment: on to the next, if it is not the one being written. */
  #nextSegment(): boolean {
    const [first] = this.#segments;
    if (!first || (this.#segments.length === 1 && this.#fd !== undefined)) return false;
    // What is left is the end of a write that was cut off, or damaged.
    this.dropped_bytes += first.bytes - this.#at;
    this.#removeFirst();
    return this.#segments.length > 0;
  }

  #dropOldest(): void {
    while (this.bytes > REMOTE_LIMITS.queue_bytes && this.#segments.length > 1) {
      this.dropped_bytes += (this.#segments[0]?.bytes ?? 0) - this.#at;
      this.#removeFirst();
    }
  }

  #removeFirst(): void {
    const first = this.#segments.shift();
    if (!first) return;
    if (this.#readFd?.number === first.number) this.#finishReading();
    rmSync(this.#path(first.number), { force: true });
    this.#at = 0;
    this.#writePosition();
  }

  /** `segment offset`; a position of another segment says nothing about this one. */
  #readPosition(): number {
    try {
      const [number, at] = readFileSync(join(this.#dir, "position"), "utf8").split(" ").map(Number);
      return number === this.#segments[0]?.number ? (at ?? 0) : 0;
    } catch {
      return 0;
    }
  }

  #writePosition(): void {
    writeFileSync(join(this.#dir, "position"), `${this.#segments[0]?.number ?? 0} ${this.#at}`);
  }

  #finishWriting(): void {
    if (this.#fd !== undefined) closeSync(this.#fd);
    this.#fd = undefined;
  }

  #finishReading(): void {
    if (this.#readFd) closeSync(this.#readFd.fd);
    this.#readFd = undefined;
  }
}
