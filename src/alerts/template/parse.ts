/**
 * Parses the templates of rules: Go's text/template without `define`, `template`, `block`, `break` and `continue`.
 * The tree is evaluated in evaluate.ts.
 */
import { FUNCTIONS } from "./functions.ts";
import { type Scanner, scan } from "./scan.ts";

export type Node =
  | { kind: "text"; text: string }
  | { kind: "action"; pipe: Pipe }
  | { kind: "if" | "with"; pipe: Pipe; body: Node[]; otherwise: Node[] }
  | { kind: "range"; pipe: Pipe; body: Node[]; otherwise: Node[] };

/** Commands that pass their result on, and the variables that the last one is assigned to. */
export interface Pipe {
  declares: string[];
  /** `=` instead of `:=`. */
  assigns: boolean;
  commands: Term[][];
}

export type Term =
  | { kind: "literal"; value: string | number | bigint | boolean | null }
  | { kind: "dot" }
  | { kind: "variable"; name: string }
  | { kind: "function"; name: string }
  | { kind: "pipe"; pipe: Pipe }
  | { kind: "field"; of: Term; names: string[] };

/** Throws an error that describes the syntax error. */
export function parseTemplate(text: string): Node[] {
  const pieces = scan(text);
  const parser = new Parser(pieces);
  return parser.whole();
}

type Piece = ReturnType<typeof scan>[number];
type Ending = { keyword: "end" | "else" | ""; rest?: Scanner };

/** Maximum nesting of blocks; deeper nesting would exhaust the stack. */
const MOST_DEPTH = 100;

class Parser {
  readonly #pieces: Piece[];
  #at = 0;
  #depth = 0;

  constructor(pieces: Piece[]) {
    this.#pieces = pieces;
  }

  whole(): Node[] {
    const { nodes, ending } = this.#nodes();
    if (ending.keyword !== "") throw new Error(`unexpected {{${ending.keyword}}}`);
    return nodes;
  }

  #nodes(): { nodes: Node[]; ending: Ending } {
    const nodes: Node[] = [];
    for (;;) {
      const piece = this.#pieces[this.#at++];
      if (piece === undefined) return { nodes, ending: { keyword: "" } };
      if (typeof piece === "string") {
        if (piece !== "") nodes.push({ kind: "text", text: piece });
        continue;
      }
      const keyword = piece.keyword();
      if (keyword === "end" || keyword === "else") return { nodes, ending: { keyword, rest: piece } };
      nodes.push(this.#action(keyword, piece));
    }
  }

  #action(keyword: string | undefined, piece: Scanner): Node {
    if (keyword === undefined) return { kind: "action", pipe: wholePipe(piece) };
    if (keyword === "if" || keyword === "with" || keyword === "range") return this.#block(keyword, piece);
    throw new Error(`{{${keyword}}} is not supported in rules`);
  }

  #block(kind: "if" | "with" | "range", head: Scanner): Node {
    if (++this.#depth > MOST_DEPTH) throw new Error("its blocks are nested too deeply");
    const pipe = wholePipe(head);
    const { nodes: body, ending } = this.#nodes();
    if (ending.keyword === "") throw new Error(`{{${kind}}} has no {{end}}`);
    const otherwise = ending.keyword === "else" ? this.#otherwise(kind, ending.rest as Scanner) : [];
    this.#depth--;
    return { kind, pipe, body, otherwise };
  }

  #otherwise(kind: string, head: Scanner): Node[] {
    if (!head.isAtEnd()) {
      const keyword = head.keyword();
      if (keyword === kind && keyword !== "range") return [this.#block(keyword as "if" | "with", head)];
      throw new Error(`unexpected text after {{else}} of {{${kind}}}`);
    }
    const { nodes, ending } = this.#nodes();
    if (ending.keyword !== "end") throw new Error(`{{else}} of {{${kind}}} has no {{end}}`);
    return nodes;
  }
}

function wholePipe(scanner: Scanner): Pipe {
  const pipe = parsePipe(scanner);
  if (!scanner.isAtEnd()) throw new Error(`unexpected ${JSON.stringify(scanner.rest())}`);
  return pipe;
}

