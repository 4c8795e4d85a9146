/** Reading a whole database as of one moment: the database file with the committed frames of the log laid over it. */
import { lockPage, type Page, PageTable } from "../ltx/page-table.ts";
import { finish, type Steps } from "../steps.ts";
import type { DatabaseFiles } from "./files.ts";
import { alignedBuffer } from "./frames.ts";

/** Pages per read; the caller yields to the event loop after each. */
const PAGES_AT_ONCE = 256;
/** What is read at once of a snapshot, at most so many pages. */
const PART_BYTES = 256 * 1024;

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

/** Pages from `first` on that follow each other, as they are in a database file. */
export interface PageRun {
  first: number;
  data: Buffer;
}

/** Every page in order, the lock page empty, each run in memory that the caller provides. */
export function* scanRuns(
  files: DatabaseFiles,
  moment: Moment,
  { memory, leaveOut }: { memory: (bytes: number) => Buffer; leaveOut(page: number): boolean },
): Generator<PageRun> {
  const { page_size, pages } = moment;
  const newest = newestFrames(files, moment);
  const at_once = Math.min(PAGES_AT_ONCE, PART_BYTES / page_size);
  for (let first = 1; first <= pages; first += at_once) {
    // Whole blocks of pages are left out, which begin where these do.
    if (leaveOut(first)) continue;
    const count = Math.min(at_once, pages - first + 1);
    const data = memory(count * page_size);
    files.readPages(data, first, page_size);
    for (let i = 0; i < count; i++) {
      const page = data.subarray(i * page_size, (i + 1) * page_size);
      const frame = newest.get(first + i);
      if (first + i === lockPage(page_size)) page.fill(0);
      else if (frame !== undefined) files.readFramePage(page, frame, page_size);
    }
    yield { first, data };
  }
}

/** The pages of a run but the lock page. */
export function pagesOf({ first, data }: PageRun, page_size: number): Page[] {
  const pages = Array.from({ length: data.length / page_size }, (_, i) => ({
    number: first + i,
    data: data.subarray(i * page_size, (i + 1) * page_size),
  }));
  return pages.filter(({ number }) => number !== lockPage(page_size));
}

/** Every page but the lock page, in order, in batches. The pages are valid until the next batch is read. */
export function* scan(files: DatabaseFiles, moment: Moment): Generator<Page[]> {
  const { page_size } = moment;
  const buffer = alignedBuffer(PAGES_AT_ONCE * page_size);
  const memory = (bytes: number): Buffer => buffer.subarray(0, bytes);
  for (const run of scanRuns(files, moment, { memory, leaveOut: () => false })) yield pagesOf(run, page_size);
}

/** The checksums of the whole database. The expensive way to know where one stands. */
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
