import { histogramAt, putHistogram } from "../nan-bits.ts";
import { type FloatHistogram, sizeOf } from "./histogram.ts";

/** The native histograms that columns and rows refer to: a value that is one is a NaN with its number. */
export class HistogramTable {
  readonly #all: FloatHistogram[] = [];
  bytes = 0;

  /** Puts a histogram into a column. */
  put(values: Float64Array, i: number, histogram: FloatHistogram): void {
    this.bytes += sizeOf(histogram);
    putHistogram(values, i, this.#all.push(histogram) - 1);
  }

  /** The histogram at a place of a column; undefined when a number stands there. */
  at(values: Float64Array, i: number): FloatHistogram | undefined {
    const id = histogramAt(values, i);
    return id === undefined ? undefined : this.#all[id];
  }

  get length(): number {
    return this.#all.length;
  }

  clear(): void {
    this.#all.length = 0;
    this.bytes = 0;
  }
}
