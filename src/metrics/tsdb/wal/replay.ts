import type { FloatHistogram } from "../../histogram/histogram.ts";
import type { Labels } from "../../source.ts";
import type { Block } from "../block/block.ts";
import type { Quarantine } from "../files.ts";
import type { Head } from "../head.ts";
import { larger, type SeriesTable } from "../index/series-table.ts";
import type { Admission } from "../ingest/admission.ts";
import { GrowingBatch } from "../ingest/batch.ts";
import { WINDOW_MS } from "../limits.ts";
import type { RecordSink } from "./record.ts";
import type { Wal, WalPosition } from "./wal.ts";

const BATCH_SAMPLES = 8192;

interface Parts {
  wal: Wal;
  head: Head;
  table: SeriesTable;
  admission: Admission;
  quarantine: Quarantine;
  blocks: readonly Block[];
}

/**
 * Restores samples that are in the WAL but in no block. A block records the WAL position at which its window was
 * closed, so a sample is never in both block and head.
 */
export function replay(parts: Parts): void {
  const sink = new HeadSink(parts);
  parts.wal.replay(sink, parts.quarantine, (segment) => sink.endSegment(segment));
}

class HeadSink implements RecordSink {
  #position: WalPosition = { segment: 0, offset: 0 };
  readonly #parts: Parts;
  readonly #batch = new GrowingBatch();
  /** The segment's series refs → ours + 1. The segment itself checks that they are defined. */
  #refs = new Uint32Array(256);
  /** Window start → WAL position up to which it is in blocks. */
  readonly #flushed = new Map<number, WalPosition>();
  /** The window of the last sample, and whether a block has what the current record says of it. */
  #window_ms = Number.NaN;
  #isFlushed = false;

  constructor(parts: Parts) {
    this.#parts = parts;
    for (const { directory } of parts.blocks) {
      for (const { start_ms, position } of directory.flushed) {
        const known = this.#flushed.get(start_ms);
        if (!known || isBefore(known, position)) this.#flushed.set(start_ms, position);
      }
    }
  }

  /** Of the record that is read. */
  set position(position: WalPosition) {
    this.#position = position;
    this.#window_ms = Number.NaN;
  }

  define(ref: number, labels: Labels): void {
    if (ref >= this.#refs.length) this.#refs = larger(this.#refs, ref + 1);
    this.#refs[ref] = this.#parts.table.add(labels) + 1;
  }

  sample(ref: number, time: number, low: number, high: number): void {
    const ours = this.#wanted(ref, time);
    if (ours === undefined) return;
    this.#batch.push(ours, time, low, high);
    if (this.#batch.length === BATCH_SAMPLES) this.#apply();
  }

  native(ref: number, time: number, histogram: FloatHistogram): void {
    const ours = this.#wanted(ref, time);
    if (ours === undefined) return;
    this.#batch.pushHistogram(ours, time, histogram);
    if (this.#batch.length === BATCH_SAMPLES) this.#apply();
  }

  /** Our number of the series, undefined when the sample is in a block already. */
  #wanted(ref: number, time: number): number | undefined {
    const sinceWindow = time - this.#window_ms;
    // Also when there is no window yet: NaN is in no range.
    if (!(sinceWindow >= 0 && sinceWindow < WINDOW_MS)) this.#enterWindow(time);
    if (this.#isFlushed) return undefined;
    return (this.#refs[ref] as number) - 1;
  }

  #enterWindow(time: number): void {
    this.#window_ms = Math.floor(time / WINDOW_MS) * WINDOW_MS;
    const flushed = this.#flushed.get(this.#window_ms);
    this.#isFlushed = flushed !== undefined && isBefore(this.#position, flushed);
  }

  endSegment(segment: number): void {
    this.#apply();
    this.#refs.fill(0);
    for (const window of this.#parts.head.windows) {
      // Not tracked per window: they become blocks soon, and then the segment is deleted.
      this.#parts.wal.holdsIn(segment, window.id);
    }
  }

  #apply(): void {
    const { head, admission } = this.#parts;
    const { refs, length } = this.#batch;
    for (let i = 0; i < length; i++) {
      const ref = refs[i] as number;
      if (!head.isActive(ref)) admission.activate(ref, true);
    }
    head.append(this.#batch, 0);
    this.#batch.reset();
  }
}

function isBefore(a: WalPosition, b: WalPosition): boolean {
  return a.segment === b.segment ? a.offset < b.offset : a.segment < b.segment;
}
