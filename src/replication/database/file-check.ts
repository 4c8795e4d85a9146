/**
 * Compares a database file with the page checksums, a part at each call. Needed after a checkpoint: a write outside
 * SQLite while one runs changes the file as the checkpoint does, so that its size and times show nothing.
 */
import { REPLICATION_LIMITS } from "../limits.ts";
import { lockPage } from "../ltx/page-table.ts";
import { alignedBuffer, sameGeneration } from "../wal/frames.ts";
import type { DatabaseState } from "./state.ts";

/** One for all databases: nothing here waits. */
let buffer: Buffer | undefined;

export class FileCheck {
  readonly #state: DatabaseState;
  /** Pages still to compare, from `#next` on and then from the first. */
  #left = 0;
  #next = 1;
  /** The last frame of each page in this generation of the WAL: until that is copied, the file has an older page. */
  readonly #last_frame = new Map<number, number>();
  #generation = "";
  #frames = 0;

  constructor(state: DatabaseState) {
    this.#state = state;
  }

  /** Starts over: a checkpoint ran since the last call. */
  restart(): void {
    this.#left = this.#state.table.count;
  }

  /** Whether the next part has a page that was written outside SQLite. */
  findsForeignPage(): boolean {
    const { files, page_size, table } = this.#state;
    if (this.#left <= 0) return false;
    const place = this.#place();
    if (place === undefined) return false;
    this.#noteFrames();
    if (this.#next > table.count) this.#next = 1;
    buffer ??= alignedBuffer(REPLICATION_LIMITS.file_check_bytes);
    const count = Math.min(buffer.length / page_size, table.count - this.#next + 1);
    const bytes = buffer.subarray(0, count * page_size);
    files.readPages(bytes, this.#next, page_size);
    const pages = Array.from({ length: count }, (_, i) => ({
      number: this.#next + i,
      data: bytes.subarray(i * page_size, (i + 1) * page_size),
    }));
    const { copied } = files.checkpointed();
    const isCurrent = (page: number): boolean => (this.#last_frame.get(page) ?? 0) <= copied;
    const foreign = pages.some(
      (page) => page.number !== lockPage(page_size) && isCurrent(page.number) && !table.holds(page),
    );
    // Something was written meanwhile: the same part again.
    if (place !== this.#place()) return false;
    this.#next += count;
    this.#left -= count;
    return foreign;
  }

  /** Where SQLite is, when everything committed is captured and no checkpoint runs. */
  #place(): string | undefined {
    const { files, cursor } = this.#state;
    const header = files.indexHeader();
    const { copied, attempted } = files.checkpointed();
    if (!header || copied !== attempted) return undefined;
    if (header.frame > 0 && !(sameGeneration(header, cursor) && header.frame === cursor.frame)) return undefined;
    return `${header.salt1} ${header.salt2} ${header.frame} ${copied}`;
  }

  #noteFrames(): void {
    const { files, page_size, cursor } = this.#state;
    const frames = files.indexHeader()?.frame ?? 0;
    const generation = `${cursor.salt1} ${cursor.salt2}`;
    if (generation !== this.#generation || frames < this.#frames) {
      this.#last_frame.clear();
      this.#frames = 0;
    }
    this.#generation = generation;
    while (this.#frames < frames) {
      const page = files.frameHeader(++this.#frames, page_size).readUInt32BE(0);
      this.#last_frame.set(page, this.#frames);
    }
  }
}
