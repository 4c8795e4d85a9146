import type { Dialect } from "./ast.ts";
import { scanDuration } from "./durations.ts";
import { parseError } from "./errors.ts";

export interface Token {
  type: "ident" | "string" | "number" | "duration" | "sign" | "end";
  /** Idents unescaped, strings unquoted, the rest as written. */
  text: string;
  at: number;
  end: number;
}

/** Comments are blanks. All patterns are sticky: they match at one place or not at all. */
const BLANK = /(?:[ \t\n\v\f\r]+|#[^\n]*(?:\n|$))*/y;
const IDENT: Record<Dialect, RegExp> = {
  metricsql:
    /(?:[\p{L}_:]|\\x[0-9a-f]{2}|\\u[0-9a-f]{4}|\\[^xu\p{C}])(?:[\p{L}\p{Nd}_:.]|\\x[0-9a-f]{2}|\\u[0-9a-f]{4}|\\[^xu\p{C}])*|\$__\w+/iuy,
  promql: /[a-zA-Z_:][a-zA-Z0-9_:]*/y,
};
/** Between brackets, where a colon separates a subquery's window from its step. */
const WINDOW_IDENT = /[a-zA-Z_][a-zA-Z0-9_]*/y;
// The multiplier must end the word, or `5min` would be five mega-something.
const NUMBER =
  /0x[0-9a-f_]+|0[ob][0-7_]+|(?:\d[\d_]*(?:\.[\d_]*)?|\.\d[\d_]*)(?:e[+-]?\d+|(?:ki?b?|mi?b?|gi?b?|ti?b?)(?![\p{L}\d_]))?/iuy;
const SIGN: Record<Dialect, RegExp> = {
  metricsql: /==|!=|=~|!~|>=|<=|[{}[\](),:@+\-*/%^=<>]/y,
  promql: /==|!=|=~|!~|>=|<=|<\/|>\/|[{}[\](),:@+\-*/%^=<>]/y,
};
const STRING = /"(?:[^"\\]|\\[\s\S])*"|'(?:[^'\\]|\\[\s\S])*'|`[^`]*`/y;

/** What the pattern matches at this place. */
function match(pattern: RegExp, text: string, at: number): string | undefined {
  pattern.lastIndex = at;
  return pattern.exec(text)?.[0];
}

export function skipBlank(text: string, at: number): number {
  return at + (match(BLANK, text, at)?.length ?? 0);
}

/** The token at `from` or after it. Reads nothing further, because `[` switches the parser to another grammar. */
export function nextToken(text: string, from: number, dialect: Dialect, inWindow = false): Token {
  const at = skipBlank(text, from);
  if (at >= text.length) return { type: "end", text: "", at, end: at };
  const token = (type: Token["type"], raw: string, value = raw): Token => ({
    type,
    text: value,
    at,
    end: at + raw.length,
  });
  const first = text.charAt(at);
  if (first === '"' || first === "'" || first === "`") {
    const raw = match(STRING, text, at);
    if (raw === undefined) throw parseError(text, at, `this string has no closing ${first}`);
    return token("string", raw, unquote(text, at, raw, dialect));
  }
  const number = numeric(text, at, dialect);
  if (number) return token(number.type, number.raw);
  const ident = match(inWindow ? WINDOW_IDENT : IDENT[dialect], text, at);
  if (ident) return token("ident", ident, unescapeIdent(ident));
  const sign = match(SIGN[dialect], text, at);
  if (sign) return token("sign", sign);
  throw parseError(text, at, `unexpected character ${JSON.stringify(String.fromCodePoint(text.codePointAt(at) ?? 0))}`);
}

/** A number or a duration, whichever takes more; `5m` is five minutes and `5M` five million. */
function numeric(text: string, at: number, dialect: Dialect): { type: "number" | "duration"; raw: string } | undefined {
  const number = match(NUMBER, text, at);
  if (number === undefined || number === ".") return undefined;
  const whole = scanDuration(text, at);
  // `1h-5m` is one duration in MetricsQL and a difference of two in PromQL.
  const minus = dialect === "promql" ? text.slice(at, at + whole).indexOf("-") : -1;
  const duration = minus < 0 ? whole : minus;
  const minutes = /^[\d._]+m$/.test(number);
  if (duration > 0 && (duration > number.length || minutes)) {
    return { type: "duration", raw: text.slice(at, at + duration) };
  }
  const raw = number;
  const after = text.charAt(at + raw.length);
  if (/[\p{L}_]/u.test(after)) throw parseError(text, at, `cannot read the number ${JSON.stringify(raw + after)}`);
  return { type: "number", raw };
}

/** `\\-` and `\\x2d` in a name stand for the character. */
function unescapeIdent(ident: string): string {
  if (!ident.includes("\\")) return ident;
  return ident.replace(/\\(?:x([0-9a-f]{2})|u([0-9a-f]{4})|(.))/giu, (_all, x?: string, u?: string, plain?: string) =>
    plain === undefined ? String.fromCharCode(Number.parseInt(x ?? u ?? "0", 16)) : plain,
  );
}

const ESCAPES: Record<string, string> = {
  a: "\x07",
  b: "\b",
  f: "\f",
  n: "\n",
  r: "\r",
  t: "\t",
  v: "\v",
  "\\": "\\",
  "'": "'",
  '"': '"',
};
const ESCAPE = /\\(?:x([0-9a-fA-F]{2})|u([0-9a-fA-F]{4})|U([0-9a-fA-F]{8})|([0-7]{3})|([\s\S]))/g;

/** Go's string literals. In the strict dialect `\xff` is a byte, so that a name which is no UTF-8 can be refused. */
function unquote(text: string, at: number, raw: string, dialect: Dialect): string {
  const body = raw.slice(1, -1);
  if (raw.startsWith("`") || !body.includes("\\")) return body;
  const bytes: Buffer[] = [];
  let last = 0;
  for (const found of body.matchAll(ESCAPE)) {
    bytes.push(Buffer.from(body.slice(last, found.index)));
    const value = unescapeOne(found, dialect);
    if (value === undefined) throw parseError(text, at + 1 + found.index, `unknown escape ${found[0]} in the string`);
    bytes.push(value);
    last = found.index + found[0].length;
  }
  bytes.push(Buffer.from(body.slice(last)));
  return Buffer.concat(bytes).toString("utf8");
}

function unescapeOne([, hex, short, long, octal, plain]: RegExpExecArray, dialect: Dialect): Buffer | undefined {
  if (plain !== undefined) return Object.hasOwn(ESCAPES, plain) ? Buffer.from(ESCAPES[plain] ?? "") : undefined;
  const code = octal === undefined ? Number.parseInt(hex ?? short ?? long ?? "0", 16) : Number.parseInt(octal, 8);
  if (code > 0x10ffff) return undefined;
  const isByte = hex !== undefined || octal !== undefined;
  return isByte && dialect === "promql" ? Buffer.from([code & 0xff]) : Buffer.from(String.fromCodePoint(code));
}
