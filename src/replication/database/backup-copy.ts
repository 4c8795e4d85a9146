/**
 * Finds the transaction of which a file is a copy made by SQLite's backup API (`.backup`, Python's `backup`). Such a copy
 * equals the database but for four fields in the header on page 1, which the copy counts on.
 */
import { crc32 } from "node:zlib";
import type { TransactionLog } from "../log/transaction-log.ts";
import { decodeLtx } from "../ltx/codec.ts";
import { type PageTable, pageSum } from "../ltx/page-table.ts";
import type { Steps } from "../steps.ts";
import type { PersistedTable } from "./persisted-state.ts";

/** Format versions, change counter, schema cookie, and "valid for" with the library's version. */
const COUNTED_ON: readonly (readonly [from: number, to: number])[] = [
  [18, 20],
  [24, 28],
  [40, 44],
  [92, 100],
];

/** Page 1 as a transaction left it. */
interface FirstPage {
  txid: number;
  sum: bigint;
  /** Of the page without the fields that a copy counts on; unknown when only the page's checksum is. */
  content: number | undefined;
}

export interface CopyParts {
  log: TransactionLog;
  kept: PersistedTable;
  /** Checksums of the file in question, and its first page. */
  table: PageTable;
  first_page: Buffer;
}

/** Undefined when it is a copy of no transaction in the log. */
export function* copiedTransaction({ log, kept, table, first_page }: CopyParts): Steps<number | undefined> {
  // All of a database of one page is its header page: nothing else can be recognized.
  if (table.count < 2) return undefined;
  const content = contentOf(first_page);
  const rest = table.checksum ^ table.sumOf(1);
  const known = yield* firstPages(log, kept);
  for (let txid = log.last; txid >= log.base; txid--) {
    const page = known.find((candidate) => candidate.txid <= txid);
    const checksum = log.checksumAt(txid);
    if (!page || checksum === undefined || !sameChecksum(checksum ^ page.sum, rest)) continue;
    if (page.content === undefined || page.content === content) return txid;
  }
  return undefined;
}

/** The contents that page 1 had, newest first. */
function* firstPages(log: TransactionLog, kept: PersistedTable): Steps<FirstPage[]> {
  const pages: FirstPage[] = [];
  for (let txid = log.base + 1; txid <= log.last; txid++) {
    const { pages: written } = decodeLtx(log.read(txid) ?? Buffer.alloc(0));
    const [first] = written;
    if (first?.number === 1) pages.unshift({ txid, sum: pageSum(first), content: contentOf(first.data) });
    yield;
  }
  const written_until_kept = pages.some(({ txid }) => txid <= kept.position.txid);
  if (!written_until_kept) pages.push({ txid: log.base, sum: kept.table.sumOf(1), content: undefined });
  return pages;
}

function contentOf(first_page: Buffer): number {
  const page = Buffer.from(first_page);
  for (const [from, to] of COUNTED_ON) page.fill(0, from, to);
  return crc32(page);
}

/** The top bit is set in every checksum, whatever it is of. */
const TOP_BIT = 1n << 63n;
const sameChecksum = (a: bigint, b: bigint): boolean => (a | TOP_BIT) === (b | TOP_BIT);
