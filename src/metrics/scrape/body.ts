/** A growing buffer for a response, reused after `giveBack`: as garbage it would cost more than the reading does. */
export class Body {
  #bytes = Buffer.allocUnsafeSlow(FIRST_BYTES);
  length = 0;

  /** Valid until more is added or the body is given back. */
  get view(): Buffer {
    return this.#bytes.subarray(0, this.length);
  }

  add(bytes: Uint8Array, from: number, to: number): void {
    const needed = this.length + to - from;
    if (needed > this.#bytes.length) this.#grow(needed);
    this.#bytes.set(bytes.subarray(from, to), this.length);
    this.length = needed;
  }

  /** The caller must hold no view of it any more. */
  giveBack(): void {
    this.length = 0;
    if (this.#bytes.length <= SPARE_BYTES && spare.length < SPARE_MOST) spare.push(this);
  }

  #grow(needed: number): void {
    const larger = Buffer.allocUnsafeSlow(Math.max(needed, this.#bytes.length * 2));
    larger.set(this.view);
    this.#bytes = larger;
  }
}

const FIRST_BYTES = 64 * 1024;
/** Larger buffers, and more than this many, are left to the garbage collector. */
const SPARE_BYTES = 1024 * 1024;
const SPARE_MOST = 64;
const spare: Body[] = [];

/** An empty one. */
export function takeBody(): Body {
  return spare.pop() ?? new Body();
}
