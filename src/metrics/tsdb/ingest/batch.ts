import type { FloatHistogram } from "../../histogram/histogram.ts";
import { HistogramTable } from "../../histogram/table.ts";
import { histogramWords, isHistogram } from "../../nan-bits.ts";
import { growColumns, newColumns } from "../chunk/chunk.ts";
import type { Batch } from "../head.ts";

const PLAIN_NAN_HIGH = 0x7ff8_0000;

/** Samples gathered from one sender before they are admitted, logged and stored together. */
export class GrowingBatch implements Batch {
  readonly #columns = newColumns(1024);
  refs = new Uint32Array(1024);
  bits: Uint32Array;
  length = 0;
  readonly histograms = new HistogramTable();

  constructor() {
    this.bits = new Uint32Array(this.#columns.values.buffer);
  }

  get timestamps(): Float64Array {
    return this.#columns.timestamps;
  }

  get values(): Float64Array {
    return this.#columns.values;
  }

  reset(): void {
    this.length = 0;
    this.histograms.clear();
  }

  pushHistogram(ref: number, time: number, histogram: FloatHistogram): void {
    this.push(ref, time, 0, 0);
    this.bits.set(histogramWords(this.histograms.add(histogram)), 2 * (this.length - 1));
  }

  /** A NaN that looks like a reference to a histogram becomes a plain one. */
  push(ref: number, time: number, low: number, high: number): void {
    if (this.length === this.refs.length) this.#grow();
    const at = this.length++;
    this.refs[at] = ref;
    this.#columns.timestamps[at] = time;
    this.bits[2 * at] = low;
    this.bits[2 * at + 1] = isHistogram(low, high) ? PLAIN_NAN_HIGH : high;
  }

  #grow(): void {
    const refs = new Uint32Array(this.length * 2);
    refs.set(this.refs);
    this.refs = refs;
    this.#columns.length = this.length;
    growColumns(this.#columns, this.length * 2);
    this.bits = new Uint32Array(this.#columns.values.buffer);
  }
}