function parsePipe(scanner: Scanner): Pipe {
  const { names, assigns } = scanner.declaration();
  const commands: Term[][] = [];
  do {
    const command: Term[] = [];
    for (let term = parseTerm(scanner); term; term = parseTerm(scanner)) command.push(term);
    if (command.length === 0) throw new Error("missing value for command");
    if (command.length > 1 && command[0]?.kind !== "function" && command[0]?.kind !== "field")
      throw new Error("only a function takes arguments");
    if (commands.length > 0 && command[0]?.kind === "literal")
      throw new Error("a value that is no function cannot stand after |");
    commands.push(command);
  } while (scanner.take("|"));
  return { declares: names, assigns, commands };
}

const FIELDS = /(?:\.[a-zA-Z_]\w*)+/y;
const VARIABLE = /\$\w*/y;
const NUMBER = /[+-]?(?:0[xX][0-9a-fA-F]+|(?:\d[\d_]*\.?\d*|\.\d+)(?:[eE][+-]?\d+)?)/y;
const STRING = /"(?:[^"\\\n]|\\.)*"/y;
const RAW = /`[^`]*`/y;
const CHAR = /'(?:[^'\\\n]|\\.[^']*)'/y;
const WORD = /[a-zA-Z_][\w]*/y;

/** The next operand of a command, or undefined at its end. */
function parseTerm(scanner: Scanner): Term | undefined {
  scanner.match(/\s+/y);
  if (scanner.isAtEnd() || /^[|)]/.test(scanner.rest())) return undefined;
  const term = primary(scanner);
  const fields = scanner.match(FIELDS);
  const whole: Term = fields === undefined ? term : { kind: "field", of: term, names: fields.slice(1).split(".") };
  if (!scanner.isAtEnd() && !/^[\s|)]/.test(scanner.rest()))
    throw new Error(`unexpected ${JSON.stringify(scanner.rest())}`);
  return whole;
}

function primary(scanner: Scanner): Term {
  if (scanner.take("(")) {
    const pipe = parsePipe(scanner);
    if (!/^\s*\)/.test(scanner.rest())) throw new Error("unclosed left parenthesis");
    scanner.match(/\s*\)/y);
    return { kind: "pipe", pipe };
  }
  const variable = scanner.match(VARIABLE);
  if (variable !== undefined) return { kind: "variable", name: variable };
  const literal = literalOf(scanner);
  if (literal) return literal;
  if (/^\.[a-zA-Z_]/.test(scanner.rest())) return { kind: "dot" };
  if (scanner.match(/\./y) !== undefined) return { kind: "dot" };
  const word = scanner.match(WORD);
  if (word === undefined) throw new Error(`unexpected ${JSON.stringify(scanner.rest())}`);
  if (word === "true" || word === "false") return { kind: "literal", value: word === "true" };
  if (word === "nil") return { kind: "literal", value: null };
  if (!Object.hasOwn(FUNCTIONS, word)) throw new Error(`function "${word}" is not known here`);
  return { kind: "function", name: word };
}

function literalOf(scanner: Scanner): Term | undefined {
  const quoted = scanner.match(STRING);
  if (quoted !== undefined) return { kind: "literal", value: unquote(quoted) };
  const raw = scanner.match(RAW);
  if (raw !== undefined) return { kind: "literal", value: raw.slice(1, -1) };
  const char = scanner.match(CHAR);
  if (char !== undefined)
    return { kind: "literal", value: BigInt(unquote(`"${char.slice(1, -1)}"`).codePointAt(0) ?? 0) };
  const number = scanner.match(NUMBER)?.replaceAll("_", "");
  if (number === undefined) return undefined;
  const sign = number.startsWith("-") ? -1n : 1n;
  const digits = number.replace(/^[+-]/, "");
  const value = /^(0[xX][0-9a-fA-F]+|\d+)$/.test(digits) ? sign * BigInt(digits) : Number(number);
  return { kind: "literal", value };
}

const ESCAPES: Record<string, string> = { a: "\x07", b: "\b", f: "\f", n: "\n", r: "\r", t: "\t", v: "\v" };

/** Go's escapes in a quoted string. */
function unquote(text: string): string {
  return text
    .slice(1, -1)
    .replaceAll(
      /\\(?:x([0-9a-fA-F]{2})|u([0-9a-fA-F]{4})|U([0-9a-fA-F]{8})|([0-7]{3})|(.))/g,
      (_all, hex?: string, short?: string, long?: string, octal?: string, char = "") => {
        const code = hex ?? short ?? long;
        if (code !== undefined) return String.fromCodePoint(Math.min(0x10ffff, Number.parseInt(code, 16)));
        if (octal !== undefined) return String.fromCharCode(Number.parseInt(octal, 8));
        return ESCAPES[char] ?? char;
      },
    );
}
