/**
 * A slab allocator for short-lived buffers: many of them share one allocation. An allocation of its own for each costs
 * the garbage collector more than everything else that is done with it, and so do shared ones that are freed. So a slab
 * is reused once all of its buffers were returned.
 */
const SLAB_BYTES = 1024 * 1024;
/** What is larger gets an allocation of its own; sharing would waste the rest of a slab. */
const LARGE_BYTES = SLAB_BYTES / 8;
/** Slabs that wait to be used again. More are left to the collector. */
const SPARE_SLABS = 2;

interface Piece {
  memory: Buffer;
  /** Number of its buffers that were not returned yet. */
  in_use: number;
}

const NOTHING: Piece = { memory: Buffer.alloc(0), in_use: 0 };

export class Slab {
  #current = NOTHING;
  #at = 0;
  /**
   * By what a buffer says it is part of. One that is never given back keeps its slab from being used again, no more.
   */
  readonly #pieces = new WeakMap<ArrayBufferLike, Piece>();
  readonly #spare: Piece[] = [];

  /** At least `bytes` of memory, starting at a multiple of eight. What is in it is anything. */
  reserve(bytes: number): Buffer {
    if (bytes > LARGE_BYTES) return Buffer.allocUnsafeSlow(bytes);
    if (this.#at + bytes > this.#current.memory.length) this.#next();
    return this.#current.memory.subarray(this.#at, this.#at + bytes);
  }

  /** Of what was reserved last, the first `bytes` stay in use; the rest can be reserved again. */
  keep(reserved: Buffer, bytes: number): Buffer {
    if (reserved.buffer === this.#current.memory.buffer) {
      this.#at += (bytes + 7) & ~7;
      this.#current.in_use++;
    }
    return reserved.subarray(0, bytes);
  }

  /** Returns a buffer, once; it must not be read after this. */
  giveBack(kept: Buffer): void {
    const piece = this.#pieces.get(kept.buffer);
    if (!piece) return;
    piece.in_use--;
    if (piece !== this.#current) this.#reuse(piece);
  }

  #next(): void {
    const before = this.#current;
    this.#current = this.#spare.pop() ?? this.#fresh();
    this.#at = 0;
    this.#reuse(before);
  }

  #fresh(): Piece {
    const piece = { memory: Buffer.allocUnsafeSlow(SLAB_BYTES), in_use: 0 };
    this.#pieces.set(piece.memory.buffer, piece);
    return piece;
  }

  #reuse(piece: Piece): void {
    if (piece.in_use === 0 && piece !== NOTHING && this.#spare.length < SPARE_SLABS) this.#spare.push(piece);
  }
}
