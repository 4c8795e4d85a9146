import type { FloatHistogram } from "../histogram/histogram.ts";
import { hintAfter } from "../histogram/reset.ts";
import type { HistogramTable } from "../histogram/table.ts";
import type { Columns, Labels, SampleSource, Selection, Series } from "../source.ts";
import type { Block } from "./block/block.ts";
import { newColumns } from "./chunk/chunk.ts";
import { settle } from "./columns.ts";
import type { Head } from "./head.ts";
import { matchSeries } from "./index/match.ts";
import type { SeriesTable } from "./index/series-table.ts";

/** The readable parts; they change, so each selection reads them again. */
export interface Readable {
  readonly table: SeriesTable;
  readonly head: Head;
  /** Oldest written first. */
  readonly blocks: readonly Block[];
}

/** The database as the evaluator sees it. */
export class PartitionSource implements SampleSource {
  readonly #parts: Readable;

  constructor(parts: Readable) {
    this.#parts = parts;
  }

  select({ selector, start_ms, end_ms }: Selection): Selected {
    return new Selected(this.#parts, matchSeries(this.#parts.table, selector), start_ms, end_ms);
  }
}

const word = new Float64Array(1);
const halves = new Uint32Array(word.buffer);

/** The series of one selection, without samples or labels until requested. */
export class Selected implements Iterable<Series> {
  readonly parts: Readable;
  readonly start_ms: number;
  readonly end_ms: number;
  readonly refs: Uint32Array;
  readonly blocks: readonly Block[];
  /** No block of the selection has a newer sample. */
  readonly blocks_max_ms: number;

  constructor(parts: Readable, matched: Uint32Array, start_ms: number, end_ms: number) {
    this.parts = parts;
    this.start_ms = start_ms;
    this.end_ms = end_ms;
    this.blocks = parts.blocks.filter((block) => block.overlaps(start_ms, end_ms));
    this.blocks_max_ms = this.blocks.reduce((newest, block) => Math.max(newest, block.max_ms), -Infinity);
    this.refs = inFileOrder(this.blocks, matched.filter(presentIn(parts, start_ms, end_ms)));
  }

  get count(): number {
    return this.refs.length;
  }

  *[Symbol.iterator](): Iterator<Series> {
    for (const ref of this.refs) yield new SelectedSeries(this, ref);
  }
}

/** Whether a series may have samples in the range: false positives are possible, false negatives are not. */
export function presentIn(parts: Readable, start_ms: number, end_ms: number): (ref: number) => boolean {
  const windows = parts.head.windows.filter((window) => window.overlaps(start_ms, end_ms));
  const blocks = parts.blocks.filter((block) => block.overlaps(start_ms, end_ms));
  return (ref) => windows.some((window) => parts.head.has(ref, window)) || blocks.some((block) => block.has(ref));
}

class SelectedSeries implements Series {
  readonly #from: Selected;
  readonly ref: number;

  constructor(from: Selected, ref: number) {
    this.#from = from;
    this.ref = ref;
  }

  get labels(): Labels {
    return this.#from.parts.table.labels(this.ref);
  }

  read(into: Columns): void {
    this.#readRange(this.#from.start_ms, this.#from.end_ms, into);
  }

  newest(after_ms: number, at_ms: number): { timestamp: number; value: number } | undefined {
    const timestamp = this.#from.parts.head.newest(this.ref, after_ms, at_ms, halves);
    if (timestamp !== undefined && timestamp >= this.#from.blocks_max_ms) {
      return { timestamp, value: word[0] as number };
    }
    this.#readRange(Math.floor(after_ms) + 1, at_ms, scratch);
    if (scratch.length === 0) return undefined;
    const last = scratch.length - 1;
    return { timestamp: scratch.timestamps[last] as number, value: scratch.values[last] as number };
  }

  #readRange(start_ms: number, end_ms: number, into: Columns): void {
    into.length = 0;
    for (const block of this.#from.blocks) {
      if (!block.overlaps(start_ms, end_ms)) continue;
      const place = block.place(this.ref);
      if (place >= 0) block.read(place, start_ms, end_ms, into);
    }
    this.#from.parts.head.read(this.ref, start_ms, end_ms, into);
    settle(into);
    if (into.histograms && into.histograms.length > 0) tellResets(into, into.histograms);
  }
}

/** Says of each native histogram what is known of a reset before it, for queries that then need not compare them. */
function tellResets({ values, length }: Columns, histograms: HistogramTable): void {
  let before: FloatHistogram | undefined;
  for (let i = 0; i < length; i++) {
    const histogram = histograms.at(values, i);
    const hinted = histogram && hintAfter(histogram, before);
    if (hinted && hinted !== histogram) histograms.put(values, i, hinted);
    before = hinted;
  }
}

const scratch = newColumns(512);
/** With a 32-bit number behind it, the largest that a double keeps exactly. */
const LAST_PLACE = 2 ** 21 - 1;

/**
 * Neighbours in a file share frames, so reading in the order of the largest block unpacks each frame once. All blocks
 * order series by labels.
 */
function inFileOrder(blocks: readonly Block[], refs: Uint32Array): Uint32Array {
  const largest = blocks.reduce<Block | undefined>(
    (found, block) => (found && found.directory.series >= block.directory.series ? found : block),
    undefined,
  );
  if (!largest || refs.length < 2) return refs;
  // Place and number as one double sort natively, without a callback.
  const keys = new Float64Array(refs.length);
  refs.forEach((ref, i) => {
    const place = largest.place(ref);
    keys[i] = (place < 0 ? LAST_PLACE : Math.min(place, LAST_PLACE)) * 2 ** 32 + ref;
  });
  keys.sort();
  return Uint32Array.from(keys, (key) => key % 2 ** 32);
}
