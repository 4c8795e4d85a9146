/**
 * The kernel's protocol for file systems in programs (linux/fuse.h), as far as one folder of files to read needs it. All
 * numbers are little-endian, as on both architectures we run on.
 */

import { constants } from "node:fs";

export const ROOT = 1;
/** The first file; files are numbered from here on. */
export const FIRST = 2;
/** Largest answer to a read. */
export const READ_BYTES = 1024 * 1024;
/** A request without data is much smaller; the kernel insists on room for this. */
export const REQUEST_BYTES = 8192;

export const OP = {
  lookup: 1,
  forget: 2,
  getattr: 3,
  open: 14,
  read: 15,
  statfs: 17,
  release: 18,
  flush: 25,
  init: 26,
  opendir: 27,
  readdir: 28,
  releasedir: 29,
  interrupt: 36,
  destroy: 38,
  batch_forget: 42,
} as const;

/** Requests that get no answer. */
export const UNANSWERED: ReadonlySet<number> = new Set([OP.forget, OP.interrupt, OP.batch_forget]);

export const ERROR = { ENOENT: 2, EIO: 5, ENOSYS: 38 } as const;

const IN_HEADER = 40;
const OUT_HEADER = 16;
const [MAJOR, MINOR] = [7, 31];
const CAN = { ASYNC_READ: 1 << 0, ASYNC_DIO: 1 << 15, MAX_PAGES: 1 << 22 };
const PAGE = 4096;
/**
 * The kernel keeps no pages of the file: what it reads is put where it is wanted. A reader that asks for that itself
 * (O_DIRECT) gets it without this flag, which would make the kernel ask for one part after the other.
 */
const DIRECT_IO = 1;
const [DIRECTORY, REGULAR] = [0o040700, 0o100600];
const FOREVER_S = 3600n;

export interface Request {
  op: number;
  id: bigint;
  node: number;
  body: Buffer;
}

export const requestIn = (bytes: Buffer): Request => ({
  op: bytes.readUInt32LE(4),
  id: bytes.readBigUInt64LE(8),
  node: Number(bytes.readBigUInt64LE(16)),
  body: bytes.subarray(IN_HEADER, bytes.readUInt32LE(0)),
});

/** The head of an answer with `length` bytes after it, or with an error. */
export function answerHead(id: bigint, length: number, error = 0): Buffer {
  const head = Buffer.alloc(OUT_HEADER);
  head.writeUInt32LE(OUT_HEADER + length);
  head.writeInt32LE(-error, 4);
  head.writeBigUInt64LE(id, 8);
  return head;
}

export const nameIn = ({ body }: Request): string => body.subarray(0, body.indexOf(0)).toString();

export const readIn = ({ body }: Request): { offset: number; length: number } => ({
  offset: Number(body.readBigUInt64LE(8)),
  length: body.readUInt32LE(16),
});

export function initAnswer({ body }: Request): Buffer {
  const offered = body.readUInt32LE(12);
  const answer = Buffer.alloc(64);
  answer.writeUInt32LE(MAJOR, 0);
  answer.writeUInt32LE(MINOR, 4);
  answer.writeUInt32LE(READ_BYTES, 8);
  answer.writeUInt32LE(offered & (CAN.ASYNC_READ | CAN.ASYNC_DIO | CAN.MAX_PAGES), 12);
  answer.writeUInt32LE(PAGE, 20);
  answer.writeUInt32LE(1, 24);
  answer.writeUInt16LE(READ_BYTES / PAGE, 28);
  return answer;
}

function attributes(node: number, size: number): Buffer {
  const bytes = Buffer.alloc(88);
  bytes.writeBigUInt64LE(BigInt(node), 0);
  bytes.writeBigUInt64LE(BigInt(size), 8);
  bytes.writeBigUInt64LE(BigInt(Math.ceil(size / 512)), 16);
  bytes.writeUInt32LE(node === ROOT ? DIRECTORY : REGULAR, 60);
  bytes.writeUInt32LE(1, 64);
  bytes.writeUInt32LE(PAGE, 80);
  return bytes;
}

export function entryAnswer(node: number, size: number): Buffer {
  const head = Buffer.alloc(40);
  head.writeBigUInt64LE(BigInt(node), 0);
  for (const at of [16, 24]) head.writeBigUInt64LE(FOREVER_S, at);
  return Buffer.concat([head, attributes(node, size)]);
}

export function attributesAnswer(node: number, size: number): Buffer {
  const head = Buffer.alloc(16);
  head.writeBigUInt64LE(FOREVER_S, 0);
  return Buffer.concat([head, attributes(node, size)]);
}

export function openAnswer({ body }: Request): Buffer {
  const answer = Buffer.alloc(16);
  answer.writeUInt32LE(body.readUInt32LE() & constants.O_DIRECT ? 0 : DIRECT_IO, 8);
  return answer;
}

/** Zeros: a file system without room of its own. */
export const statfsAnswer = (): Buffer => Buffer.alloc(80);
