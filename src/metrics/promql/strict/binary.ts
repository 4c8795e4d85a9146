import type { BinaryExpr } from "../ast.ts";
import { executionError } from "../errors.ts";
import { column, type Frame } from "../frame.ts";
import { OPERATORS } from "../grammar.ts";
import { dropLabels, keepLabels, labelsKey, labelValue, setLabel, showLabels } from "../labels.ts";
import { ARITHMETIC } from "../scalar-ops.ts";
import { type Outcome, operateNative, type Sample } from "./native-operators.ts";
import { matchSets } from "./sets.ts";
import { bySignature, matchLabels } from "./signatures.ts";
import { ABSENT, FLOAT, HISTOGRAM, histogramOf, newRow, putNative, type Row, type Value } from "./values.ts";

/** Operators of the strict dialect. Matching is per step: series that are not there at a step cannot collide there. */

const COMPARE: Record<string, (a: number, b: number) => boolean> = {
  "==": (a, b) => a === b,
  "!=": (a, b) => a !== b,
  ">": (a, b) => a > b,
  "<": (a, b) => a < b,
  ">=": (a, b) => a >= b,
  "<=": (a, b) => a <= b,
};

export function combine(frame: Frame, expr: BinaryExpr, left: Value, right: Value): Value {
  if (left.type === "scalar" && right.type === "scalar") return scalars(frame, expr, left.values, right.values);
  if (left.type === "vector" && right.type === "scalar") return withScalar(frame, expr, left.rows, right.values, false);
  if (left.type === "scalar" && right.type === "vector") return withScalar(frame, expr, right.rows, left.values, true);
  if (left.type !== "vector" || right.type !== "vector") throw executionError(`${expr.op} cannot be used with strings`);
  if (OPERATORS[expr.op]?.kind === "set")
    return { type: "vector", rows: matchSets(frame, expr, left.rows, right.rows) };
  return { type: "vector", rows: matchVectors(frame, expr, left.rows, right.rows) };
}

/** The number at a step, or undefined when a comparison lets nothing through. */
function operate(expr: BinaryExpr, a: number, b: number, result = a): number | undefined {
  const compare = COMPARE[expr.op];
  if (!compare) return ARITHMETIC[expr.op]?.(a, b);
  if (expr.bool) return compare(a, b) ? 1 : 0;
  return compare(a, b) ? result : undefined;
}

/** Between numbers a comparison is always `bool`; the checker saw to it. */
function scalars(frame: Frame, expr: BinaryExpr, a: Float64Array, b: Float64Array): Value {
  const values = column(frame);
  for (let i = 0; i < values.length; i++) values[i] = operate(expr, a[i] as number, b[i] as number) ?? Number.NaN;
  return { type: "scalar", values };
}

function dropsName(expr: BinaryExpr): boolean {
  return expr.bool === true || OPERATORS[expr.op]?.kind === "arithmetic";
}

/** The number goes with every series. */
function withScalar(frame: Frame, expr: BinaryExpr, rows: Row[], numbers: Float64Array, swapped: boolean): Value {
  const isTrim = OPERATORS[expr.op]?.kind === "trim";
  const out = rows.map((row) => {
    const result = newRow(frame, row.labels, row.dropName || dropsName(expr));
    for (let i = 0; i < frame.points; i++) {
      if (row.present[i] === ABSENT) continue;
      const number = numbers[i] as number;
      if (row.present[i] === HISTOGRAM || isTrim) {
        const pair: [Sample, Sample] = [sampleAt(frame, row, i), number];
        putOutcome(frame, result, i, operateNative(frame, expr, ...(swapped ? ([pair[1], pair[0]] as const) : pair)));
      } else putNumber(expr, result, i, row.values[i] as number, number, swapped);
    }
    return result;
  });
  return { type: "vector", rows: out };
}

