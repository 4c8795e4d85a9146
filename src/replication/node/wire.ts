/**
 * The stream from a primary to a replica: frames of type (4), length (4) and payload, in the body of an HTTP answer.
 *
 *   transaction     length of the name (2), name, LTX file
 *   snapshot        JSON: which database, and why; then parts of an LTX file, then the end
 *   gone            JSON: a database the primary does not have
 *   ready           everything the primary had when the replica connected has been sent
 *   heartbeat       nothing else was sent for a while
 *   handoff         JSON: the positions at which the replica is to take over as primary, in which term
 */
import { REPLICATION_LIMITS } from "../limits.ts";

export const FRAME = {
  transaction: 1,
  ready: 2,
  snapshot: 3,
  snapshot_part: 4,
  snapshot_end: 5,
  gone: 6,
  heartbeat: 7,
  handoff: 8,
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

/** Header and name; the LTX file itself follows as it is, without being copied. */
export function transactionHead(name: string, ltx_bytes: number): Buffer {
  const text = Buffer.from(name);
  const length = Buffer.allocUnsafe(2);
  length.writeUInt16BE(text.length, 0);
  return Buffer.concat([frameHeader(FRAME.transaction, 2 + text.length + ltx_bytes), length, text]);
}

export function readTransaction(payload: Buffer): { name: string; ltx: Buffer } {
  const length = payload.readUInt16BE(0);
  return { name: payload.toString("utf8", 2, 2 + length), ltx: payload.subarray(2 + length) };
}

/** Cuts a stream of bytes into frames. */
export class FrameReader {
  #parts: Buffer[] = [];
  #size = 0;
  #needed = HEADER_BYTES;

  /** The frames that are complete with `bytes`. Throws when the peer does not speak this protocol. */
  *push(bytes: Buffer): Generator<Frame> {
    this.#parts.push(bytes);
    this.#size += bytes.length;
    while (this.#size >= this.#needed) {
      const all = this.#parts.length === 1 ? (this.#parts[0] ?? bytes) : Buffer.concat(this.#parts);
      this.#parts = [all];
      const length = all.readUInt32BE(4);
      if (length > REPLICATION_LIMITS.stream_frame_bytes) throw new Error(`a frame of ${length} bytes`);
      this.#needed = HEADER_BYTES + length;
      if (this.#size < this.#needed) return;
      const frame = { type: all.readUInt32BE(0), payload: all.subarray(HEADER_BYTES, this.#needed) };
      this.#parts = [all.subarray(this.#needed)];
      this.#size -= this.#needed;
      this.#needed = HEADER_BYTES;
      yield frame;
    }
  }
}
