import { evaluateAggregate } from "./aggregate/evaluate.ts";
import type { CallExpr, Expr } from "./ast.ts";
import { evaluateBinary } from "./binary/evaluate.ts";
import { durationMs } from "./durations.ts";
import { executionError } from "./errors.ts";
import { checkAlive, column, type Frame, numberRow, type Row } from "./frame.ts";
import { evaluateTransform } from "./functions/apply.ts";
import { isRollup } from "./functions/names.ts";
import { TRANSFORM_FUNCTIONS } from "./functions/transforms.ts";
import { NO_LABELS } from "./labels.ts";
import { asCall, evaluateRollup } from "./rollup/evaluate.ts";
import { throughCache } from "./rollup/reuse.ts";

/** Evaluates MetricsQL: every expression is a list of rows over the steps of the frame. */
export function evaluate(frame: Frame, expr: Expr): Row[] {
  checkAlive(frame.query);
  switch (expr.kind) {
    case "number":
      return [numberRow(frame, expr.value)];
    case "duration":
      return [numberRow(frame, (durationMs(expr.duration.text, frame.step_ms) ?? 0) / 1000)];
    case "string":
      return [{ labels: NO_LABELS, values: column(frame, Number.NaN), text: expr.value }];
    case "selector":
    case "rollup":
      return throughCache(frame, expr, (part) => evaluateRollup(part, asCall(expr)));
    case "call":
      return throughCache(frame, expr, (part) => evaluateCall(part, expr));
    case "aggregate":
      return throughCache(frame, expr, (part) => evaluateAggregate(part, expr));
    case "binary":
      return evaluateBinary(frame, expr);
    case "negate":
    case "parens":
    case "with":
      throw new Error(`a ${expr.kind} node is not part of MetricsQL after parsing`);
  }
}

/** Rollups read samples and get their argument unevaluated; transforms get rows. */
function evaluateCall(frame: Frame, expr: CallExpr): Row[] {
  const name = expr.name.toLowerCase();
  if (isRollup(name)) return evaluateRollup(frame, expr);
  const definition = Object.hasOwn(TRANSFORM_FUNCTIONS, name) ? TRANSFORM_FUNCTIONS[name] : undefined;
  if (!definition) throw executionError(`there is no function ${expr.name}`);
  return evaluateTransform(frame, expr, definition);
}
