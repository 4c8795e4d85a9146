import { type Expr, rebuild } from "./ast.ts";
import { foldNumbers } from "./scalar-ops.ts";

/** Parentheses around one thing go, around several they are a union. */
export function dropParens(expr: Expr): Expr {
  if (expr.kind !== "parens") return rebuild(expr, dropParens);
  const args = expr.args.map(dropParens);
  const [only] = args;
  return only && args.length === 1 ? only : { kind: "call", at: expr.at, name: "", args };
}

const ORDER: Record<string, (a: string, b: string) => boolean> = {
  "==": (a, b) => a === b,
  "!=": (a, b) => a !== b,
  ">": (a, b) => a > b,
  "<": (a, b) => a < b,
  ">=": (a, b) => a >= b,
  "<=": (a, b) => a <= b,
};

/** What is known before a sample is read: numbers with numbers, strings with strings. */
export function foldConstants(expr: Expr): Expr {
  const folded = rebuild(expr, foldConstants);
  if (folded.kind !== "binary") return folded;
  const { left, right, op, at, bool } = folded;
  if (left.kind === "number" && right.kind === "number") {
    return { kind: "number", at, value: foldNumbers(op, left.value, right.value, bool === true) };
  }
  if (left.kind !== "string" || right.kind !== "string") return folded;
  if (op === "+") return { kind: "string", at, value: left.value + right.value };
  const compare = ORDER[op];
  if (!compare) return folded;
  const holds = compare(left.value, right.value);
  return { kind: "number", at, value: holds ? 1 : bool ? 0 : Number.NaN };
}
