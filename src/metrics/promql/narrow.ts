import type { Matcher } from "../source.ts";
import type { Dialect, Expr } from "./ast.ts";
import { selectorsOf } from "./engine.ts";
import { parse } from "./parse.ts";
import { print } from "./printer.ts";

/** The query with this matcher added to every selector. What cannot be parsed is refused. */
export function narrowed(text: string, dialect: Dialect, matcher: Matcher): string {
  const expr: Expr = parse(text, dialect);
  for (const { filters } of selectorsOf(expr)) for (const group of filters) group.push({ ...matcher });
  return print(expr, dialect);
}
