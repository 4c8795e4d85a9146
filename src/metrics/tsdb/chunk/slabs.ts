import { assert } from "#core/assert.ts";

const SLAB_BYTES = 256 * 1024;
/** Released slabs that are reused by the next window: memory that is already mapped. */
const SPARE_SLABS = 16;
const spare: Uint8Array<ArrayBuffer>[] = [];

/** Frees the spare slabs: the next window may be hours away. */
export function freeSpareSlabs(): void {
  for (const slab of spare.splice(0)) slab.buffer.transfer(0);
}

const HEADER_WORDS = 3;

/**
 * Sealed chunks of one window, back to back in slabs. Each carries the place of the chunk before it of the
 * same series, so that a series costs one number however many chunks it has:
 *
 *     u32 place of the chunk before, 0 when none · u32 first · u32 last offset from the window's start · chunk
 */
export class ChunkSlabs {
  readonly #slabs: Uint8Array<ArrayBuffer>[] = [];
  readonly #words: Uint32Array[] = [];
  #at = SLAB_BYTES;

  get bytes(): number {
    return this.#slabs.length * SLAB_BYTES;
  }

  /** The place of the new chunk, never 0. */
  add(chunk: Uint8Array, before: number, first: number, last: number): number {
    const size = (HEADER_WORDS * 4 + chunk.length + 3) & ~3;
    assert(size <= SLAB_BYTES, "a head chunk fits into a slab");
    if (this.#at + size > SLAB_BYTES) this.#grow();
    const slab = this.#slabs.length - 1;
    const words = this.#words[slab] as Uint32Array;
    const word = this.#at >> 2;
    words[word] = before;
    words[word + 1] = first;
    words[word + 2] = last;
    (this.#slabs[slab] as Uint8Array).set(chunk, this.#at + HEADER_WORDS * 4);
    const place = slab * SLAB_BYTES + this.#at + 4;
    this.#at += size;
    return place;
  }

  before(place: number): number {
    return this.#header(place, 0);
  }

  first(place: number): number {
    return this.#header(place, 1);
  }

  last(place: number): number {
    return this.#header(place, 2);
  }

  chunk(place: number): { bytes: Uint8Array; at: number } {
    const bytes = this.#slabs[Math.floor(place / SLAB_BYTES)];
    assert(bytes, "a chunk's place lies in a slab");
    // Places are the header's address plus 4, so that 0 can mean none.
    return { bytes, at: (place % SLAB_BYTES) - 4 + HEADER_WORDS * 4 };
  }

  release(): void {
    for (const slab of this.#slabs) {
      if (spare.length < SPARE_SLABS) spare.push(slab);
      // Freed now, not by the garbage collector: little else would trigger it.
      else slab.buffer.transfer(0);
    }
    this.#slabs.length = 0;
    this.#words.length = 0;
    this.#at = SLAB_BYTES;
  }

  #header(place: number, word: number): number {
    const words = this.#words[Math.floor(place / SLAB_BYTES)] as Uint32Array;
    return words[(((place % SLAB_BYTES) - 4) >> 2) + word] as number;
  }

  #grow(): void {
    const slab = spare.pop() ?? new Uint8Array(SLAB_BYTES);
    this.#slabs.push(slab);
    this.#words.push(new Uint32Array(slab.buffer));
    this.#at = 0;
  }
}
