/** Splits a template into texts and actions, and tokenizes an action. */
const KEYWORDS = ["if", "else", "end", "range", "with", "define", "template", "block", "break", "continue"];
const SPACE = /\s+/y;
const WORD = /[a-zA-Z_][\w]*/y;
/** A whole action: strings in it may hold the closing braces. */
const ACTION = /(?:"(?:[^"\\\n]|\\.)*"|`[^`]*`|'(?:[^'\\\n]|\\.)*'|[^"`'])*?\}\}/y;

export function scan(text: string): (string | Scanner)[] {
  const pieces: (string | Scanner)[] = [];
  let at = 0;
  let trims = false;
  for (;;) {
    const open = text.indexOf("{{", at);
    const raw = text.slice(at, open < 0 ? undefined : open);
    const before = trims ? raw.trimStart() : raw;
    if (open < 0) return [...pieces, before];
    const begins_trimmed = /^\{\{-\s/.test(text.slice(open, open + 4));
    const action = actionAt(text, open + (begins_trimmed ? 3 : 2));
    pieces.push(begins_trimmed ? before.trimEnd() : before);
    if (action.body !== undefined) pieces.push(new Scanner(action.body));
    at = action.end;
    trims = action.trims;
  }
}

/** The action that begins here; a comment has no body. */
function actionAt(text: string, from: number): { body?: string; end: number; trims: boolean } {
  const comment = /^\s*\/\*[\s\S]*?\*\/(\s-)?\}\}/.exec(text.slice(from));
  if (comment) return { end: from + comment[0].length, trims: comment[1] !== undefined };
  ACTION.lastIndex = from;
  const action = ACTION.exec(text)?.[0];
  if (action === undefined) throw new Error("an action {{ is not closed by }}");
  const trims = /\s-\}\}$/.test(action);
  return { body: action.slice(0, trims ? -3 : -2), end: from + action.length, trims };
}

/** Tokenizes one action. */
export class Scanner {
  readonly #text: string;
  #at = 0;

  constructor(text: string) {
    this.#text = text;
    this.match(SPACE);
  }

  isAtEnd(): boolean {
    return this.#at >= this.#text.length;
  }

  rest(): string {
    return this.#text.slice(this.#at);
  }

  match(pattern: RegExp): string | undefined {
    pattern.lastIndex = this.#at;
    const found = pattern.exec(this.#text)?.[0];
    if (found) this.#at += found.length;
    return found;
  }

  /** Consumes the text and the space after it. */
  take(text: string): boolean {
    this.match(SPACE);
    if (!this.#text.startsWith(text, this.#at)) return false;
    this.#at += text.length;
    this.match(SPACE);
    return true;
  }

  keyword(): string | undefined {
    const before = this.#at;
    const word = this.match(WORD);
    if (word !== undefined && KEYWORDS.includes(word)) {
      this.match(SPACE);
      return word;
    }
    this.#at = before;
    return undefined;
  }

  /** `$x :=`, `$i, $e :=`, `$x =`; nothing is consumed when there is none. */
  declaration(): { names: string[]; assigns: boolean } {
    const found = this.match(/\$\w+(?:\s*,\s*\$\w+)?\s*:?=\s*/y);
    if (found === undefined) return { names: [], assigns: false };
    return { names: found.match(/\$\w+/g) ?? [], assigns: !found.includes(":=") };
  }
}
