import { type Body, takeBody } from "./body.ts";
import type { Allowance } from "./budget.ts";
import { noRoom, ScrapeFailure, tooLarge } from "./failure.ts";
import { SCRAPE_LIMITS } from "./limits.ts";
import { type ResponseHead, readHead } from "./response-head.ts";

const HEAD_END = "\r\n\r\n";
const NEWLINE = 0x0a;
const RETURN = 0x0d;

/**
 * What comes next: the head · a body of a known length · the size of a chunk, the rest of that line, the chunk, the end
 * of its line · the lines behind the last chunk · a body that ends with the connection · nothing.
 */
type Next = "head" | "body" | "size" | "extension" | "chunk" | "chunk-end" | "trailer" | "rest" | "done";

/** Digits of a chunk's size: more than any chunk may have. */
const SIZE_DIGITS = 8;

/**
 * Parses one HTTP/1.1 response from the chunks of a connection. Not Node's parser, because that makes garbage of every
 * chunk, and collecting it took more time than everything else a scrape does. An invalid response is thrown as a
 * ScrapeFailure.
 */
export class ResponseReader {
  readonly #allowance: Allowance;
  readonly body: Body = takeBody();
  #next: Next = "head";
  #text = "";
  #head: ResponseHead | undefined;
  /** Remaining bytes of the body or chunk. */
  #left = 0;
  /** Of a size that is being read. */
  #digits = 0;
  /** Bytes of a line behind the last chunk. */
  #trailer = 0;
  /** Bytes passed over in a row: the rest of a line, or all lines behind the last chunk. */
  #trailers = 0;
  #surplus = false;

  constructor(allowance: Allowance) {
    this.#allowance = allowance;
  }

  get done(): boolean {
    return this.#next === "done";
  }

  /** Undefined until it is whole. */
  get head(): ResponseHead | undefined {
    return this.#head;
  }

  /** Another request may follow on the connection. */
  get keeps(): boolean {
    return this.done && this.#head?.keeps === true && !this.#surplus;
  }

  take(bytes: Buffer, end: number): void {
    let at = 0;
    while (at < end && !this.done) at = this.#read(bytes, at, end);
    if (at < end) this.#surplus = true;
  }

  /** The connection has ended. */
  end(): void {
    if (this.#next === "rest") this.#next = "done";
    if (!this.done) throw new ScrapeFailure("its answer was aborted halfway");
  }

  #read(bytes: Buffer, at: number, end: number): number {
    switch (this.#next) {
      case "head":
        return this.#readHead(bytes, at, end);
      case "size":
        return this.#readSize(bytes[at] as number, at);
      case "extension":
        return this.#skipLine(bytes, at, end, this.#left === 0 ? "trailer" : "chunk");
      case "chunk-end":
        return this.#skipLine(bytes, at, end, "size");
      case "trailer":
        return this.#readTrailer(bytes[at] as number, at);
      default:
        return this.#readBody(bytes, at, end);
    }
  }

  #readHead(bytes: Buffer, at: number, end: number): number {
    const before = this.#text.length;
    const most = Math.min(end, at + SCRAPE_LIMITS.head_bytes - before);
    // Mostly the whole head is in the first piece; it may also be cut anywhere, the empty line included.
    const found = before === 0 ? bytes.indexOf(HEAD_END, at, "latin1") : -1;
    const to = found >= 0 ? Math.min(most, found + HEAD_END.length) : most;
    this.#text += bytes.toString("latin1", at, to);
    const close = this.#text.indexOf(HEAD_END);
    if (close < 0 && this.#text.length >= SCRAPE_LIMITS.head_bytes) {
      throw new ScrapeFailure(`the head of its answer is longer than ${SCRAPE_LIMITS.head_bytes} bytes (head_bytes)`);
    }
    if (close < 0) return most;
    const head = readHead(this.#text.slice(0, close));
    this.#text = "";
    if (head) this.#begin(head);
    return at + close + HEAD_END.length - before;
  }

  #begin(head: ResponseHead): void {
    this.#head = head;
    this.#left = head.length ?? 0;
    if (head.chunked) this.#next = "size";
    else if (head.length === undefined) this.#next = "rest";
    else this.#next = head.length === 0 ? "done" : "body";
  }

  #readBody(bytes: Buffer, at: number, end: number): number {
    const to = this.#next === "rest" ? end : Math.min(end, at + this.#left);
    if (this.body.length + to - at > SCRAPE_LIMITS.body_bytes) throw tooLarge();
    if (!this.#allowance.take(to - at)) throw noRoom();
    this.body.add(bytes, at, to);
    this.#left -= to - at;
    if (this.#left === 0 && this.#next !== "rest") this.#next = this.#next === "chunk" ? "chunk-end" : "done";
    return to;
  }

  /** A hexadecimal number; what may stand behind it in its line means nothing to us. */
  #readSize(byte: number, at: number): number {
    const digit = Number.parseInt(String.fromCharCode(byte), 16);
    if (Number.isNaN(digit)) {
      if (this.#digits === 0) throw new ScrapeFailure("a chunk of its answer has no size");
      this.#digits = 0;
      this.#next = "extension";
      return at;
    }
    if (this.#digits === 0) this.#left = 0;
    if (++this.#digits > SIZE_DIGITS) throw tooLarge();
    this.#left = this.#left * 16 + digit;
    return at + 1;
  }

  #skipLine(bytes: Buffer, at: number, end: number, next: Next): number {
    const newline = bytes.indexOf(NEWLINE, at);
    if (newline < 0 || newline >= end) return this.#passed(end - at, end);
    this.#trailers = 0;
    this.#next = next;
    return newline + 1;
  }

  /** Lines up to an empty one. */
  #readTrailer(byte: number, at: number): number {
    if (byte === NEWLINE) {
      if (this.#trailer === 0) this.#next = "done";
      this.#trailer = 0;
    } else if (byte !== RETURN) this.#trailer++;
    return this.#passed(1, at + 1);
  }

  /** Bytes that are neither head nor body are as many as a head may have, and no more. */
  #passed(count: number, at: number): number {
    this.#trailers += count;
    if (this.#trailers > SCRAPE_LIMITS.head_bytes) throw new ScrapeFailure("a line of its answer never ends");
    return at;
  }
}
