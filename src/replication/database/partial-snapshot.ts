/**
 * Interrupted snapshots. The received part is stored, and of the next snapshot only the blocks of pages that differ
 * from it are sent: both sides compare the checksums of blocks, so it does not matter what was written meanwhile,
 * which node sends it, or whether a power cut lost some of it.
 */
import { BLOCK_PAGES, PageTable } from "../ltx/page-table.ts";
import { isPageSize, pageSizeOf } from "../wal/database-header.ts";
import { pagesOf } from "../wal/scan.ts";
import { fileRuns } from "./received-snapshot.ts";

/** What is there of a snapshot, by the checksums of its blocks. */
export interface PartialSnapshot {
  page_size: number;
  blocks: string[];
}

export const blockOf = (page: number): number => Math.floor((page - 1) / BLOCK_PAGES);

/** The checksums of what has come; undefined when not even the first page has. */
export function readPartial(path: string): PageTable | undefined {
  const page_size = pageSizeOf(path);
  if (!isPageSize(page_size)) return undefined;
  const table = new PageTable(page_size);
  for (const run of fileRuns(path, page_size)) {
    const last = run.first + run.data.length / page_size - 1;
    table.accept(table.change(pagesOf(run, page_size), last));
  }
  return table;
}

/** Blocks that are equal on both sides. */
export function sameBlocks(theirs: PartialSnapshot, page_size: number, ours: readonly string[]): Set<number> {
  if (theirs.page_size !== page_size) return new Set();
  const same = [...ours.entries()].filter(([i, sum]) => sum !== "" && theirs.blocks[i] === sum);
  return new Set(same.map(([i]) => i));
}
