/**
 * Memory for things that are made by the thousand and live for a moment: many of them share one allocation. An
 * allocation of its own for each costs the collector more than everything else that is done with it.
 */
const SLAB_BYTES = 1024 * 1024;
/** What is larger gets an allocation of its own; sharing would waste the rest of a slab. */
const LARGE_BYTES = SLAB_BYTES / 8;

export class Slab {
  #memory = Buffer.alloc(0);
  #at = 0;

  /** At least `bytes` of memory, starting at a multiple of eight. What is in it is anything. */
  reserve(bytes: number): Buffer {
    if (bytes > LARGE_BYTES) return Buffer.allocUnsafeSlow(bytes);
    if (this.#at + bytes > this.#memory.length) {
      this.#memory = Buffer.allocUnsafeSlow(SLAB_BYTES);
      this.#at = 0;
    }
    return this.#memory.subarray(this.#at, this.#at + bytes);
  }

  /** Of what was reserved last, the first `bytes` stay in use; the rest can be reserved again. */
  keep(reserved: Buffer, bytes: number): Buffer {
    if (reserved.buffer === this.#memory.buffer) this.#at += (bytes + 7) & ~7;
    return reserved.subarray(0, bytes);
  }
}

/** Memory for pages. Whoever needs them for a moment only resets it, and the next ones take the same place. */
export class PageMemory {
  #memory = Buffer.alloc(0);
  #at = 0;

  /** Everything that was taken is given back. */
  reset(): void {
    this.#at = 0;
  }

  take(bytes: number): Buffer {
    if (this.#at + bytes > this.#memory.length) {
      // As much as a small transaction has, then more and more, up to a slab at a time.
      this.#memory = Buffer.allocUnsafeSlow(Math.min(SLAB_BYTES, Math.max(bytes * 8, this.#memory.length * 2)));
      this.#at = 0;
    }
    this.#at += bytes;
    return this.#memory.subarray(this.#at - bytes, this.#at);
  }
}
