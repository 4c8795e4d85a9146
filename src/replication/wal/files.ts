/**
 * The three files of a database, opened once. This module owns every raw descriptor on them, for one reason:
 * closing any descriptor of a file drops all locks the process holds on it, and SQLite's locks in this process
 * are what keeps applications out. So they are closed only after the last connection of this process is.
 */
import { type BigIntStats, closeSync, fstatSync, openSync, readSync, statSync, writeSync } from "node:fs";
import {
  alignedBuffer,
  FRAME_HEADER_BYTES,
  frameOffset,
  readWalHeader,
  WAL_HEADER_BYTES,
  type WalCursor,
} from "./frames.ts";
import { type IndexHeader, readIndexHeader } from "./wal-index.ts";

/** In the index: frames already checkpointed; and frames to be, set before the first page is copied. */
const COPIED_AT = 96;
const COPIED_BACK_AT = 128;

/** Detects writes to a database file: SQLite changes at least one of these. */
export interface FileStamp {
  inode: string;
  size: number;
  mtime: string;
  ctime: string;
}

/** Identities of the files, inode and creation time, to detect replacements. */
export interface FileIdentities {
  database: string;
  wal: string;
}

interface Identifying {
  ino: bigint;
  birthtimeNs: bigint;
}

// An inode alone is not enough: it is often reused.
const identity = ({ ino, birthtimeNs }: Identifying): string => `${ino}:${birthtimeNs}`;

/** The identity of a file by its name; undefined when it does not exist. */
export function identityAt(path: string): string | undefined {
  const stat = statSync(path, { bigint: true, throwIfNoEntry: false });
  return stat && identity(stat);
}

const stampOf = ({ ino, size, mtimeNs, ctimeNs }: BigIntStats): FileStamp => ({
  inode: ino.toString(),
  size: Number(size),
  mtime: mtimeNs.toString(),
  ctime: ctimeNs.toString(),
});

/** The same of a file by its name, before it is opened. */
export const stampAt = (path: string): FileStamp => stampOf(statSync(path, { bigint: true }));

function openAll(path: string): [database: number, wal: number, index: number] {
  const opened: number[] = [];
  try {
    for (const end of ["", "-wal", "-shm"]) opened.push(openSync(path + end, "r+"));
    return opened as [number, number, number];
  } catch (error) {
    for (const fd of opened) closeSync(fd);
    throw error;
  }
}

export class DatabaseFiles {
  readonly path: string;
  readonly database: number;
  readonly wal: number;
  readonly index: number;
  readonly identities: FileIdentities;

  /** The files must exist: open a connection and read first. */
  constructor(path: string) {
    this.path = path;
    [this.database, this.wal, this.index] = openAll(path);
    const of = (fd: number): string => identity(fstatSync(fd, { bigint: true }));
    this.identities = { database: of(this.database), wal: of(this.wal) };
  }

  /** Only after all connections of this process to the database were closed. */
  close(): void {
    for (const fd of [this.database, this.wal, this.index]) closeSync(fd);
  }

  indexHeader(): IndexHeader | undefined {
    return readIndexHeader(this.index);
  }

  /** Frames whose checkpoint has at least begun. */
  copiedBack(): number {
    return this.#indexWord(COPIED_BACK_AT);
  }

  /** Progress of checkpoints: frames done, and frames attempted. */
  checkpointed(): { copied: number; attempted: number } {
    return { copied: this.#indexWord(COPIED_AT), attempted: this.#indexWord(COPIED_BACK_AT) };
  }

  /** Whether all these frames are checkpointed. */
  allCopied({ frame }: Pick<IndexHeader, "frame">): boolean {
    return this.#indexWord(COPIED_AT) === frame;
  }

  #indexWord(at: number): number {
    const bytes = Buffer.alloc(4);
    readSync(this.index, bytes, 0, 4, at);
    return bytes.readUInt32LE(0);
  }

  walHeader(): WalCursor | undefined {
    const bytes = alignedBuffer(WAL_HEADER_BYTES);
    return readSync(this.wal, bytes, 0, WAL_HEADER_BYTES, 0) === WAL_HEADER_BYTES ? readWalHeader(bytes) : undefined;
  }

  /** The checkpoint sequence number of the WAL header, which counts generations. */
  walSequence(): number {
    const bytes = Buffer.alloc(WAL_HEADER_BYTES);
    return readSync(this.wal, bytes, 0, WAL_HEADER_BYTES, 0) === WAL_HEADER_BYTES ? bytes.readUInt32BE(12) : 0;
  }

  /** Page number, commit, salts and checksums of one frame, as they lie in the file. */
  frameHeader(frame: number, page_size: number): Buffer {
    const bytes = Buffer.alloc(FRAME_HEADER_BYTES);
    readSync(this.wal, bytes, 0, FRAME_HEADER_BYTES, frameOffset(frame, page_size));
    return bytes;
  }

  readPages(target: Buffer, first: number, page_size: number): void {
    const read = readSync(this.database, target, 0, target.length, (first - 1) * page_size);
    // Pages that are only in the log.
    target.fill(0, read);
  }

  readFramePage(target: Buffer, frame: number, page_size: number): void {
    readSync(this.wal, target, 0, page_size, frameOffset(frame, page_size) + FRAME_HEADER_BYTES);
  }

  writeWal(bytes: Buffer, offset: number): void {
    for (let done = 0; done < bytes.length; ) {
      done += writeSync(this.wal, bytes, done, bytes.length - done, offset + done);
    }
  }

  databaseBytes(): number {
    return fstatSync(this.database).size;
  }

  walBytes(): number {
    return fstatSync(this.wal).size;
  }

  /** Change time (ctime) of the database file, which cannot be forged. */
  databaseChangedMs(): number {
    return fstatSync(this.database).ctimeMs;
  }

  stamp(): FileStamp {
    return stampOf(fstatSync(this.database, { bigint: true }));
  }
}
