import { closeSync, fdatasyncSync, fstatSync, ftruncateSync, openSync, readSync, writevSync } from "node:fs";
import { basename } from "node:path";
import { REPLICATION_LIMITS } from "../limits.ts";
import { decodeLtx, LTX_TRAILER_BYTES, LtxError } from "../ltx/codec.ts";
import { hex16 } from "../position.ts";
import {
  decodeRecordHeader,
  encodeRecordHeader,
  type LogRecord,
  RECORD_HEADER_BYTES,
  type RecordHeader,
} from "./record.ts";

/** Buffers per writev; the kernel's limit is 1024. */
const BUFFERS_AT_ONCE = 1000;

export function segmentName(first: number): string {
  return `${hex16(first)}.seg`;
}

/** The txid in a segment's name, or undefined for other files. */
export function segmentFirst(file: string): number | undefined {
  const match = /^([0-9a-f]{16})\.seg$/.exec(basename(file));
  return match ? Number(`0x${match[1]}`) : undefined;
}

/** One file of the log with the transactions `first` to `last`. */
export class Segment {
  readonly path: string;
  readonly first: number;
  readonly fd: number;
  readonly #offsets: number[] = [];
  #size = 0;

  constructor(path: string, first: number) {
    this.path = path;
    this.first = first;
    this.fd = openSync(path, "a+", 0o600);
  }

  get last(): number {
    return this.first + this.#offsets.length - 1;
  }

  get size(): number {
    return this.#size;
  }

  get modified_ms(): number {
    return fstatSync(this.fd).mtimeMs;
  }

  /**
   * Scans an existing file. Returns false when the last valid record is not followed by a clean end. `verify`: reads
   * all transactions at the end, which may not be durable; of the others only headers.
   */
  load(verify: boolean): boolean {
    const file_size = fstatSync(this.fd).size;
    while (this.#size < file_size) {
      const header = this.#headerAt(this.#size);
      if (!header || header.txid !== this.last + 1) return false;
      const end = this.#size + RECORD_HEADER_BYTES + header.length;
      const doubtful = verify && file_size - this.#size <= REPLICATION_LIMITS.doubtful_bytes;
      if (end > file_size || (doubtful && !this.#wholeAt(this.#size, header))) return false;
      this.#offsets.push(this.#size);
      this.#size = end;
    }
    return true;
  }

  append(records: readonly LogRecord[]): void {
    const headers = Buffer.allocUnsafe(records.length * RECORD_HEADER_BYTES);
    const buffers: Buffer[] = [];
    for (const [i, record] of records.entries()) {
      const header = headers.subarray(i * RECORD_HEADER_BYTES, (i + 1) * RECORD_HEADER_BYTES);
      encodeRecordHeader(record, header);
      this.#offsets.push(this.#size);
      this.#size += RECORD_HEADER_BYTES + record.ltx.length;
      buffers.push(header, record.ltx);
    }
    for (let i = 0; i < buffers.length; i += BUFFERS_AT_ONCE) this.#write(buffers.slice(i, i + BUFFERS_AT_ONCE));
  }

  header(txid: number): RecordHeader | undefined {
    const offset = this.#offsets[txid - this.first];
    return offset === undefined ? undefined : this.#headerAt(offset);
  }

  /** The LTX file of a transaction, with its own checksums. */
  read(txid: number): Buffer | undefined {
    const offset = this.#offsets[txid - this.first];
    if (offset === undefined) return undefined;
    const end = this.#offsets[txid - this.first + 1] ?? this.#size;
    return this.#bytes(offset + RECORD_HEADER_BYTES, end - offset - RECORD_HEADER_BYTES);
  }

  /** The trailer of its LTX file, with the checksum afterwards. */
  readTrailer(txid: number): Buffer | undefined {
    if (this.#offsets[txid - this.first] === undefined) return undefined;
    const end = this.#offsets[txid - this.first + 1] ?? this.#size;
    return this.#bytes(end - LTX_TRAILER_BYTES, LTX_TRAILER_BYTES);
  }

  /** Removes the transactions after `txid`, in memory and in the file. */
  cutAfter(txid: number): void {
    const keep = Math.max(0, txid - this.first + 1);
    this.#size = this.#offsets[keep] ?? this.#size;
    this.#offsets.length = Math.min(keep, this.#offsets.length);
    ftruncateSync(this.fd, this.#size);
    fdatasyncSync(this.fd);
  }

  close(): void {
    closeSync(this.fd);
  }

  #headerAt(offset: number): RecordHeader | undefined {
    return decodeRecordHeader(this.#bytes(offset, RECORD_HEADER_BYTES));
  }

  #wholeAt(offset: number, header: RecordHeader): boolean {
    try {
      decodeLtx(this.#bytes(offset + RECORD_HEADER_BYTES, header.length));
      return true;
    } catch (error) {
      if (error instanceof LtxError) return false;
      throw error;
    }
  }

  #bytes(offset: number, length: number): Buffer {
    const bytes = Buffer.allocUnsafe(length);
    return bytes.subarray(0, readSync(this.fd, bytes, 0, length, offset));
  }

  /** Completes short writes; after a failed one the file's content is unknown. */
  #write(buffers: Buffer[]): void {
    let rest = buffers;
    while (rest.length > 0) {
      let written = writevSync(this.fd, rest);
      let whole = 0;
      while (whole < rest.length && written >= (rest[whole]?.length ?? 0)) written -= rest[whole++]?.length ?? 0;
      rest = rest.slice(whole);
      const [head] = rest;
      if (head && written > 0) rest[0] = head.subarray(written);
    }
  }
}
