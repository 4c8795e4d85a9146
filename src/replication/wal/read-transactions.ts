import { readSync } from "node:fs";
import { lockPage, type Page } from "../ltx/page-table.ts";
import type { DatabaseFiles } from "./files.ts";
import {
  alignedBuffer,
  decodeFrame,
  FRAME_HEADER_BYTES,
  type Frame,
  frameOffset,
  type WalCursor,
  wordsOf,
} from "./frames.ts";

/** Frames read at once. */
const FRAMES_AT_ONCE = 256;

/** The WAL does not match its index. */
export class WalError extends Error {
  override readonly name = "WalError";
}

export interface WalTransaction {
  /** The pages after it, ascending, without the lock page and truncated ones. */
  pages: Page[];
  commit: number;
  /** Place and length in the WAL file, bytes. */
  offset: number;
  size: number;
  /** After its last frame. */
  cursor: WalCursor;
}

/** Reused memory, because captures read much data briefly. */
let reused = alignedBuffer(0);

function bufferFor(length: number, in_use: boolean): Buffer {
  if (in_use) return alignedBuffer(length);
  if (reused.length < length) reused = alignedBuffer(length);
  return reused.subarray(0, length);
}

/** `in_use` says whether frames of the previous batch are still needed. */
function* frames(
  files: DatabaseFiles,
  page_size: number,
  cursor: WalCursor,
  upto: number,
  in_use: () => boolean,
): Generator<Frame> {
  const size = FRAME_HEADER_BYTES + page_size;
  while (cursor.frame < upto) {
    const count = Math.min(FRAMES_AT_ONCE, upto - cursor.frame);
    const bytes = bufferFor(count * size, in_use());
    const read = readSync(files.wal, bytes, 0, bytes.length, frameOffset(cursor.frame + 1, page_size));
    if (read !== bytes.length) throw new WalError(`the log ends before frame ${upto}`);
    const words = wordsOf(bytes);
    for (let i = 0; i < count; i++) {
      const frame = decodeFrame(bytes, words, i * size, page_size, cursor);
      if (!frame) throw new WalError(`frame ${cursor.frame + 1} does not follow from the ones before`);
      yield frame;
    }
  }
}

/** Advances `cursor` to frame `upto`, a commit according to the index. Pages are valid until the next transaction. */
export function* readTransactions(
  files: DatabaseFiles,
  page_size: number,
  cursor: WalCursor,
  upto: number,
): Generator<WalTransaction> {
  const skip = lockPage(page_size);
  let newest = new Map<number, Buffer>();
  let start = cursor.frame;
  for (const { number, data, commit } of frames(files, page_size, cursor, upto, () => newest.size > 0)) {
    newest.set(number, data);
    if (commit === 0) continue;
    const numbers = [...newest.keys()].filter((n) => n <= commit && n !== skip).sort((a, b) => a - b);
    yield {
      pages: numbers.map((n) => ({ number: n, data: newest.get(n) ?? data })),
      commit,
      offset: frameOffset(start + 1, page_size),
      size: (cursor.frame - start) * (FRAME_HEADER_BYTES + page_size),
      cursor: { ...cursor },
    };
    newest = new Map();
    start = cursor.frame;
  }
  if (start !== cursor.frame) throw new WalError(`frame ${upto} does not end a transaction`);
}
