/**
 * What goes to one replica. Small frames are gathered into one write: that costs less than writing each, and what they were
 * copied from can be used again at once.
 *
 * Gathered here, and not by corking the answer: one that is corked and sent in chunks never refuses a write, so it never
 * says "drain", and a replica that was waited for would be waited for without end.
 */
import type { ServerResponse } from "node:http";

const GATHERED_BYTES = 256 * 1024;
/** Memory that waits to be filled again. More of it is needed only while a replica does not keep up. */
const SPARE = 2;
const NOTHING = Buffer.alloc(0);

export class Outbox {
  readonly response: ServerResponse;
  #memory: Buffer = NOTHING;
  #filled = 0;
  readonly #spare: Buffer[] = [];

  constructor(response: ServerResponse) {
    this.response = response;
  }

  /** Bytes the connection has not taken yet. */
  get waiting(): number {
    return this.response.writableLength + this.#filled;
  }

  /** The parts, in this order. What is too large to be copied must not be changed any more by anybody. */
  put(...parts: readonly Buffer[]): void {
    const bytes = parts.reduce((sum, part) => sum + part.length, 0);
    if (this.#filled + bytes > this.#memory.length) this.flush();
    if (bytes > GATHERED_BYTES) {
      for (const part of parts) this.response.write(part);
      return;
    }
    if (this.#memory.length === 0) this.#memory = this.#spare.pop() ?? Buffer.allocUnsafeSlow(GATHERED_BYTES);
    for (const part of parts) this.#filled += part.copy(this.#memory, this.#filled);
  }

  /** Whatever was put here is on its way after this. */
  flush(): void {
    if (this.#filled === 0) return;
    const memory = this.#memory;
    const gathered = memory.subarray(0, this.#filled);
    this.#memory = NOTHING;
    this.#filled = 0;
    this.response.write(gathered, () => {
      if (this.#spare.length < SPARE) this.#spare.push(memory);
    });
  }
}