function putNumber(expr: BinaryExpr, into: Row, i: number, value: number, number: number, swapped: boolean): void {
  const computed = swapped ? operate(expr, number, value, value) : operate(expr, value, number);
  if (computed === undefined) return;
  into.present[i] = FLOAT;
  into.values[i] = computed;
}

function putOutcome(frame: Frame, row: Row, i: number, outcome: Outcome): void {
  if (outcome === undefined || outcome === "filtered") return;
  const { value } = outcome;
  if (typeof value === "object") putNative(frame, row, i, value);
  else {
    row.present[i] = FLOAT;
    row.values[i] = value;
  }
}

const sampleAt = (frame: Frame, row: Row, i: number): Sample => histogramOf(frame, row, i) ?? (row.values[i] as number);

/** A pair that cannot be combined claims no place among the results. */
function putNativePair(
  frame: Frame,
  expr: BinaryExpr,
  i: number,
  [ofMany, ofOne]: readonly [Sample, Sample],
  manyRight: boolean,
  claim: () => Row,
): void {
  const outcome = manyRight ? operateNative(frame, expr, ofOne, ofMany) : operateNative(frame, expr, ofMany, ofOne);
  if (outcome !== undefined) putOutcome(frame, claim(), i, outcome);
}

/** Results by their labels: two pairs that give the same labels at one step are an error. */
class Results {
  readonly #frame: Frame;
  readonly #rows = new Map<string, Row>();
  readonly #taken = new Map<string, Uint8Array>();

  constructor(frame: Frame) {
    this.#frame = frame;
  }

