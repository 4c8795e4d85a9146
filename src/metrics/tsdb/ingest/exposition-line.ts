/** Something wrong in a line, and the byte where. */
export class LineProblem extends Error {
  override readonly name = "LineProblem";
  readonly at: number;

  constructor(message: string, at: number) {
    super(message);
    this.at = at;
  }
}

const code = (character: string): number => character.charCodeAt(0);
const QUOTE = code('"');
const BACKSLASH = code("\\");
const OPEN = code("{");
const CLOSE = code("}");
const COMMA = code(",");
const EQUALS = code("=");
const SPACE = code(" ");
const TAB = code("\t");
const ESCAPES: Record<string, string> = { n: "\n", "\\": "\\", '"': '"' };

/** 1: may stand in a name, 2: may begin one. */
const NAME = new Uint8Array(256);
for (const character of "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ_:") NAME[code(character)] = 3;
for (const character of "0123456789") NAME[code(character)] = 1;

/** A cursor over one line: `name{label="value",…} value timestamp # comment`. */
export class ExpositionLine {
  readonly #bytes: Uint8Array;
  readonly #end: number;
  at: number;

  constructor(bytes: Uint8Array, at: number, end: number) {
    this.#bytes = bytes;
    this.at = at;
    this.#end = end;
  }

  get done(): boolean {
    return this.at >= this.#end;
  }

  get byte(): number {
    return this.done ? -1 : (this.#bytes[this.at] as number);
  }

  skipBlanks(): void {
    while (this.byte === SPACE || this.byte === TAB) this.at++;
  }

  /** Up to the next blank. */
  skipWord(): void {
    while (!this.done && this.byte !== SPACE && this.byte !== TAB) this.at++;
  }

  /** Over name and labels, looking only for where they end. */
  skipKey(): void {
    while ((NAME[this.byte] ?? 0) !== 0) this.at++;
    const behindName = this.at;
    this.skipBlanks();
    if (this.byte !== OPEN) {
      this.at = behindName;
      return;
    }
    for (let quoted = false; !this.done; this.at++) {
      if (this.byte === QUOTE) quoted = !quoted;
      else if (quoted && this.byte === BACKSLASH) this.at++;
      else if (!quoted && this.byte === CLOSE) break;
    }
    if (this.byte !== CLOSE) throw new LineProblem("the labels have no closing brace", this.#end);
    this.at++;
  }

  /** Name and labels; the name may also be the first text inside the braces. */
  readKey(): [string, string][] {
    const pairs: [string, string][] = [];
    if (this.byte !== OPEN) pairs.push(["__name__", this.#name()]);
    this.skipBlanks();
    if (this.done) return pairs;
    this.#expect(OPEN, "{");
    for (this.skipBlanks(); this.byte !== CLOSE; this.skipBlanks()) {
      pairs.push(this.#pair());
      this.skipBlanks();
      if (this.byte !== CLOSE) this.#expect(COMMA, ", or }");
    }
    return pairs;
  }

  #pair(): [string, string] {
    const name = this.byte === QUOTE ? this.#text() : this.#name();
    const from = this.at;
    this.skipBlanks();
    if (this.byte !== EQUALS && this.#bytes[from - 1] === QUOTE) return ["__name__", name];
    this.#expect(EQUALS, "=");
    this.skipBlanks();
    if (this.byte !== QUOTE) throw new LineProblem('" expected', this.at);
    return [name, this.#text()];
  }

  #name(): string {
    const start = this.at;
    if (((NAME[this.byte] ?? 0) & 2) === 0) throw new LineProblem("a name was expected", this.at);
    while ((NAME[this.byte] ?? 0) !== 0) this.at++;
    return this.#slice(start, this.at);
  }

  #text(): string {
    const start = ++this.at;
    let escaped = false;
    while (this.byte !== QUOTE) {
      if (this.done) throw new LineProblem("the text has no closing quote", start - 1);
      if (this.byte === BACKSLASH) {
        escaped = true;
        this.at++;
      }
      this.at++;
    }
    const text = this.#slice(start, this.at++);
    // An escape that means nothing stands for itself, as in Prometheus.
    return escaped ? text.replace(/\\(.)/gs, (all, character: string) => ESCAPES[character] ?? all) : text;
  }

  #expect(byte: number, what: string): void {
    if (this.byte !== byte) throw new LineProblem(`${what} expected`, this.at);
    this.at++;
  }

  #slice(start: number, end: number): string {
    return Buffer.from(this.#bytes.buffer, this.#bytes.byteOffset + start, end - start).toString("utf8");
  }
}
