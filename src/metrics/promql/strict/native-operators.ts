import { compact, equalHistograms, type FloatHistogram, withHint } from "../../histogram/histogram.ts";
import { trimHistogram } from "../../histogram/trim.ts";
import type { BinaryExpr } from "../ast.ts";
import type { Frame } from "../frame.ts";
import { combined, divided, MixedSchemas, scaled } from "./histogram-sum.ts";
import { inform, warn } from "./values.ts";

/** Operators between native histograms, and between one and a number. */

export type Sample = number | FloatHistogram;

/** What an operator gives: a value, nothing because a comparison did not hold, or no result at all. */
export type Outcome = { value: Sample } | "filtered" | undefined;

/** At least one of them is a histogram, or the operator trims histograms. */
export function operateNative(frame: Frame, expr: BinaryExpr, a: Sample, b: Sample): Outcome {
  if (typeof a === "object" && typeof b === "object") return ofTwo(frame, expr, a, b);
  if (typeof a === "object" && typeof b === "number") return withNumber(frame, expr, a, b);
  if (expr.op === "*" && typeof b === "object") return { value: compact(scaled(b, a as number)) };
  return incompatible(frame, expr, "float", typeof b === "object" ? "histogram" : "float");
}

function withNumber(frame: Frame, expr: BinaryExpr, histogram: FloatHistogram, number: number): Outcome {
  switch (expr.op) {
    case "*":
      return { value: compact(scaled(histogram, number)) };
    case "/":
      return { value: compact(divided(histogram, number)) };
    case "</":
      return { value: trimHistogram(histogram, number, true) };
    case ">/":
      return { value: trimHistogram(histogram, number, false) };
    default:
      return incompatible(frame, expr, "histogram", "float");
  }
}

function ofTwo(frame: Frame, expr: BinaryExpr, a: FloatHistogram, b: FloatHistogram): Outcome {
  const { op } = expr;
  if (op === "+" || op === "-") return sumOf(frame, expr, a, b, op === "+" ? 1 : -1);
  if (op !== "==" && op !== "!=") return incompatible(frame, expr, "histogram", "histogram");
  const holds = equalHistograms(a, b) === (op === "==");
  if (expr.bool) return { value: holds ? 1 : 0 };
  return holds ? { value: a } : "filtered";
}

function sumOf(frame: Frame, expr: BinaryExpr, a: FloatHistogram, b: FloatHistogram, sign: 1 | -1): Outcome {
  const { at } = expr.left;
  const what = sign > 0 ? "addition" : "subtraction";
  try {
    const { value, notes } = combined(a, b, sign);
    if (notes.collision) {
      warn(frame, `conflicting counter resets during histogram ${what}`, at);
      return undefined;
    }
    if (notes.reconciled) inform(frame, `mismatched custom buckets were reconciled during ${what}`, at);
    return { value: compact(sign > 0 ? value : withHint(value, "gauge")) };
  } catch (thrown) {
    if (!(thrown instanceof MixedSchemas)) throw thrown;
    warn(frame, `incompatible bucket layout encountered for binary operator ${expr.op}`, at);
    return undefined;
  }
}

type Kind = "float" | "histogram";

export function incompatible(frame: Frame, { op, left }: BinaryExpr, a: Kind, b: Kind): undefined {
  const what = `incompatible sample types encountered for binary operator ${JSON.stringify(op)}`;
  inform(frame, `${what}: ${a} ${op} ${b}`, left.at);
}