  /** Takes the place of a pair at a step, whether or not it gives a value. */
  claim(labels: Row["labels"], drop: boolean, i: number): Row {
    const key = `${drop ? "-" : "+"}${labelsKey(labels)}`;
    let row = this.#rows.get(key);
    let taken = this.#taken.get(key);
    if (!row || !taken) {
      row = newRow(this.#frame, labels, drop);
      taken = new Uint8Array(this.#frame.points);
      this.#rows.set(key, row);
      this.#taken.set(key, taken);
    }
    if (taken[i] === 1) throw executionError("multiple matches for labels: grouping labels must ensure unique matches");
    taken[i] = 1;
    return row;
  }

  get rows(): Row[] {
    return [...this.#rows.values()].filter((row) => row.present.some((p) => p !== ABSENT));
  }
}

function matchVectors(frame: Frame, expr: BinaryExpr, left: Row[], right: Row[]): Row[] {
  // The side with many series is looked through, the other one is looked up.
  const manyRight = expr.join?.op === "group_right";
  const many = bySignature(manyRight ? right : left, expr);
  const one = bySignature(manyRight ? left : right, expr);
  const results = new Results(frame);
  refuseDuplicates(frame, expr, manyRight ? right : left, one, manyRight);
  for (const [key, group] of many) {
    const others = one.get(key) ?? [];
    if (others.length === 0 && filled(expr, manyRight) === undefined) continue;
    for (let i = 0; i < frame.points; i++) matchStep(frame, expr, results, group, others, i, manyRight);
  }
  fillMissingMany(frame, expr, results, many, one, manyRight);
  return results.rows;
}

/** Two series of the looked-up side are an error even if nothing is looked up, as long as both sides have something. */
function refuseDuplicates(
  frame: Frame,
  expr: BinaryExpr,
  many: Row[],
  one: Map<string, Row[]>,
  manyRight: boolean,
): void {
  for (const others of one.values()) {
    if (others.length < 2) continue;
    for (let i = 0; i < frame.points; i++) {
      if (many.some((row) => row.present[i] !== ABSENT)) theOne(expr, others, i, manyRight);
    }
  }
}

/** What stands in for a missing series of the looked-up side. */
function filled(expr: BinaryExpr, manyRight: boolean): number | undefined {
  return manyRight ? expr.fillLeft : expr.fillRight;
}

function fillMissingMany(
  frame: Frame,
  expr: BinaryExpr,
  results: Results,
  many: Map<string, Row[]>,
  one: Map<string, Row[]>,
  manyRight: boolean,
): void {
  const fill = manyRight ? expr.fillRight : expr.fillLeft;
  if (fill === undefined) return;
  for (const [key, others] of one) {
    const group = many.get(key) ?? [];
    for (let i = 0; i < frame.points; i++) {
      const other = theOne(expr, others, i, manyRight);
      if (!other || group.some((row) => row.present[i] !== ABSENT)) continue;
      const labels = matchLabels(other, expr);
      const claim = (): Row => results.claim(labels, true, i);
      if (other.present[i] === HISTOGRAM) {
        putNativePair(frame, expr, i, [fill, sampleAt(frame, other, i)], manyRight, claim);
        continue;
      }
      put(expr, claim(), i, fill, other.values[i] as number, manyRight);
    }
  }
}

/** All series of a group at one step with the one they are matched with. */
function matchStep(
  frame: Frame,
  expr: BinaryExpr,
  results: Results,
  group: Row[],
  others: Row[],
  i: number,
  manyRight: boolean,
): void {
  const there = group.filter((row) => row.present[i] !== ABSENT);
  if (there.length === 0) return;
  const other = theOne(expr, others, i, manyRight);
  const fill = filled(expr, manyRight);
  if (!other && fill === undefined) return;
  // Told apart by what they match on, not by what comes out: names that are dropped later do not make them two.
  if (there.length > 1 && !expr.join) {
    throw executionError("multiple matches for labels: many-to-one matching must be explicit (group_left/group_right)");
  }
  const isTrim = OPERATORS[expr.op]?.kind === "trim";
  for (const row of there) {
    if (row.present[i] === HISTOGRAM || other?.present[i] === HISTOGRAM || isTrim) {
      const pair = [sampleAt(frame, row, i), other ? sampleAt(frame, other, i) : (fill as number)] as const;
      const claim = (): Row => results.claim(resultLabels(row, other, expr), row.dropName || dropsName(expr), i);
      putNativePair(frame, expr, i, pair, manyRight, claim);
      continue;
    }
    const target = results.claim(resultLabels(row, other, expr), row.dropName || dropsName(expr), i);
    put(expr, target, i, row.values[i] as number, other ? (other.values[i] as number) : (fill as number), manyRight);
  }
}

function put(expr: BinaryExpr, target: Row, i: number, ofMany: number, ofOne: number, manyRight: boolean): void {
  // A comparison keeps the left value, whichever side is looked through.
  const computed = manyRight ? operate(expr, ofOne, ofMany) : operate(expr, ofMany, ofOne);
  if (computed === undefined) return;
  target.present[i] = FLOAT;
  target.values[i] = computed;
}

/** The only series of the looked-up side that is there at the step. */
function theOne(expr: BinaryExpr, others: Row[], i: number, manyRight: boolean): Row | undefined {
  let found: Row | undefined;
  for (const row of others) {
    if (row.present[i] === ABSENT) continue;
    if (found) {
      const both = [showLabels(found.labels), showLabels(row.labels)].sort().join(", ");
      const side = manyRight ? "left" : "right";
      throw executionError(
        `found duplicate series for the match group ${showLabels(matchLabels(row, expr))} on the ${side} hand-side of the operation: [${both}];many-to-many matching not allowed: matching labels must be unique on one side`,
      );
    }
    found = row;
  }
  return found;
}

/** With group_left and group_right all labels of the side with many stay, and some of the other are copied. */
function resultLabels(row: Row, other: Row | undefined, expr: BinaryExpr): Row["labels"] {
  const { group, join } = expr;
  if (!join) {
    if (group?.op === "on") return keepLabels(row.labels, group.labels);
    return group ? dropLabels(row.labels, group.labels) : row.labels;
  }
  let labels = row.labels;
  for (const name of join.labels) labels = setLabel(labels, name, other ? labelValue(other.labels, name) : "");
  return labels;
}
