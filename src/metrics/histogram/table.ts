import { histogramAt, putHistogram } from "../nan-bits.ts";
import { type FloatHistogram, sizeOf } from "./histogram.ts";

/** The native histograms that columns and rows refer to: a value that is one is a NaN with its number. */
export class HistogramTable {
  readonly #all: (FloatHistogram | undefined)[] = [];
  readonly #free: number[] = [];
  bytes = 0;

  add(histogram: FloatHistogram): number {
    this.bytes += sizeOf(histogram);
    const free = this.#free.pop();
    if (free === undefined) return this.#all.push(histogram) - 1;
    this.#all[free] = histogram;
    return free;
  }

  get(id: number): FloatHistogram | undefined {
    return this.#all[id];
  }

  /** The number may be given to another from now on. */
  release(id: number): void {
    const histogram = this.#all[id];
    if (!histogram) return;
    this.bytes -= sizeOf(histogram);
    this.#all[id] = undefined;
    this.#free.push(id);
  }

  /** Puts a histogram into a column. */
  put(values: Float64Array, i: number, histogram: FloatHistogram): void {
    putHistogram(values, i, this.add(histogram));
  }

  /** The histogram at a place of a column; undefined when a number stands there. */
  at(values: Float64Array, i: number): FloatHistogram | undefined {
    const id = histogramAt(values, i);
    return id === undefined ? undefined : this.#all[id];
  }

  get length(): number {
    return this.#all.length - this.#free.length;
  }

  clear(): void {
    this.#all.length = 0;
    this.#free.length = 0;
    this.bytes = 0;
  }
}
