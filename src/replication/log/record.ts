/**
 * One transaction in a segment of the log: a header of our own, then its LTX file. Big-endian.
 *
 *     0   "HLR1"            magic
 *     4   length            of the LTX file
 *     8   crc32             of the rest of this header
 *     12  frame             last frame of the transaction in this node's own WAL; all ones: it has none to itself
 *     16  term              of the primary that made it
 *     24  salt1 salt2       generation of that WAL
 *     32  sum0 sum1         checksum of that WAL up to that frame
 *     40  txid
 *     48  the LTX file
 *
 * The LTX file has a checksum of its own. The place in the WAL is what lets a node know after a restart which
 * transactions its database has, without reading the database.
 */
import { crc32 } from "node:zlib";
import type { WalCursor } from "../wal/frames.ts";

export const RECORD_HEADER_BYTES = 48;
const MAGIC = 0x484c5231;
const SUMMED_FROM = 12;
/** No WAL has this many frames. */
const NO_PLACE: WalCursor = { frame: 0xffff_ffff, salt1: 0, salt2: 0, sum0: 0, sum1: 0 };

export interface LogRecord {
  readonly txid: number;
  readonly term: number;
  /** End of the transaction in this node's WAL. Undefined: it is there only together with later ones. */
  readonly cursor: WalCursor | undefined;
  readonly ltx: Buffer;
}

export interface RecordHeader {
  txid: number;
  term: number;
  cursor: WalCursor | undefined;
  length: number;
}

/** Fills `bytes`, which must have the header's size. */
export function encodeRecordHeader({ txid, term, cursor = NO_PLACE, ltx }: LogRecord, bytes: Buffer): void {
  bytes.writeUInt32BE(MAGIC, 0);
  bytes.writeUInt32BE(ltx.length, 4);
  bytes.writeUInt32BE(cursor.frame, 12);
  writeUInt64(bytes, term, 16);
  bytes.writeUInt32BE(cursor.salt1, 24);
  bytes.writeUInt32BE(cursor.salt2, 28);
  bytes.writeUInt32BE(cursor.sum0, 32);
  bytes.writeUInt32BE(cursor.sum1, 36);
  writeUInt64(bytes, txid, 40);
  bytes.writeUInt32BE(crc32(bytes.subarray(SUMMED_FROM)), 8);
}

function writeUInt64(bytes: Buffer, value: number, at: number): void {
  bytes.writeUInt32BE(Math.floor(value / 2 ** 32), at);
  bytes.writeUInt32BE(value % 2 ** 32, at + 4);
}

/** Undefined when there is no record: the end, or damage. */
export function decodeRecordHeader(bytes: Buffer): RecordHeader | undefined {
  if (bytes.length < RECORD_HEADER_BYTES || bytes.readUInt32BE(0) !== MAGIC) return undefined;
  if (crc32(bytes.subarray(SUMMED_FROM, RECORD_HEADER_BYTES)) !== bytes.readUInt32BE(8)) return undefined;
  const cursor = {
    frame: bytes.readUInt32BE(12),
    salt1: bytes.readUInt32BE(24),
    salt2: bytes.readUInt32BE(28),
    sum0: bytes.readUInt32BE(32),
    sum1: bytes.readUInt32BE(36),
  };
  return {
    length: bytes.readUInt32BE(4),
    term: Number(bytes.readBigUInt64BE(16)),
    txid: Number(bytes.readBigUInt64BE(40)),
    cursor: cursor.frame === NO_PLACE.frame ? undefined : cursor,
  };
}
