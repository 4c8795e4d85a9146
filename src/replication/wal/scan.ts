/** Reading a whole database as of one moment: the database file with the committed frames of the log laid over it. */
import { lockPage, type Page, PageTable } from "../ltx/page-table.ts";
import { finish, type Steps } from "../steps.ts";
import type { DatabaseFiles } from "./files.ts";
import { alignedBuffer } from "./frames.ts";

/** Pages per read; the caller yields to the event loop after each. */
const PAGES_AT_ONCE = 256;

/** What to read. The caller must prevent changes by a lock or a read transaction. */
export interface Moment {
  page_size: number;
  /** Pages of the database. */
  pages: number;
  /** Frames of the log that count. */
  frames: number;
}

/** The newest frame of each page, among the first `frames`. */
function newestFrames(files: DatabaseFiles, { page_size, frames }: Moment): Map<number, number> {
  const newest = new Map<number, number>();
  for (let frame = 1; frame <= frames; frame++) {
    newest.set(files.frameHeader(frame, page_size).readUInt32BE(0), frame);
  }
  return newest;
}

/** All pages but the lock page, in order, in batches. Pages are valid until the next batch. */
export function* scan(
  files: DatabaseFiles,
  moment: Moment,
  leaveOut: (page: number) => boolean = () => false,
): Generator<Page[]> {
  const { page_size, pages } = moment;
  const newest = newestFrames(files, moment);
  const skip = lockPage(page_size);
  const buffer = alignedBuffer(PAGES_AT_ONCE * page_size);
  for (let first = 1; first <= pages; first += PAGES_AT_ONCE) {
    // Whole blocks of pages are skipped.
    if (leaveOut(first)) continue;
    const count = Math.min(PAGES_AT_ONCE, pages - first + 1);
    files.readPages(buffer.subarray(0, count * page_size), first, page_size);
    const batch: Page[] = [];
    for (let i = 0; i < count; i++) {
      const number = first + i;
      if (number === skip) continue;
      const data = buffer.subarray(i * page_size, (i + 1) * page_size);
      const frame = newest.get(number);
      if (frame !== undefined) files.readFramePage(data, frame, page_size);
      batch.push({ number, data });
    }
    yield batch;
  }
}

/** Checksums of the whole database: the expensive way to find its position. */
export function scanTable(files: DatabaseFiles, moment: Moment): PageTable {
  return finish(scanningTable(files, moment));
}

/** The same, in steps. */
export function* scanningTable(files: DatabaseFiles, moment: Moment): Steps<PageTable> {
  const table = new PageTable(moment.page_size);
  for (const batch of scan(files, moment)) {
    table.accept(table.change(batch, Math.max(table.count, batch.at(-1)?.number ?? 0)));
    yield;
  }
  if (table.count < moment.pages) table.accept(table.change([], moment.pages));
  return table;
}
