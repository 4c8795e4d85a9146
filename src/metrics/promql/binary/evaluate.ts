import type { BinaryExpr, Expr } from "../ast.ts";
import { executionError } from "../errors.ts";
import { column, copyRow, type Frame, isEmpty, isScalar, type Row } from "../frame.ts";
import { OPERATORS } from "../grammar.ts";
import { dropName, labelsKey, showLabels } from "../labels.ts";
import { ARITHMETIC, COMPARE } from "../scalar-ops.ts";
import { evaluateChoice } from "./choices.ts";
import { byKey, dropsName, joinedLabels, resultLabels } from "./match.ts";

/** MetricsQL's operators on series. NaN is "no value" throughout. */

const REVERSED: Record<string, string> = { ">": "<", "<": ">", ">=": "<=", "<=": ">=", "==": "==", "!=": "!=" };

/** Both sides are evaluated whole: most operators need every series of one side to find its partner. */
export function evaluateBinary(frame: Frame, original: BinaryExpr): Row[] {
  const expr = numberOnRight(original);
  const kind = OPERATORS[expr.op]?.kind;
  const left = frame.evaluate(frame, expr.left);
  const right = frame.evaluate(frame, expr.right);
  if (kind === "set" || kind === "choice") return evaluateChoice(expr, left, right);
  if (expr.op === "==" || expr.op === "!=") {
    if (isList(expr.right)) return inList(left, right, expr.op === "==");
    if (isList(expr.left)) return inList(right, left, expr.op === "==");
  }
  return combine(frame, expr, left, right);
}

/** `10 < x` keeps the values of x, so it is read as `x > 10`. */
function numberOnRight(expr: BinaryExpr): BinaryExpr {
  const reversed = REVERSED[expr.op];
  if (!reversed || isNumber(expr.right) || !(isNumber(expr.left) || isTime(expr.left))) return expr;
  return { ...expr, op: reversed, left: expr.right, right: expr.left };
}

const isNumber = (expr: Expr): boolean => expr.kind === "number";
const isTime = (expr: Expr): boolean => expr.kind === "call" && expr.name.toLowerCase() === "time";
const isList = (expr: Expr): boolean =>
  expr.kind === "call" && (expr.name === "" || expr.name.toLowerCase() === "union");

/** `x == (1, 2, 3)`: values that are in the list, or are not. */
function inList(rows: Row[], list: Row[], wanted: boolean): Row[] {
  if (rows.length === 0 || (wanted && list.length === 0)) return [];
  for (const { values } of rows) {
    for (let i = 0; i < values.length; i++) {
      const found = list.some((item) => item.values[i] === values[i]);
      if (found !== wanted) values[i] = Number.NaN;
    }
  }
  return rows;
}

/** A side that is NaN because the query says so, not because it has no value there. */
function saysNaN(expr: Expr): boolean {
  if (expr.kind === "number") return Number.isNaN(expr.value);
  if (expr.kind !== "call") return false;
  const name = expr.name.toLowerCase();
  return (name.startsWith("label_") || name === "") && expr.args[0] !== undefined && saysNaN(expr.args[0]);
}

/** Two columns that belong together; one of them is absent when it is filled. */
interface Pair {
  left: Float64Array | undefined;
  right: Float64Array | undefined;
  labels: Row["labels"];
}

function combine(frame: Frame, expr: BinaryExpr, allLeft: Row[], allRight: Row[]): Row[] {
  const compare = COMPARE[expr.op];
  // A filter that found nothing must stay, or `(a > b) default c` would have nothing to default.
  const left = compare ? allLeft : allLeft.filter((row) => !isEmpty(row));
  const right = compare ? allRight : allRight.filter((row) => !isEmpty(row));
  const fills = expr.fillLeft !== undefined || expr.fillRight !== undefined;
  if (!fills && (left.length === 0 || right.length === 0)) return [];
  const pairs = fills || expr.group || expr.join ? undefined : scalarPairs(expr, left, right, compare !== undefined);
  const operate = pointOperation(expr, compare);
  return (pairs ?? matchPairs(expr, left, right, compare !== undefined)).map((pair) => {
    const values = column(frame);
    const a = pair.left;
    const b = pair.right;
    for (let i = 0; i < values.length; i++) values[i] = operate(a?.[i] ?? Number.NaN, b?.[i] ?? Number.NaN);
    return { labels: pair.labels, values };
  });
}

