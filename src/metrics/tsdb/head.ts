import { assert } from "#core/assert.ts";
import { HistogramTable } from "../histogram/table.ts";
import { histogramAt, histogramId, histogramWords, isHistogram } from "../nan-bits.ts";
import type { Columns } from "../source.ts";
import { ByteWriter } from "./bytes.ts";
import { encodeChunk, newColumns } from "./chunk/chunk.ts";
import { dropHistograms } from "./chunk/drop-histograms.ts";
import { clip, settle } from "./columns.ts";
import { WINDOW_MS } from "./limits.ts";
import { TAIL_SAMPLES, Tails } from "./tails.ts";
import { HeadWindow } from "./window.ts";

const NONE = 0xffff_ffff;

/** Incoming samples as columns; `values` and `bits` share memory. Reused. */
export interface Batch {
  refs: Uint32Array;
  timestamps: Float64Array;
  values: Float64Array;
  bits: Uint32Array;
  length: number;
  /** The native histograms that values refer to. */
  histograms?: HistogramTable;
}

/**
 * The newest samples, in memory. An active series has a *tail* of raw samples; a full tail is sealed into a chunk of
 * its two-hour *window*; a past window becomes a block and is dropped. The newest sample of each series is in flat
 * arrays, for instant queries. Of two samples with the same timestamp the last written stays.
 */
export class Head {
  readonly #tails = new Tails();
  /** The native histograms of tails and late samples. */
  readonly #histograms = new HistogramTable();
  readonly #scratch: Columns = { ...newColumns(TAIL_SAMPLES), histograms: this.#histograms };
  readonly #out = new ByteWriter(TAIL_SAMPLES * 32);
  /** Readable windows, by start, then age; including frozen ones until their block is written. */
  readonly windows: HeadWindow[] = [];
  readonly #open = new Map<number, HeadWindow>();
  #current: HeadWindow | undefined;
  #nextWindow = 1;
  newest_ms = -Infinity;
  /** Incremented when a series enters a window. */
  changes = 0;

  // By series number.
  #lastTime = new Float64Array(256).fill(-Infinity);
  #lastBits = new Uint32Array(512);
  #tailSlot = new Uint32Array(256).fill(NONE);
  #tailCount = new Uint8Array(256);
  #tailWindow = new Uint32Array(256);
  #exponent = new Uint8Array(256);

  get activeSeries(): number {
    return this.#tails.slots;
  }

