/** The first bytes of a database file. Only before anything of SQLite has it open: closing a descriptor later drops its locks. */
import { closeSync, openSync, readSync } from "node:fs";

const MAGIC = "SQLite format 3\0";
const HEADER_BYTES = 18;
const [LEAST_PAGE_BYTES, MOST_PAGE_BYTES] = [512, 65_536];

/** The page size of a database; undefined when it is none. */
export function pageSizeOf(path: string): number | undefined {
  const fd = openSync(path, "r");
  try {
    const bytes = Buffer.alloc(HEADER_BYTES);
    readSync(fd, bytes, 0, HEADER_BYTES, 0);
    if (bytes.toString("latin1", 0, MAGIC.length) !== MAGIC) return undefined;
    // 65536 does not fit in 16 bits and is written as 1.
    const size = bytes.readUInt16BE(MAGIC.length);
    return size === 1 ? MOST_PAGE_BYTES : size;
  } finally {
    closeSync(fd);
  }
}

export function isPageSize(value: unknown): value is number {
  const sizes = Number(value) >= LEAST_PAGE_BYTES && Number(value) <= MOST_PAGE_BYTES;
  return typeof value === "number" && sizes && Number.isInteger(Math.log2(value));
}