/** What happens at one step: fills first, then the operator. */
function pointOperation(
  expr: BinaryExpr,
  compare: ((a: number, b: number) => boolean) | undefined,
): (a: number, b: number) => number {
  const core = compare ? comparison(expr, compare) : (ARITHMETIC[expr.op] as (a: number, b: number) => number);
  const { fillLeft, fillRight } = expr;
  if (fillLeft === undefined && fillRight === undefined) return core;
  return (a, b) => {
    if (Number.isNaN(a) === Number.isNaN(b)) return core(a, b);
    return core(Number.isNaN(a) ? (fillLeft ?? a) : a, Number.isNaN(b) ? (fillRight ?? b) : b);
  };
}

function comparison(expr: BinaryExpr, compare: (a: number, b: number) => boolean): (a: number, b: number) => number {
  const literal = saysNaN(expr.left) || saysNaN(expr.right);
  return (a, b) => {
    if (Number.isNaN(a) || (!literal && Number.isNaN(b))) return Number.NaN;
    const holds = compare(a, b);
    if (expr.bool) return holds ? 1 : 0;
    return holds ? a : Number.NaN;
  };
}

/** A series without labels is a number, and goes with every series of the other side. */
function scalarPairs(expr: BinaryExpr, left: Row[], right: Row[], compares: boolean): Pair[] | undefined {
  const label = (row: Row): Row["labels"] => (dropsName(expr, compares) ? dropName(row.labels) : row.labels);
  if (isScalar(left)) return right.map((row) => ({ left: left[0]?.values, right: row.values, labels: label(row) }));
  if (isScalar(right)) return left.map((row) => ({ left: row.values, right: right[0]?.values, labels: label(row) }));
  return undefined;
}

/** Series of both sides with the same labels, as far as `on` and `ignoring` let them matter. */
function matchPairs(expr: BinaryExpr, left: Row[], right: Row[], compares: boolean): Pair[] {
  const lefts = byKey(left, expr);
  const rights = byKey(right, expr);
  const keys = [...lefts.keys()];
  if (expr.fillLeft !== undefined) keys.push(...[...rights.keys()].filter((key) => !lefts.has(key)));
  return keys.flatMap((key) => {
    const a = lefts.get(key) ?? [];
    const b = rights.get(key) ?? [];
    if (b.length === 0 && expr.fillRight === undefined) return [];
    if (expr.join?.op === "group_left") return join(expr, a, b, compares, "right");
    if (expr.join?.op === "group_right") return join(expr, b, a, compares, "left").map(swap);
    const one = single(expr, a, "left");
    const other = single(expr, b, "right");
    const labels = resultLabels((one ?? other)?.labels ?? [], expr, compares);
    return [{ left: one?.values, right: other?.values, labels }];
  });
}

const swap = ({ left, right, labels }: Pair): Pair => ({ left: right, right: left, labels });

/** One series of a group. Several are one when they follow each other in time. */
function single(expr: BinaryExpr, rows: Row[], side: string): Row | undefined {
  const [first, ...rest] = rows;
  if (!first || rest.length === 0) return first;
  const merged = copyRow(first);
  for (const row of rest) if (!merge(merged, row)) throw duplicate(expr, side, first, row);
  return merged;
}

function duplicate(expr: BinaryExpr, side: string, a: Row, b: Row): Error {
  const both = `${showLabels(a.labels)} and ${showLabels(b.labels)}`;
  return executionError(`duplicate time series on the ${side} side of ${expr.op}: ${both}`);
}

/** Two steps may overlap, since a series that ended is still seen for a moment. */
function merge(into: Row, from: Row): boolean {
  let both = 0;
  for (let i = 0; i < into.values.length; i++) {
    if (!Number.isNaN(into.values[i] as number) && !Number.isNaN(from.values[i] as number)) both++;
  }
  if (both > 2 || into.values.length <= 2) return false;
  for (let i = 0; i < into.values.length; i++) {
    if (!Number.isNaN(from.values[i] as number)) into.values[i] = from.values[i] as number;
  }
  return true;
}

/** Many series of one side with one of the other; as `left` of each pair comes the side with many. */
function join(expr: BinaryExpr, many: Row[], one: Row[], compares: boolean, side: string): Pair[] {
  if (one.length === 0)
    return many.map((row) => ({
      left: row.values,
      right: undefined,
      labels: joinedLabels(row.labels, [], expr, compares),
    }));
  return many.flatMap((row) => {
    const found = new Map<string, Pair & { row: Row }>();
    for (const other of one) {
      const labels = joinedLabels(row.labels, other.labels, expr, compares);
      const key = labelsKey(labels);
      const known = found.get(key);
      if (!known) {
        found.set(key, { left: row.values, right: other.values, labels, row: other });
        continue;
      }
      const merged = copyRow(known.row);
      if (!merge(merged, other)) throw duplicate(expr, side, known.row, other);
      found.set(key, { ...known, right: merged.values, row: merged });
    }
    return [...found.values()].map(({ left, right, labels }) => ({ left, right, labels }));
  });
}
