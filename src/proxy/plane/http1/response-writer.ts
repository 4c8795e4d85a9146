import type { Socket } from "node:net";
import { PROXY_LIMITS } from "../../limits.ts";

/** Writes responses to an HTTP/1 client in as few writes as possible. */
export class ResponseWriter {
  readonly #socket: Socket;
  /** A head that is written together with the first bytes of its body. */
  #held = "";
  #chunked = false;
  /** A chunk was written without a copy. */
  #lent = false;

  constructor(socket: Socket) {
    this.#socket = socket;
  }

  /** Whether the memory of a chunk is still in use. Small ones are copied. */
  get holds(): boolean {
    if (this.#socket.writableLength === 0) this.#lent = false;
    return this.#lent;
  }

  head(text: string, chunked: boolean): void {
    this.#held = text;
    this.#chunked = chunked;
  }

  /**
   * Returns false for back-pressure. A chunk larger than the stream's high-water mark alone does not cause it, because
   * the kernel may have taken it whole.
   */
  data(chunk: Buffer, module: number): boolean {
    return this.#write(chunk, module) || this.#socket.writableLength === 0;
  }

  #write(chunk: Buffer, module: number): boolean {
    const head = this.#taken();
    const size = this.#chunked ? `${chunk.length.toString(16)}\r\n` : "";
    const gap = this.#chunked ? "\r\n" : "";
    if (chunk.length <= PROXY_LIMITS.one_write_bytes) {
      return this.#socket.write(`${head}${size}${chunk.toString("latin1")}${gap}`, "latin1");
    }
    this.#lent = true;
    if (head !== "" && head.length <= module && !this.#chunked) return this.#socket.write(joined(head, chunk));
    this.#socket.cork();
    if (head !== "" || size !== "") this.#socket.write(head + size, "latin1");
    const ready = this.#socket.write(chunk);
    if (gap !== "") this.#socket.write(gap, "latin1");
    this.#socket.uncork();
    return ready;
  }

  flush(): void {
    if (this.#held !== "") this.#socket.write(this.#taken(), "latin1");
  }

  end(trailers: string): void {
    const text = this.#taken() + (this.#chunked ? `0\r\n${trailers}\r\n` : "");
    this.#chunked = false;
    if (text !== "") this.#socket.write(text, "latin1");
  }

  #taken(): string {
    const text = this.#held;
    this.#held = "";
    return text;
  }
}

/** Writes our head into the space before the body, where the machine's head was. */
function joined(head: string, { buffer, byteOffset, length }: Buffer): Buffer {
  const joined = Buffer.from(buffer, byteOffset - head.length, head.length + length);
  joined.write(head, "latin1");
  return joined;
}
