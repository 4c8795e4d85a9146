import { type Duration, type Expr, rebuild } from "../ast.ts";
import { durationMs } from "../durations.ts";
import { executionError } from "../errors.ts";
import type { Grid } from "../frame.ts";

/** Durations that are computed: `[2m * 5]`, `[step() + 1s]`, `offset min_of(range(), 1h)`. */

const OPERATORS: Record<string, (a: number, b: number) => number> = {
  "+": (a, b) => a + b,
  "-": (a, b) => a - b,
  "*": (a, b) => a * b,
  "/": (a, b) => a / refuseZero(b, "/"),
  "%": (a, b) => a % refuseZero(b, "%"),
  "^": (a, b) => a ** b,
};

/** Seconds of the query's own grid; an instant query has neither steps nor a length. */
const OF_QUERY: Record<string, (grid: Grid) => number> = {
  range: ({ start_ms, end_ms }) => (end_ms - start_ms) / 1000,
  step: ({ start_ms, end_ms, step_ms }) => (start_ms === end_ms ? 0 : step_ms / 1000),
};

/** Of two durations; older versions of Prometheus call them min and max. */
const CHOICES: Record<string, (a: number, b: number) => number> = {
  max: Math.max,
  max_of: Math.max,
  min: Math.min,
  min_of: Math.min,
};

/** Go counts durations in nanoseconds of 64 bits. */
const MOST_MS = 2 ** 63 / 1e6;

function refuseZero(value: number, op: string): number {
  if (value === 0) throw executionError(`a duration is computed with ${op} 0`);
  return value;
}

/** Whether a duration can be computed from such an expression, whatever it holds. */
export function lengthPart(expr: Expr): boolean {
  switch (expr.kind) {
    case "number":
    case "duration":
    case "negate":
    case "parens":
      return true;
    case "binary":
      return Object.hasOwn(OPERATORS, expr.op) && !expr.group;
    case "call":
    case "aggregate": {
      const name = expr.name.toLowerCase();
      if (Object.hasOwn(OF_QUERY, name)) return expr.args.length === 0;
      const plain = expr.kind === "call" || !expr.modifier;
      return Object.hasOwn(CHOICES, name) && expr.args.length === 2 && plain;
    }
    case "string":
    case "selector":
    case "rollup":
    case "with":
      return false;
  }
}

/** What a computed duration comes to. */
export function lengthMs(expr: Expr, grid: Grid): number {
  const length_ms = Math.round(seconds(expr, grid) * 1000);
  if (!(Math.abs(length_ms) < MOST_MS)) throw executionError("a computed duration is out of range");
  return length_ms;
}

function seconds(expr: Expr, grid: Grid): number {
  const part = (of: Expr | undefined): number => (of ? seconds(of, grid) : Number.NaN);
  switch (expr.kind) {
    case "number":
      return expr.value;
    case "duration":
      return (durationMs(expr.duration.text, 0) ?? Number.NaN) / 1000;
    case "negate":
      return -part(expr.arg);
    case "parens":
      return part(expr.args[0]);
    case "binary":
      return OPERATORS[expr.op]?.(part(expr.left), part(expr.right)) ?? Number.NaN;
    case "call":
    case "aggregate": {
      const name = expr.name.toLowerCase();
      return OF_QUERY[name]?.(grid) ?? CHOICES[name]?.(part(expr.args[0]), part(expr.args[1])) ?? Number.NaN;
    }
    default:
      return Number.NaN;
  }
}

/** The same query with every computed duration in milliseconds, so that the evaluator knows only written ones. */
export function settleLengths(expr: Expr, grid: Grid): Expr {
  const out = rebuild(expr, (child) => settleLengths(child, grid));
  if (out.kind !== "rollup") return out;
  const { window, step, offset } = out;
  return {
    ...out,
    ...(window ? { window: positive(settle(window, grid)) } : {}),
    ...(step ? { step: positive(settle(step, grid)) } : {}),
    ...(offset ? { offset: settle(offset, grid) } : {}),
  };
}

function settle(duration: Duration, grid: Grid): Duration {
  return duration.computed ? { text: `${lengthMs(duration.computed, grid)}ms` } : duration;
}

function positive(duration: Duration): Duration {
  if ((durationMs(duration.text, 0) ?? 0) > 0) return duration;
  throw executionError("a computed window must be longer than 0");
}
