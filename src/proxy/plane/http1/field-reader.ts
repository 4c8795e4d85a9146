/** Header lines as HTTP/1.1 writes them, read strictly, byte by byte: a regular expression takes twice the time. */
import { PROXY_LIMITS } from "../../limits.ts";
import { BadMessage } from "./bad-message.ts";
import { nameAt } from "./field-names.ts";
import { fieldName } from "./fields.ts";

/** Character classes of a header line: name, value, whitespace. */
const NAME = 1;
const VALUE = 2;
const BLANK = 4;
const KINDS = Uint8Array.from({ length: 256 }, (_, byte) => {
  const letter = String.fromCharCode(byte);
  return (
    (/[!#$%&'*+\-.^_`|~0-9A-Za-z]/.test(letter) ? NAME : 0) |
    (/[\x21-\x7e\x80-\xff]/.test(letter) ? VALUE : 0) |
    (/[\t ]/.test(letter) ? BLANK : 0)
  );
});
const NO_NAME = fieldName("");
const COLON = 58;
const CR = 13;
const LF = 10;

/** Reads the header lines of a head until the empty line. */
export class FieldReader {
  readonly #bytes: Buffer;
  readonly #text: string;
  #at: number;
  #line = 0;
  #count = 0;
  /** Name in the current line. */
  name = NO_NAME;
  /** Value without surrounding whitespace. */
  value = "";

  /** `text` is `bytes` as latin1. */
  constructor(bytes: Buffer, text: string, from: number) {
    this.#bytes = bytes;
    this.#text = text;
    this.#at = from;
  }

  /** The current line with its end. */
  get line(): string {
    return this.#text.slice(this.#line, this.#at);
  }

  /** Returns false at the end of the head. */
  next(): boolean {
    const text = this.#text;
    const from = this.#at;
    if (from >= text.length - 2) return false;
    const colon = this.#readName(from);
    const bytes = this.#bytes;
    let at = colon + 1;
    while (KINDS[bytes[at] as number] === BLANK) at++;
    const value_from = at;
    let value_to = at;
    for (let kind = KINDS[bytes[at] as number] as number; kind >= VALUE; kind = KINDS[bytes[at] as number] as number) {
      at++;
      if (kind !== BLANK) value_to = at;
    }
    if (bytes[at] !== CR || bytes[at + 1] !== LF) this.#refuse();
    if (++this.#count > PROXY_LIMITS.head_lines) {
      throw new BadMessage(`there are more than ${PROXY_LIMITS.head_lines} header lines (limit head_lines)`, 431);
    }
    this.value = text.slice(value_from, value_to);
    this.#line = from;
    this.#at = at + 2;
    return true;
  }

  /** Returns the position of the colon. */
  #readName(from: number): number {
    const bytes = this.#bytes;
    let at = from;
    let hash = 0;
    for (let byte = bytes[at] as number; ((KINDS[byte] as number) & NAME) !== 0; byte = bytes[++at] as number) {
      hash = (Math.imul(hash, 31) + byte) | 0;
    }
    if (at === from || bytes[at] !== COLON) this.#refuse();
    this.name = nameAt(bytes, from, at, hash);
    return at;
  }

  #refuse(): never {
    throw new BadMessage(`header line ${this.#count + 1} is not \`name: value\` as HTTP/1.1 writes it`);
  }
}
