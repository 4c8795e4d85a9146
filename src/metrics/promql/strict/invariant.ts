import { children, type Expr } from "../ast.ts";
import { type Frame, reframe } from "../frame.ts";
import { newRow, type Row, type Value } from "./values.ts";

/** What `@` fixes is the same at every step, so it is computed at one and copied to the others. */

/** Functions whose result depends on the step even when their arguments do not. */
const VARIES = new Set(
  "day_of_month day_of_week day_of_year days_in_month hour minute month predict_linear time timestamp year".split(" "),
);

export function isInvariant(expr: Expr): boolean {
  switch (expr.kind) {
    case "number":
    case "duration":
    case "string":
      return true;
    case "selector":
      return false;
    case "rollup":
      return expr.moment !== undefined;
    case "call":
      return !VARIES.has(expr.name.toLowerCase()) && expr.args.every(isInvariant);
    case "aggregate":
    case "binary":
    case "negate":
    case "parens":
    case "with":
      return children(expr).every(isInvariant);
  }
}

/** Whether computing once is worth the copying: there must be something to read. */
export function readsFixed(expr: Expr): boolean {
  return expr.kind === "rollup" ? expr.moment !== undefined : children(expr).some(readsFixed);
}

export function computeOnce(frame: Frame, compute: (once: Frame) => Value): Value {
  const { start_ms, step_ms } = frame;
  const value = compute(reframe(frame, { start_ms, end_ms: start_ms, step_ms }));
  if (value.type === "string") return value;
  if (value.type === "scalar")
    return { type: "scalar", values: new Float64Array(frame.points).fill(value.values[0] ?? Number.NaN) };
  return { type: "vector", rows: value.rows.map((row) => spread(frame, row)) };
}

function spread(frame: Frame, row: Row): Row {
  const out = newRow(frame, row.labels, row.dropName);
  out.present.fill(row.present[0] ?? 0);
  // Words are copied, not numbers: a native histogram is a NaN with its own bits.
  const words = new BigUint64Array(out.values.buffer, out.values.byteOffset, out.values.length);
  words.fill(new BigUint64Array(row.values.buffer, row.values.byteOffset, 1)[0] ?? 0n);
  return out;
}
