import type { Dialect } from "./ast.ts";
import { parseError } from "./errors.ts";
import { nextToken, type Token } from "./lexer.ts";

/** Where the parser stands. Passed around instead of a class, so that the grammar can live in several files. */
export interface Cursor {
  readonly text: string;
  readonly dialect: Dialect;
  readonly maxDepth: number;
  token: Token;
  depth: number;
  /** Binary operators so far. */
  operators: number;
  /** Between brackets `:` is a sign of its own and not part of names. */
  inWindow?: boolean;
}

/** Takes the token and reads the next one. */
export function advance(c: Cursor): Token {
  const taken = c.token;
  c.token = nextToken(c.text, taken.end, c.dialect, c.inWindow);
  return taken;
}

/** The token after the current one; nothing is taken. */
export function peek(c: Cursor): Token {
  return nextToken(c.text, c.token.end, c.dialect, c.inWindow);
}

/** What stands here and what should, with the place. */
export function unexpected(c: Cursor, wanted: string): Error {
  const found =
    c.token.type === "end" ? "the query ends" : `${JSON.stringify(c.text.slice(c.token.at, c.token.end))} stands`;
  return parseError(c.text, c.token.at, `${found} here, where ${wanted} was expected`);
}

export function isSign(c: Cursor, sign: string): boolean {
  return c.token.type === "sign" && c.token.text === sign;
}

export function expectSign(c: Cursor, sign: string): Token {
  if (!isSign(c, sign)) throw unexpected(c, JSON.stringify(sign));
  return advance(c);
}

/** Keywords are not case sensitive. */
export function isKeyword(c: Cursor, keyword: string): boolean {
  return c.token.type === "ident" && c.token.text.toLowerCase() === keyword;
}

export function isEnd(c: Cursor): boolean {
  return c.token.type === "end";
}
