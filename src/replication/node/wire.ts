/**
 * The stream from a primary to a replica: frames of type (4), length (4) and payload, in the body of an HTTP answer.
 *
 *   transaction     length of the name (2), name, LTX file
 *   snapshot        JSON: which database, at which position, its size, and the blocks that are not sent; then parts, then the end
 *   snapshot_part   number of the first page (4), pages that follow each other
 *   gone            JSON: a database whose deletion the primary has logged, and the position of that
 *   unknown         JSON: a database that the primary does not have open, and why
 *   known           JSON: a database whose position the primary continues from; it revokes an earlier `unknown`
 *   ready           everything the primary had when the replica connected has been sent
 *   heartbeat       JSON: the primary's time; after `ready`, and when nothing else was sent for a while
 *   sync            requests that everything received is made durable and acknowledged at /ack
 *   handoff         JSON: the positions at which the replica is to take over as primary, in which term
 */
import { REPLICATION_LIMITS } from "../limits.ts";
import type { PageRun } from "../wal/scan.ts";

export const FRAME = {
  transaction: 1,
  ready: 2,
  snapshot: 3,
  snapshot_part: 4,
  snapshot_end: 5,
  gone: 6,
  heartbeat: 7,
  handoff: 8,
  unknown: 9,
  sync: 10,
  known: 11,
} as const;

const HEADER_BYTES = 8;

export interface Frame {
  type: number;
  payload: Buffer;
}

export function frameHeader(type: number, length: number): Buffer {
  const bytes = Buffer.allocUnsafe(HEADER_BYTES);
  bytes.writeUInt32BE(type, 0);
  bytes.writeUInt32BE(length, 4);
  return bytes;
}

export function jsonFrame(type: number, value: unknown): Buffer {
  const payload = Buffer.from(JSON.stringify(value));
  return Buffer.concat([frameHeader(type, payload.length), payload]);
}

/** Header and name; the LTX file follows without a copy. */
export function transactionHead(name: string, ltx_bytes: number): Buffer {
  const name_bytes = Buffer.byteLength(name);
  const bytes = Buffer.allocUnsafe(HEADER_BYTES + 2 + name_bytes);
  bytes.writeUInt32BE(FRAME.transaction, 0);
  bytes.writeUInt32BE(2 + name_bytes + ltx_bytes, 4);
  bytes.writeUInt16BE(name_bytes, HEADER_BYTES);
  bytes.write(name, HEADER_BYTES + 2);
  return bytes;
}

/** Header and the first page's number; the pages themselves follow as they are. */
export function snapshotPartHead(first: number, bytes: number): Buffer {
  const head = Buffer.allocUnsafe(HEADER_BYTES + 4);
  head.writeUInt32BE(FRAME.snapshot_part, 0);
  head.writeUInt32BE(4 + bytes, 4);
  head.writeUInt32BE(first, HEADER_BYTES);
  return head;
}

export function readSnapshotPart(payload: Buffer): PageRun {
  return { first: payload.length < 4 ? 0 : payload.readUInt32BE(0), data: payload.subarray(4) };
}

export function readTransaction(payload: Buffer): { name: string; ltx: Buffer } {
  const length = payload.readUInt16BE(0);
  return { name: payload.toString("utf8", 2, 2 + length), ltx: payload.subarray(2 + length) };
}

/** Larger buffers are released after use. */
const USUAL_BYTES = 4 * 1024 * 1024;

/** Splits a byte stream into frames, in reused memory. */
export class FrameReader {
  #memory = Buffer.alloc(0);
  #start = 0;
  #end = 0;

  /** Unread bytes. */
  get waiting(): number {
    return this.#end - this.#start;
  }

  /** Adds bytes. Earlier frames become invalid. */
  push(bytes: Buffer): void {
    if (this.#start === this.#end) [this.#start, this.#end] = [0, 0];
    this.#makeRoom(bytes.length);
    bytes.copy(this.#memory, this.#end);
    this.#end += bytes.length;
  }

  /** Complete frames, valid until the next `push`. Throws on a protocol error. */
  *frames(): Generator<Frame> {
    while (this.#end - this.#start >= HEADER_BYTES) {
      const length = this.#memory.readUInt32BE(this.#start + 4);
      if (length > REPLICATION_LIMITS.stream_frame_bytes) throw new Error(`a frame of ${length} bytes`);
      const from = this.#start + HEADER_BYTES;
      if (this.#end < from + length) return;
      const type = this.#memory.readUInt32BE(this.#start);
      this.#start = from + length;
      yield { type, payload: this.#memory.subarray(from, from + length) };
    }
  }

  /** Moves unread bytes to the front, into larger memory if needed. */
  #makeRoom(bytes: number): void {
    const rest = this.#memory.subarray(this.#start, this.#end);
    const needed = rest.length + bytes;
    const oversized = this.#memory.length > USUAL_BYTES && needed <= USUAL_BYTES;
    if (needed > this.#memory.length || oversized) {
      const larger = Buffer.allocUnsafeSlow(Math.max(needed, oversized ? USUAL_BYTES : this.#memory.length * 2));
      rest.copy(larger);
      this.#memory = larger;
    } else if (this.#end + bytes > this.#memory.length) {
      this.#memory.copyWithin(0, this.#start, this.#end);
    } else {
      return;
    }
    this.#start = 0;
    this.#end = rest.length;
  }
}
