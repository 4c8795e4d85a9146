import { children, type Expr } from "../ast.ts";

/** Functions that need no buckets: for them resets are looked for while the samples are read. */
const COUNTS = new Set(["histogram_avg", "histogram_count", "histogram_sum"]);
const NEEDS_BUCKETS = new Set([
  "histogram_fraction",
  "histogram_quantile",
  "histogram_quantiles",
  "histogram_stddev",
  "histogram_stdvar",
]);

/** Collects the selectors whose native histograms are only counted, which Prometheus reads without their buckets. */
export function markCounted(expr: Expr, into: Set<Expr>, counted = false): void {
  if (expr.kind === "selector") {
    if (counted) into.add(expr);
    return;
  }
  for (const child of children(expr)) markCounted(child, into, staysCounted(expr, counted));
}

function staysCounted(expr: Expr, counted: boolean): boolean {
  if (expr.kind === "binary" && (expr.op === "</" || expr.op === ">/")) return false;
  if (expr.kind === "rollup" && (expr.step || expr.inheritStep)) return false;
  if (expr.kind !== "call") return counted;
  const name = expr.name.toLowerCase();
  return COUNTS.has(name) || (counted && !NEEDS_BUCKETS.has(name));
}
