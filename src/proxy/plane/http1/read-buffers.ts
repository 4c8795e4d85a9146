import { PROXY_LIMITS } from "../../limits.ts";

/**
 * Read buffers of one connection. Usually a chunk is passed on before the next read, so one buffer is enough; a new one
 * per read would produce megabytes of garbage. When the other side is slow, the chunk is still in use: then the next
 * read uses another buffer, and the first is returned later.
 */
export class ReadBuffers {
  #current = piece();
  #lent: Buffer | undefined;
  #spare: Buffer | undefined;

  get current(): Buffer {
    return this.#current;
  }

  /** The last chunk is still in use. */
  lend(): void {
    this.#lent = this.#current;
    this.#current = this.#spare ?? piece();
    this.#spare = undefined;
  }

  /** All lent buffers are free again. */
  returned(): void {
    this.#spare ??= this.#lent;
    this.#lent = undefined;
  }

  /** Gives up the lent buffers for good. */
  forget(): void {
    this.#lent = undefined;
  }
}

/**
 * Frees the memory of an unused chunk that has a buffer of its own. The garbage collector would do it only after tens
 * of megabytes.
 */
export function release(chunk: Buffer): void {
  const { buffer } = chunk;
  if (buffer instanceof ArrayBuffer && chunk.length === buffer.byteLength) buffer.transfer(0);
}

const piece = (): Buffer =>
  Buffer.allocUnsafeSlow(PROXY_LIMITS.head_room_bytes + PROXY_LIMITS.read_bytes).subarray(PROXY_LIMITS.head_room_bytes);