  get bytes(): number {
    return this.windows.reduce((sum, window) => sum + window.bytes, this.#tails.bytes + this.#histograms.bytes);
  }

  /** The newest time of a series, -Infinity when there is none since opening. */
  lastTime(ref: number): number {
    return this.#lastTime[ref] ?? -Infinity;
  }

  isActive(ref: number): boolean {
    return (this.#tailSlot[ref] ?? NONE) !== NONE;
  }

  activate(ref: number): void {
    if (ref >= this.#tailSlot.length) this.#grow(ref + 1);
    if (this.#tailSlot[ref] === NONE) this.#tailSlot[ref] = this.#tails.take();
  }

  /** Marks every series of the batch as active. */
  append(batch: Batch, monotonic_ms: number): void {
    const { refs, timestamps, bits, length } = batch;
    // A batch may span windows: the first one was written to as well, and the WAL must keep it.
    const first = this.#current;
    const samples = first?.samples;
    const hasNatives = (batch.histograms?.length ?? 0) > 0;
    for (let i = 0; i < length; i++) {
      const high = bits[2 * i + 1] as number;
      let low = bits[2 * i] as number;
      if (hasNatives && isHistogram(low, high)) low = this.#adopt(low, batch.histograms);
      this.#put(refs[i] as number, timestamps[i] as number, low, high);
    }
    if (first && first.samples !== samples) first.written_at = monotonic_ms;
    if (this.#current) this.#current.written_at = monotonic_ms;
    for (const window of this.#open.values()) if (window.written_at === 0) window.written_at = monotonic_ms;
  }

  /** A histogram of a batch becomes one of the head; the low word of what refers to it. */
  #adopt(low: number, from: HistogramTable | undefined): number {
    const histogram = from?.get(histogramId(low));
    assert(histogram, "a sample's histogram is in its batch");
    return histogramWords(this.#histograms.add(histogram))[0];
  }

  #put(ref: number, time: number, low: number, high: number): void {
    let window = this.#current;
    if (window === undefined || time < window.start_ms || time >= window.end_ms) {
      window = this.#windowAt(time);
    }
    window.samples++;
    if (time <= (this.#lastTime[ref] as number)) {
      this.#putBehind(window, ref, time, low, high);
      return;
    }
    if (this.#tailWindow[ref] !== window.id) {
      this.#seal(ref);
      this.#tailWindow[ref] = window.id;
      this.changes++;
    }
    const count = this.#tailCount[ref] as number;
    this.#tails.put(this.#tailSlot[ref] as number, count, time - window.start_ms, low, high);
    this.#tailCount[ref] = count + 1;
    this.#lastTime[ref] = time;
    this.#lastBits[2 * ref] = low;
    this.#lastBits[2 * ref + 1] = high;
    if (time > this.newest_ms) this.newest_ms = time;
    if (count + 1 === TAIL_SAMPLES) this.#seal(ref);
  }

  /** At or before the newest sample: the same time replaces it, an older one goes to the late samples. */
  #putBehind(window: HeadWindow, ref: number, time: number, low: number, high: number): void {
    const count = this.#tailCount[ref] as number;
    if (time === this.#lastTime[ref]) {
      const [old_low, old_high] = [this.#lastBits[2 * ref] as number, this.#lastBits[2 * ref + 1] as number];
      this.#lastBits[2 * ref] = low;
      this.#lastBits[2 * ref + 1] = high;
      if (count > 0 && this.#tailWindow[ref] === window.id) {
        if (isHistogram(old_low, old_high)) this.#histograms.release(histogramId(old_low));
        this.#tails.put(this.#tailSlot[ref] as number, count - 1, time - window.start_ms, low, high);
        return;
      }
    }
    if (!window.has(ref)) this.changes++;
    window.addLate(ref, time, low, high);
  }

  #windowAt(time: number): HeadWindow {
    const start = Math.floor(time / WINDOW_MS) * WINDOW_MS;
    let window = this.#open.get(start);
    if (!window) {
      window = new HeadWindow(this.#nextWindow++, start, this.newest_ms);
      this.#open.set(start, window);
      this.windows.push(window);
      this.windows.sort((a, b) => a.start_ms - b.start_ms || a.id - b.id);
    }
    window.written_at = 0;
    this.#current = window;
    return window;
  }

  /** Seals the tail of a series into a chunk of its window. */
  #seal(ref: number): void {
    const count = this.#tailCount[ref] as number;
    if (count === 0) return;
    const window = this.#windowById(this.#tailWindow[ref] as number);
    this.#scratch.length = 0;
    this.#tails.read(this.#tailSlot[ref] as number, count, window.start_ms, this.#scratch);
    this.#out.reset();
    const { timestamps } = this.#scratch;
    const exponent = encodeChunk(this.#out, this.#scratch, 0, count, window.start_ms, this.#exponent[ref]);
    this.#exponent[ref] = exponent;
    const first = (timestamps[0] as number) - window.start_ms;
    window.addChunk(ref, this.#out.view(), first, (timestamps[count - 1] as number) - window.start_ms);
    this.#tailCount[ref] = 0;
    this.#releaseAll(this.#scratch);
  }

  #releaseAll({ values, length }: Columns): void {
    if (this.#histograms.length === 0) return;
    for (let i = 0; i < length; i++) {
      const id = histogramAt(values, i);
      if (id !== undefined) this.#histograms.release(id);
    }
  }

  #windowById(id: number): HeadWindow {
    const window = this.windows.find((candidate) => candidate.id === id);
    assert(window, "a tail's window is in the head");
    return window;
  }

  /**
   * Freezes the window: tails in it are sealed; series without newer samples give up their tail and become inactive.
   * Returns those.
   */
  freeze(window: HeadWindow): number[] {
    window.frozen = true;
    if (this.#open.get(window.start_ms) === window) this.#open.delete(window.start_ms);
    if (this.#current === window) this.#current = undefined;
    const idle: number[] = [];
    const written = new Set([...this.#open.values()].map(({ id }) => id));
    for (let ref = 0; ref < this.#tailSlot.length; ref++) {
      if (this.#tailSlot[ref] === NONE || written.has(this.#tailWindow[ref] as number)) continue;
      // A tail in another frozen window is impossible: freezing sealed it.
      this.#seal(ref);
      this.#tails.giveBack(this.#tailSlot[ref] as number);
      this.#tailSlot[ref] = NONE;
      idle.push(ref);
    }
    return idle;
  }

  /** The window's block is readable. */
  drop(window: HeadWindow): void {
    this.windows.splice(this.windows.indexOf(window), 1);
    for (const late of window.late.values()) this.#releaseAll(late);
    window.chunks.release();
  }

  /** All samples of a series in a frozen window, in order. */
  readWindow(window: HeadWindow, ref: number, into: Columns): void {
    window.readChunks(ref, -Infinity, Infinity, into);
    this.#readLate(window, ref, -Infinity, Infinity, into);
    settle(into);
  }

  has(ref: number, window: HeadWindow): boolean {
    return window.has(ref) || ((this.#tailCount[ref] ?? 0) > 0 && this.#tailWindow[ref] === window.id);
  }

  /** Appends samples in [start, end] in the order written; the caller sorts them. */
  read(ref: number, start_ms: number, end_ms: number, into: Columns): void {
    for (const window of this.windows) {
      if (!window.overlaps(start_ms, end_ms)) continue;
      window.readChunks(ref, start_ms, end_ms, into);
      if ((this.#tailCount[ref] ?? 0) > 0 && this.#tailWindow[ref] === window.id) {
        const from = into.length;
        this.#tails.read(this.#tailSlot[ref] as number, this.#tailCount[ref] as number, window.start_ms, into);
        clip(into, from, start_ms, end_ms);
        this.#handOver(into, from);
      }
      this.#readLate(window, ref, start_ms, end_ms, into);
    }
  }

  #readLate(window: HeadWindow, ref: number, start_ms: number, end_ms: number, into: Columns): void {
    const from = into.length;
    window.readLate(ref, start_ms, end_ms, into);
    this.#handOver(into, from);
  }

  /** Native histograms from index `from` on become those of the reader, or are left out. */
  #handOver(into: Columns, from: number): void {
    if (this.#histograms.length === 0) return;
    for (let i = from; i < into.length; i++) {
      const histogram = this.#histograms.at(into.values, i);
      if (histogram) into.histograms?.put(into.values, i, histogram);
    }
    if (!into.histograms) dropHistograms(into, from);
  }

  /** Writes the newest sample's value to `bits` if it is a number in (after, at]; returns its time or undefined. */
  newest(ref: number, after_ms: number, at_ms: number, bits: Uint32Array): number | undefined {
    const time = this.#lastTime[ref] ?? -Infinity;
    if (time > at_ms || time <= after_ms) return undefined;
    if (isHistogram(this.#lastBits[2 * ref] as number, this.#lastBits[2 * ref + 1] as number)) return undefined;
    bits[0] = this.#lastBits[2 * ref] as number;
    bits[1] = this.#lastBits[2 * ref + 1] as number;
    return time;
  }

  #grow(needed: number): void {
    const size = Math.max(needed, this.#tailSlot.length * 2);
    const lastTime = new Float64Array(size).fill(-Infinity);
    lastTime.set(this.#lastTime);
    this.#lastTime = lastTime;
    const slots = new Uint32Array(size).fill(NONE);
    slots.set(this.#tailSlot);
    this.#tailSlot = slots;
    this.#lastBits = copyInto(new Uint32Array(size * 2), this.#lastBits);
    this.#tailWindow = copyInto(new Uint32Array(size), this.#tailWindow);
    this.#tailCount = copyInto(new Uint8Array(size), this.#tailCount);
    this.#exponent = copyInto(new Uint8Array(size), this.#exponent);
  }
}

function copyInto<Column extends Uint8Array | Uint32Array>(larger: Column, column: Column): Column {
  larger.set(column);
  return larger;
}
