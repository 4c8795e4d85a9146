import { PROXY_LIMITS } from "../../limits.ts";
import { BadMessage } from "./bad-message.ts";
import { CHUNKED, readTrailers, UNTIL_CLOSE } from "./head.ts";

/** Receives a body. */
export interface BodySink {
  data(chunk: Buffer): void;
  /** `trailers` are lines with their ends; usually none. */
  end(trailers: string): void;
}

const CHUNK_LINE = /^([0-9A-Fa-f]{1,12})[\t ]*(?:;[\t\x20-\x7e\x80-\xff]*)?$/;
const CRLF = Buffer.from("\r\n");
const NOTHING = Buffer.alloc(0);

/** Reads one body from a connection's bytes. Chunk extensions are dropped; an invalid chunked body is refused. */
export class BodyReader {
  readonly #length: number;
  /** Remaining bytes of the body or chunk. */
  #left: number;
  #state: "data" | "line" | "gap" | "trailers" | "done";
  /** The beginning of an incomplete line. */
  #partial: Buffer = NOTHING;

  constructor(length: number) {
    this.#length = length;
    this.#left = length === UNTIL_CLOSE ? Number.POSITIVE_INFINITY : Math.max(length, 0);
    this.#state = length === CHUNKED ? "line" : length === 0 ? "done" : "data";
  }

  get done(): boolean {
    return this.#state === "done";
  }

  /** Consumes the body's bytes and returns their number; the rest belongs to the next message. */
  feed(bytes: Buffer, sink: BodySink): number {
    let at = 0;
    while (at < bytes.length && this.#state !== "done") {
      at = this.#state === "data" ? this.#data(bytes, at, sink) : this.#line(bytes, at, sink);
    }
    return at;
  }

  /** Handles the end of the connection: the end of a body without a length, an error for any other. */
  close(sink: BodySink): boolean {
    if (this.#length !== UNTIL_CLOSE || this.#state === "done") return false;
    this.#state = "done";
    sink.end("");
    return true;
  }

  #data(bytes: Buffer, at: number, sink: BodySink): number {
    const end = Math.min(bytes.length, at + this.#left);
    this.#left -= end - at;
    sink.data(at === 0 && end === bytes.length ? bytes : bytes.subarray(at, end));
    if (this.#left > 0) return end;
    this.#state = this.#length === CHUNKED ? "gap" : "done";
    if (this.#state === "done") sink.end("");
    return end;
  }

  /** Reads to the end of a line, or keeps an incomplete one. */
  #line(bytes: Buffer, at: number, sink: BodySink): number {
    const end = bytes.indexOf(10, at);
    const piece = bytes.subarray(at, end < 0 ? bytes.length : end + 1);
    const line = this.#partial.length > 0 ? Buffer.concat([this.#partial, piece]) : piece;
    const limit = this.#state === "trailers" ? PROXY_LIMITS.trailer_bytes : PROXY_LIMITS.chunk_line_bytes;
    if (line.length > limit) throw new BadMessage("a line of the chunked body is too long");
    if (end < 0) {
      this.#partial = Buffer.from(line);
      return bytes.length;
    }
    if (this.#state === "trailers") this.#trailerLine(line, sink);
    else {
      this.#partial = NOTHING;
      if (!line.subarray(-2).equals(CRLF)) throw new BadMessage("a line of the chunked body does not end with CR LF");
      if (this.#state === "gap") this.#gap(line);
      else this.#chunkLine(line.toString("latin1", 0, line.length - 2));
    }
    return end + 1;
  }

  #gap(line: Buffer): void {
    if (line.length !== 2) throw new BadMessage("a chunk is longer than it says");
    this.#state = "line";
  }

  #chunkLine(line: string): void {
    const size = CHUNK_LINE.exec(line)?.[1];
    if (size === undefined) throw new BadMessage("the size of a chunk is not a hexadecimal number");
    this.#left = Number.parseInt(size, 16);
    this.#state = this.#left === 0 ? "trailers" : "data";
  }

  /** Collects trailers until the empty line. */
  #trailerLine(lines: Buffer, sink: BodySink): void {
    const text = lines.toString("latin1");
    if (text !== "\r\n" && !text.endsWith("\r\n\r\n")) {
      this.#partial = Buffer.from(lines);
      return;
    }
    this.#partial = NOTHING;
    this.#state = "done";
    sink.end(text === "\r\n" ? "" : readTrailers(text.slice(0, -2)));
  }
}
