import { PROXY_LIMITS } from "../../limits.ts";

/**
 * Memory that one connection reads into. Usually what was read is passed on before the next is read, so one piece does
 * for all; a fresh one for each read would make megabytes of garbage before anybody collects it. Where the other side
 * is slow, what was passed on is still needed: then the next is read into another piece, and the first comes back.
 */
export class ReadBuffers {
  #current = piece();
  #lent: Buffer | undefined;
  #spare: Buffer | undefined;

  get current(): Buffer {
    return this.#current;
  }

  /** What was just read is still needed. */
  lend(): void {
    this.#lent = this.#current;
    this.#current = this.#spare ?? piece();
    this.#spare = undefined;
  }

  /** All that was lent is no longer needed. */
  returned(): void {
    this.#spare ??= this.#lent;
    this.#lent = undefined;
  }

  /** What was lent is somebody else's for good. */
  forget(): void {
    this.#lent = undefined;
  }
}

/**
 * Gives back the memory of a chunk that nobody needs any more, if it has memory of its own. The collector would do it
 * too, but only after tens of megabytes of them.
 */
export function release(chunk: Buffer): void {
  const { buffer } = chunk;
  if (buffer instanceof ArrayBuffer && chunk.length === buffer.byteLength) buffer.transfer(0);
}

const piece = (): Buffer =>
  Buffer.allocUnsafeSlow(PROXY_LIMITS.head_room_bytes + PROXY_LIMITS.read_bytes).subarray(PROXY_LIMITS.head_room_bytes);
