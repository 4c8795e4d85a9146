import type { Columns } from "../source.ts";
import { decodeChunk, newColumns } from "./chunk/chunk.ts";
import { ChunkSlabs } from "./chunk/slabs.ts";
import { clip, pushColumns, pushSample } from "./columns.ts";
import { larger } from "./index/series-table.ts";
import { WINDOW_MS } from "./limits.ts";

/**
 * The head's data of one two-hour window. There may be several for the same span: samples that arrive after its block
 * was begun open a new one.
 */
export class HeadWindow {
  readonly id: number;
  readonly start_ms: number;
  readonly end_ms: number;
  /** The head's newest sample when this window was opened: decides whether it is late. */
  readonly opened_at_newest_ms: number;
  /** Frozen: being written as a block, without further appends. */
  frozen = false;
  samples = 0;
  written_at = 0;
  readonly chunks = new ChunkSlabs();
  /** Late samples, in order of arrival. */
  readonly late = new Map<number, Columns>();
  #lateSamples = 0;
  /** Position of each series' last chunk, 0 when it has none. */
  #last = new Uint32Array(256);

  constructor(id: number, start_ms: number, opened_at_newest_ms: number) {
    this.id = id;
    this.start_ms = start_ms;
    this.end_ms = start_ms + WINDOW_MS;
    this.opened_at_newest_ms = opened_at_newest_ms;
  }

  get bytes(): number {
    // 16 bytes a late sample, doubled because columns grow ahead of need, and the columns' own weight.
    return this.chunks.bytes + this.#lateSamples * 32 + this.late.size * 300;
  }

  overlaps(start_ms: number, end_ms: number): boolean {
    return this.start_ms <= end_ms && this.end_ms > start_ms;
  }

  has(ref: number): boolean {
    return (this.#last[ref] ?? 0) !== 0 || this.late.has(ref);
  }

  addChunk(ref: number, chunk: Uint8Array, first: number, last: number): void {
    if (ref >= this.#last.length) this.#last = larger(this.#last, ref + 1);
    this.#last[ref] = this.chunks.add(chunk, this.#last[ref] as number, first, last);
  }

  addLate(ref: number, time: number, low: number, high: number): void {
    let columns = this.late.get(ref);
    if (!columns) {
      columns = newColumns(4);
      this.late.set(ref, columns);
    }
    pushSample(columns, time, low, high);
    this.#lateSamples++;
  }

  /** Series with data here besides their tail. */
  refs(): number[] {
    const found: number[] = [];
    this.#last.forEach((place, ref) => {
      if (place !== 0) found.push(ref);
    });
    for (const ref of this.late.keys()) if ((this.#last[ref] ?? 0) === 0) found.push(ref);
    return found;
  }

  /** Appends the sealed chunks of a series that overlap [start, end], oldest first. */
  readChunks(ref: number, start_ms: number, end_ms: number, into: Columns): void {
    const places: number[] = [];
    for (let place = this.#last[ref] ?? 0; place !== 0; place = this.chunks.before(place)) {
      if (this.start_ms + this.chunks.last(place) < start_ms) break;
      if (this.start_ms + this.chunks.first(place) <= end_ms) places.push(place);
    }
    for (let i = places.length - 1; i >= 0; i--) {
      const { bytes, at } = this.chunks.chunk(places[i] as number);
      const from = into.length;
      decodeChunk(bytes, at, this.start_ms, into);
      clip(into, from, start_ms, end_ms);
    }
  }

  readLate(ref: number, start_ms: number, end_ms: number, into: Columns): void {
    const late = this.late.get(ref);
    if (!late) return;
    const picked = newColumns(late.length);
    const bits = new Uint32Array(late.values.buffer);
    for (let i = 0; i < late.length; i++) {
      const time = late.timestamps[i] as number;
      if (time >= start_ms && time <= end_ms) {
        pushSample(picked, time, bits[2 * i] as number, bits[2 * i + 1] as number);
      }
    }
    pushColumns(into, picked);
  }
}
