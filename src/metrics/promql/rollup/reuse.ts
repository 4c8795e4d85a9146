import { ACCUMULATORS } from "../aggregate/accumulators.ts";
import type { Expr, RollupExpr } from "../ast.ts";
import { durationMs } from "../durations.ts";
import { column, type Frame, type Row, reframe } from "../frame.ts";
import { isRollup } from "../functions/names.ts";
import { labelsKey } from "../labels.ts";
import { print } from "../printer.ts";
import type { CachedRows } from "./cache.ts";
import { SILENCE_MS } from "./evaluate.ts";

/** Takes from the cache the steps it has and computes the rest. */
export function throughCache(frame: Frame, expr: Expr, compute: (frame: Frame) => Row[]): Row[] {
  const { cache } = frame.query;
  if (!cache || frame.points < 2 || !isCacheable(frame, expr)) return compute(frame);
  const phase = ((frame.start_ms % frame.step_ms) + frame.step_ms) % frame.step_ms;
  const key = `${frame.step_ms} ${phase} ${print(expr)}`;
  const known = cache.get(key);
  const covers = known && known.start_ms <= frame.start_ms && known.end_ms >= frame.start_ms;
  const rows = covers ? extend(frame, known, compute) : compute(frame);
  const settled = settledSteps(frame);
  if (settled > 0 && !(covers && known.end_ms >= frame.end_ms)) cache.put(key, take(frame, rows, settled));
  return rows;
}

/** A rollup over a plain selector, or a sum of such: these are repeated often, and depend on samples alone. */
function isCacheable(frame: Frame, expr: Expr): boolean {
  if (expr.kind === "aggregate") {
    const [arg] = expr.args;
    return Object.hasOwn(ACCUMULATORS, expr.name) && expr.args.length === 1 && !!arg && isCacheable(frame, arg);
  }
  if (expr.kind === "selector") return true;
  if (expr.kind === "rollup") {
    const isPlain = expr.arg.kind === "selector" && !expr.moment && !expr.step && !expr.inheritStep;
    return isPlain && !looksAhead(frame, expr);
  }
  if (expr.kind !== "call" || !isRollup(expr.name) || expr.name.toLowerCase() === "rollup_candlestick") return false;
  return expr.args.every((arg) => arg.kind === "number" || arg.kind === "string" || isCacheable(frame, arg));
}

/** A step that reads samples of later times is settled later than the others; it is not worth finding out when. */
function looksAhead(frame: Frame, { offset }: RollupExpr): boolean {
  return offset !== undefined && (durationMs(offset.text, frame.step_ms) ?? 0) < 0;
}

/**
 * How many steps from the start are settled. A series that begins is judged by its next sample, so the steps just
 * before the moment are left out too.
 */
function settledSteps(frame: Frame): number {
  const until = frame.query.immutable_before_ms - SILENCE_MS;
  return Math.min(frame.points, Math.floor((until - frame.start_ms) / frame.step_ms) + 1);
}

function take(frame: Frame, rows: Row[], steps: number): CachedRows {
  return {
    start_ms: frame.start_ms,
    end_ms: frame.start_ms + (steps - 1) * frame.step_ms,
    rows: rows.map(({ labels, values }) => ({ labels, values: values.slice(0, steps) })),
  };
}

function extend(frame: Frame, known: CachedRows, compute: (frame: Frame) => Row[]): Row[] {
  const skip = Math.round((frame.start_ms - known.start_ms) / frame.step_ms);
  const have = Math.min(frame.points, Math.round((known.end_ms - frame.start_ms) / frame.step_ms) + 1);
  const rows = new Map<string, Row>();
  const place = (labels: Row["labels"], values: Float64Array, at: number): void => {
    const key = labelsKey(labels);
    const row = rows.get(key) ?? { labels, values: column(frame, Number.NaN) };
    rows.set(key, row);
    row.values.set(values, at);
  };
  for (const { labels, values } of known.rows) place(labels, values.subarray(skip, skip + have), 0);
  if (have < frame.points) {
    const start_ms = frame.start_ms + have * frame.step_ms;
    const rest = reframe(frame, { start_ms, end_ms: frame.end_ms, step_ms: frame.step_ms });
    for (const { labels, values } of compute(rest)) place(labels, values, have);
  }
  return [...rows.values()].filter((row) => !row.values.every(Number.isNaN));
}
