import type { CallExpr, Expr, RollupExpr, SelectorExpr } from "../ast.ts";
import { durationMs } from "../durations.ts";
import { executionError } from "../errors.ts";
import { checkAlive, column, type Frame } from "../frame.ts";
import { aggregate } from "./aggregates.ts";
import { combine } from "./binary.ts";
import { smoothedSelector } from "./bounded-ranges.ts";
import { FUNCTIONS, timestampOfStep } from "./functions.ts";
import { scaled } from "./histogram-sum.ts";
import { HISTOGRAM_CALLS } from "./histograms.ts";
import { addInfo } from "./info.ts";
import { computeOnce, isInvariant, readsFixed } from "./invariant.ts";
import { evaluateRange, takesRange } from "./range-calls.ts";
import { evaluateSelector } from "./selectors.ts";
import { ABSENT, FLOAT, histogramOf, mergeSame, putNative, type Row, type Value } from "./values.ts";

/** PromQL as Prometheus 3 evaluates it. */
export function evaluateStrict(frame: Frame, expr: Expr): Value {
  checkAlive(frame.query);
  if (frame.points > 1 && isInvariant(expr) && readsFixed(expr)) {
    return computeOnce(frame, (once) => evaluateStrict(once, expr));
  }
  switch (expr.kind) {
    case "number":
      return { type: "scalar", values: column(frame, expr.value) };
    case "duration":
      return { type: "scalar", values: column(frame, (durationMs(expr.duration.text, 0) ?? 0) / 1000) };
    case "string":
      return { type: "string", text: expr.value };
    case "selector":
      return vector(evaluateSelector(frame, expr, {}, false));
    case "rollup":
      if (expr.boundary === "smoothed") return vector(smoothedSelector(frame, selectorOf(expr), expr));
      return vector(evaluateSelector(frame, selectorOf(expr), expr, false));
    case "call":
      return evaluateCall(frame, expr);
    case "aggregate":
      return vector(aggregate(frame, expr, evaluateStrict));
    case "binary":
      return combine(frame, expr, evaluateStrict(frame, expr.left), evaluateStrict(frame, expr.right));
    case "negate":
      return negate(frame, evaluateStrict(frame, expr.arg));
    case "parens":
    case "with":
      throw new Error(`a ${expr.kind} node is not part of PromQL after parsing`);
  }
}

const vector = (rows: Row[]): Value => ({ type: "vector", rows });

/** What is left after ranges and subqueries were taken care of: offset and @ on a selector. */
function selectorOf(expr: RollupExpr): SelectorExpr {
  if (expr.window || expr.step || expr.inheritStep) throw executionError("a range vector cannot stand here");
  if (expr.arg.kind !== "selector") throw executionError("offset and @ follow a selector or a subquery");
  return expr.arg;
}

/** Series that differed only in their names become one, or an error. */
function negate(frame: Frame, value: Value): Value {
  if (value.type === "scalar") return { type: "scalar", values: value.values.map((v) => -v) };
  if (value.type === "string") throw executionError("a string cannot be negated");
  for (const row of value.rows) {
    row.dropName = true;
    for (let i = 0; i < row.present.length; i++) {
      const histogram = histogramOf(frame, row, i);
      if (histogram) putNative(frame, row, i, scaled(histogram, -1));
      else row.values[i] = -(row.values[i] as number);
    }
  }
  return vector(mergeSame(value.rows));
}

function evaluateCall(frame: Frame, expr: CallExpr): Value {
  const name = expr.name.toLowerCase();
  if (takesRange(name)) return vector(evaluateRange(frame, expr, evaluateStrict));
  if (name === "timestamp") return vector(timestamps(frame, expr));
  if (name === "info") return vector(addInfo(frame, expr, evaluateStrict));
  const histogram = Object.hasOwn(HISTOGRAM_CALLS, name) ? HISTOGRAM_CALLS[name] : undefined;
  if (histogram) return vector(histogram(frame, expr, evaluateStrict));
  const implementation = Object.hasOwn(FUNCTIONS, name) ? FUNCTIONS[name] : undefined;
  if (!implementation) throw executionError(`there is no function ${expr.name}`);
  return implementation({ frame, expr, args: expr.args.map((arg) => evaluateStrict(frame, arg)) });
}

/** The time of a native histogram is a number like any other. */
function becomeNumbers(row: Row): void {
  row.dropName = true;
  row.present = row.present.map((kind) => (kind === ABSENT ? ABSENT : FLOAT));
}

/** The time of the sample behind a selector, of the step behind anything else. */
function timestamps(frame: Frame, expr: CallExpr): Row[] {
  const [arg] = expr.args;
  if (arg?.kind === "selector" || arg?.kind === "rollup") {
    const selector = arg.kind === "selector" ? arg : selectorOf(arg);
    const rows = evaluateSelector(frame, selector, arg.kind === "rollup" ? arg : {}, true);
    rows.forEach(becomeNumbers);
    return rows;
  }
  const value = arg && evaluateStrict(frame, arg);
  if (value?.type !== "vector") throw executionError("timestamp() needs an instant vector");
  return timestampOfStep(frame, value.rows);
}
