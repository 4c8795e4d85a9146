import type { Matcher } from "../source.ts";

/**
 * The expression as a tree. Both dialects share it: brackets, offset and @ around anything are one `rollup` node,
 * and the strict dialect refuses in `check.ts` what it does not have. `at` is the offset in the query text.
 */
export type Dialect = "metricsql" | "promql";

export interface Duration {
  /** As written. */
  text: string;
  /** The name of a WITH template that will give the duration. */
  template?: true;
  /** What the strict dialect computes it from, as in `[2m * step()]`; `strict/lengths.ts` does. */
  computed?: Expr;
}

export interface NumberExpr {
  kind: "number";
  at: number;
  value: number;
  /** As written, so that `12Kib` prints as `12Kib`; absent when computed. */
  text?: string;
}

export interface StringExpr {
  kind: "string";
  at: number;
  value: string;
}

/** A duration used as a number of seconds. */
export interface DurationExpr {
  kind: "duration";
  at: number;
  duration: Duration;
}

/** A piece of a string: text, or the template that will give it. */
export type StringPart = string | { template: string };

/** One filter as written; without `op` it names a WITH template. */
export interface RawFilter {
  label: string;
  op?: Matcher["op"];
  /** Strings and template names, to be joined. */
  value: StringPart[];
  at: number;
}

export interface SelectorExpr {
  kind: "selector";
  at: number;
  /** Any of these conjunctions; a `__name__` equality comes first. */
  filters: Matcher[][];
  /** Before WITH templates are put in; undefined afterwards. */
  raw?: RawFilter[][];
}

export interface RollupExpr {
  kind: "rollup";
  at: number;
  arg: Expr;
  window?: Duration;
  step?: Duration;
  /** `[5m:]`: a subquery at the default step. */
  inheritStep?: true;
  offset?: Duration;
  /** The moment of `@`. */
  moment?: Expr;
  /** What a range begins and ends with; only in the strict dialect. */
  boundary?: "anchored" | "smoothed";
}

export interface CallExpr {
  kind: "call";
  at: number;
  /** As written; empty for `(a, b)`, which is a union. */
  name: string;
  args: Expr[];
  keepMetricNames?: true;
}

export interface Modifier {
  op: "by" | "without" | "on" | "ignoring" | "group_left" | "group_right";
  labels: string[];
}

export interface AggregateExpr {
  kind: "aggregate";
  at: number;
  name: string;
  args: Expr[];
  modifier?: Modifier;
  limit?: number;
}

export interface BinaryExpr {
  kind: "binary";
  at: number;
  op: string;
  bool?: true;
  left: Expr;
  right: Expr;
  group?: Modifier;
  join?: Modifier;
  /** Put in front of the labels that group_left and group_right copy. */
  prefix?: string;
  prefixParts?: StringPart[];
  /** Values for series that only the other side has. */
  fillLeft?: number;
  fillRight?: number;
  keepMetricNames?: true;
}

/** Only in the strict dialect; MetricsQL reads `-x` as `0 - x`. */
export interface NegateExpr {
  kind: "negate";
  at: number;
  arg: Expr;
}

export interface ParensExpr {
  kind: "parens";
  at: number;
  args: Expr[];
}

export interface Template {
  name: string;
  /** Empty for a plain name, which is called without parentheses. */
  params: string[];
  body: Expr;
  at: number;
}

export interface WithExpr {
  kind: "with";
  at: number;
  templates: Template[];
  body: Expr;
}

export type Expr =
  | NumberExpr
  | StringExpr
  | DurationExpr
  | SelectorExpr
  | RollupExpr
  | CallExpr
  | AggregateExpr
  | BinaryExpr
  | NegateExpr
  | ParensExpr
  | WithExpr;

/** What an expression is made of, in reading order. */
export function children(expr: Expr): Expr[] {
  switch (expr.kind) {
    case "rollup":
      return expr.moment ? [expr.arg, expr.moment] : [expr.arg];
    case "call":
    case "aggregate":
    case "parens":
      return expr.args;
    case "binary":
      return [expr.left, expr.right];
    case "negate":
      return [expr.arg];
    case "with":
      return [...expr.templates.map((t) => t.body), expr.body];
    case "number":
    case "string":
    case "duration":
    case "selector":
      return [];
  }
}

/** The same node over other children, given in the order of `children`. */
export function rebuild(expr: Expr, change: (child: Expr) => Expr): Expr {
  switch (expr.kind) {
    case "rollup": {
      const arg = change(expr.arg);
      return expr.moment ? { ...expr, arg, moment: change(expr.moment) } : { ...expr, arg };
    }
    case "call":
    case "aggregate":
    case "parens":
      return { ...expr, args: expr.args.map(change) };
    case "binary":
      return { ...expr, left: change(expr.left), right: change(expr.right) };
    case "negate":
      return { ...expr, arg: change(expr.arg) };
    case "with":
    case "number":
    case "string":
    case "duration":
    case "selector":
      return expr;
  }
}

export const NAME = "__name__";

/** The metric name of a selector, if all its alternatives have the same one. */
export function metricName(selector: SelectorExpr): string | undefined {
  let name: string | undefined;
  for (const group of selector.filters) {
    const first = group[0];
    if (first?.name !== NAME || first.op !== "=") return undefined;
    if (name !== undefined && name !== first.value) return undefined;
    name = first.value;
  }
  return name;
}
