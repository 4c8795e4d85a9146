import { growColumns, newColumns } from "../chunk/chunk.ts";
import type { Batch } from "../head.ts";

/** Samples gathered from one sender before they are admitted, logged and stored together. */
export class GrowingBatch implements Batch {
  readonly #columns = newColumns(1024);
  refs = new Uint32Array(1024);
  bits: Uint32Array;
  length = 0;

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
  }

  push(ref: number, time: number, low: number, high: number): void {
    if (this.length === this.refs.length) this.#grow();
    const at = this.length++;
    this.refs[at] = ref;
    this.#columns.timestamps[at] = time;
    this.bits[2 * at] = low;
    this.bits[2 * at + 1] = high;
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
