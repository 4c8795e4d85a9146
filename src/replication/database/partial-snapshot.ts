/**
 * Snapshots that broke off. What has come of one is kept, and of the next one only the blocks of pages are sent that differ from
 * it: both sides compare the checksums of blocks, so it does not matter what was written meanwhile, or who sends it.
 */
import { closeSync, openSync } from "node:fs";
import { writeAll } from "../durable.ts";
import { LtxError, LtxReader, LtxWriter } from "../ltx/codec.ts";
import { BLOCK_PAGES, type Page, PageTable } from "../ltx/page-table.ts";
import { FileSource } from "./snapshot.ts";

/** An interrupted snapshot, by checksums of its blocks; empty text: incomplete block. */
export interface PartialSnapshot {
  page_size: number;
  blocks: string[];
}

export const blockOf = (page: number): number => Math.floor((page - 1) / BLOCK_PAGES);

/** Undefined when not even the header is complete. */
export function readPartial(path: string): PartialSnapshot | undefined {
  const fd = openSync(path, "r");
  try {
    const reader = openReader(fd);
    if (!reader) return undefined;
    const table = new PageTable(reader.header.page_size);
    for (const page of readablePages(reader)) table.accept(table.change([page], Math.max(table.count, page.number)));
    return { page_size: reader.header.page_size, blocks: table.blockSums() };
  } finally {
    closeSync(fd);
  }
}

/** Blocks that are equal on both sides. */
export function sameBlocks(theirs: PartialSnapshot, page_size: number, ours: readonly string[]): Set<number> {
  if (theirs.page_size !== page_size) return new Set();
  const same = [...ours.entries()].filter(([i, sum]) => sum !== "" && theirs.blocks[i] === sum);
  return new Set(same.map(([i]) => i));
}

/**
 * Merges kept blocks and newly received ones into one file. Throws `LtxError` when incomplete, unless partial is
 * allowed.
 */
export function mergeSnapshots(
  from: { partial: string; kept: Pick<ReadonlySet<number>, "has">; incoming: string; as_much_as_there_is: boolean },
  to: string,
): void {
  const fds = [from.partial, from.incoming].map((path) => openSync(path, "r"));
  const target = openSync(to, "w", 0o600);
  try {
    const [old, fresh] = fds.map(openReader);
    if (!old || !fresh) throw new LtxError("the file has no head");
    const writer = new LtxWriter(fresh.header);
    writeAll(target, writer.begin());
    const kept = filtered(
      readablePages(old),
      ({ number }) => from.kept.has(blockOf(number)) && number <= fresh.header.commit,
    );
    const came = from.as_much_as_there_is ? readablePages(fresh) : allPages(fresh);
    for (const page of ascending(kept, came)) writeAll(target, writer.page(page));
    if (!from.as_much_as_there_is) writeAll(target, writer.end(fresh.end().post_checksum));
  } finally {
    for (const fd of [...fds, target]) closeSync(fd);
  }
}

function openReader(fd: number): LtxReader | undefined {
  try {
    return new LtxReader(new FileSource(fd));
  } catch (error) {
    if (error instanceof LtxError) return undefined;
    throw error;
  }
}

function* allPages(reader: LtxReader): Generator<Page> {
  for (let page = reader.next(); page; page = reader.next()) yield page;
}

/** Up to the end or the first invalid data. */
function* readablePages(reader: LtxReader): Generator<Page> {
  try {
    yield* allPages(reader);
  } catch (error) {
    if (!(error instanceof LtxError)) throw error;
  }
}

function* filtered(pages: Iterable<Page>, wanted: (page: Page) => boolean): Generator<Page> {
  for (const page of pages) if (wanted(page)) yield page;
}

/** Merges by page number; the second wins. */
function* ascending(first: Generator<Page>, second: Generator<Page>): Generator<Page> {
  let [a, b] = [first.next(), second.next()];
  while (!a.done || !b.done) {
    const from_first: boolean = !a.done && (b.done === true || a.value.number < b.value.number);
    if (from_first && !a.done) {
      yield a.value;
      a = first.next();
      continue;
    }
    if (b.done) continue;
    const { number } = b.value;
    yield b.value;
    b = second.next();
    if (!a.done && a.value.number === number) a = first.next();
  }
}
