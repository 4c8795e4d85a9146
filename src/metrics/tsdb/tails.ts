import type { Columns } from "../source.ts";
import { growColumns } from "./chunk/chunk.ts";

/** Samples a series gathers before they are sealed into a chunk. */
export const TAIL_SAMPLES = 32;
const SLOTS = 1024;

/**
 * The newest samples of every series being written, as they came: 12 bytes each, in slabs of equal slots that
 * are handed out and taken back. Times are offsets from the start of the series' current window. Values move
 * as two 32-bit words, because a NaN that travels as a number may lose its payload.
 */
export class Tails {
  readonly #times: Uint32Array[] = [];
  readonly #bits: Uint32Array[] = [];
  readonly #free: number[] = [];
  #used = 0;

  get slots(): number {
    return this.#used - this.#free.length;
  }

  get bytes(): number {
    return this.#times.length * SLOTS * TAIL_SAMPLES * 12;
  }

  take(): number {
    const slot = this.#free.pop();
    if (slot !== undefined) return slot;
    if (this.#used === this.#times.length * SLOTS) {
      this.#times.push(new Uint32Array(SLOTS * TAIL_SAMPLES));
      this.#bits.push(new Uint32Array(SLOTS * TAIL_SAMPLES * 2));
    }
    return this.#used++;
  }

  giveBack(slot: number): void {
    this.#free.push(slot);
  }

  put(slot: number, index: number, offset: number, low: number, high: number): void {
    const place = (slot % SLOTS) * TAIL_SAMPLES + index;
    (this.#times[(slot / SLOTS) | 0] as Uint32Array)[place] = offset;
    const bits = this.#bits[(slot / SLOTS) | 0] as Uint32Array;
    bits[2 * place] = low;
    bits[2 * place + 1] = high;
  }

  /** Appends the first `count` samples of a slot to `into`. */
  read(slot: number, count: number, base_ms: number, into: Columns): void {
    growColumns(into, into.length + count);
    into.unsure = true;
    const times = this.#times[(slot / SLOTS) | 0] as Uint32Array;
    const bits = this.#bits[(slot / SLOTS) | 0] as Uint32Array;
    const out = new Uint32Array(into.values.buffer, into.values.byteOffset, into.values.length * 2);
    const from = (slot % SLOTS) * TAIL_SAMPLES;
    for (let i = 0; i < count; i++) {
      const to = into.length + i;
      into.timestamps[to] = base_ms + (times[from + i] as number);
      out[2 * to] = bits[2 * (from + i)] as number;
      out[2 * to + 1] = bits[2 * (from + i) + 1] as number;
    }
    into.length += count;
  }
}
