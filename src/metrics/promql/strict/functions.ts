import { regexError, replaceWhole } from "../../regex.ts";
import type { CallExpr } from "../ast.ts";
import { executionError } from "../errors.ts";
import { column, type Frame } from "../frame.ts";
import { DATE_PARTS, dateValue, each, OF_ONE_NUMBER } from "../functions/shared.ts";
import { compareLabels, labelsKey, labelValue, NO_LABELS, setLabel } from "../labels.ts";
import { absentLabels, absentRow } from "./range-calls.ts";
import { ABSENT, FLOAT, finalLabels, mapRows, newRow, type Row, type Value, warn } from "./values.ts";

/** Functions of instant vectors and numbers, strict dialect. */

export interface Call {
  frame: Frame;
  expr: CallExpr;
  args: Value[];
}

type Implementation = (call: Call) => Value;

function rowsOf({ expr, args }: Call, i: number): Row[] {
  const value = args[i];
  if (value?.type !== "vector") throw executionError(`argument ${i + 1} of ${expr.name}() must be an instant vector`);
  return value.rows;
}

function numbersOf({ expr, args }: Call, i: number): Float64Array {
  const value = args[i];
  if (value?.type !== "scalar") throw executionError(`argument ${i + 1} of ${expr.name}() must be a number`);
  return value.values;
}

function textOf({ expr, args }: Call, i: number): string {
  const value = args[i];
  if (value?.type !== "string") throw executionError(`argument ${i + 1} of ${expr.name}() must be a string`);
  return value.text;
}

const vector = (rows: Row[]): Value => ({ type: "vector", rows });
const pointwise =
  (change: (v: number) => number): Implementation =>
  (call) =>
    vector(mapRows(rowsOf(call, 0), change));

function constantColumn(frame: Frame, value: (i: number) => number): Float64Array {
  const values = column(frame);
  for (let i = 0; i < values.length; i++) values[i] = value(i);
  return values;
}

/** Seconds of the step. */
const timeAt = (frame: Frame, i: number): number => (frame.start_ms + i * frame.step_ms) / 1000;

/** A multiple of `to`; the inverse is used because 1/0.1 is exact where 0.1 is not. */
function round(call: Call): Value {
  const to = call.args.length > 1 ? numbersOf(call, 1) : undefined;
  return vector(
    mapRows(rowsOf(call, 0), (value, i) => {
      const inverse = 1 / (to ? (to[i] as number) : 1);
      return Math.floor(value * inverse + 0.5) / inverse;
    }),
  );
}

/** An infinity that settles the matter wins over NaN. */
function larger(a: number, b: number): number {
  return a === Number.POSITIVE_INFINITY || b === Number.POSITIVE_INFINITY ? Number.POSITIVE_INFINITY : Math.max(a, b);
}

function smaller(a: number, b: number): number {
  return a === Number.NEGATIVE_INFINITY || b === Number.NEGATIVE_INFINITY ? Number.NEGATIVE_INFINITY : Math.min(a, b);
}

/** NaN bounds give NaN; an empty interval gives nothing. */
function clamp(low: number | undefined, high: number | undefined): Implementation {
  return (call) => {
    const lows = low === undefined ? undefined : numbersOf(call, low);
    const highs = high === undefined ? undefined : numbersOf(call, high);
    const rows = mapRows(rowsOf(call, 0), (value, i) => {
      const raised = lows ? larger(lows[i] as number, value) : value;
      return highs ? smaller(highs[i] as number, raised) : raised;
    });
    for (const row of rows) {
      for (let i = 0; i < row.present.length; i++) {
        if (lows && highs && (highs[i] as number) < (lows[i] as number)) row.present[i] = ABSENT;
      }
    }
    return vector(rows);
  };
}

function date(part: (date: Date) => number): Implementation {
  return (call) => {
    if (call.args.length > 0) return vector(mapRows(rowsOf(call, 0), (value) => dateValue(value, part)));
    const row = newRow(call.frame, NO_LABELS, false);
    row.present.fill(FLOAT);
    for (let i = 0; i < row.values.length; i++) row.values[i] = dateValue(timeAt(call.frame, i), part);
    return vector([row]);
  };
}

/** The value of the only series at a step, NaN when there is none or several. */
function scalar(call: Call): Value {
  const rows = rowsOf(call, 0);
  const values = constantColumn(call.frame, (i) => {
    const there = rows.filter((row) => row.present[i] === FLOAT);
    return there.length === 1 ? ((there[0] as Row).values[i] as number) : Number.NaN;
  });
  return { type: "scalar", values };
}

function toVector(call: Call): Value {
  const row = newRow(call.frame, NO_LABELS, false);
  row.values.set(numbersOf(call, 0));
  row.present.fill(FLOAT);
  return vector([row]);
}

/** The replacement character stands for bytes that are no UTF-8. */
function checkName(name: string, where: string): void {
  if (name === "" || name.includes("\ufffd"))
    throw executionError(`invalid destination label name in ${where}(): ${name}`);
}

/** Labels may have become the same; that is an error at once, not only in the end. */
function relabel(call: Call, to: string, change: (labels: Row["labels"]) => Row["labels"]): Value {
  const rows = rowsOf(call, 0);
  for (const row of rows) {
    row.labels = change(row.labels);
    if (to === "__name__") row.dropName = false;
  }
  refuseSame(rows);
  return vector(rows);
}

function refuseSame(rows: Row[]): void {
  const seen = new Map<string, Row>();
  for (const row of rows) {
    const key = labelsKey(row.labels);
    const other = seen.get(key);
    seen.set(key, row);
    if (other?.present.some((p, i) => p !== ABSENT && row.present[i] !== ABSENT)) {
      throw executionError("vector cannot contain metrics with the same labelset");
    }
  }
}

function labelReplace(call: Call): Value {
  const [to, replacement, from, pattern] = [textOf(call, 1), textOf(call, 2), textOf(call, 3), textOf(call, 4)];
  const wrong = regexError(pattern);
  if (wrong !== undefined) throw executionError(`invalid regular expression in label_replace(): ${pattern}: ${wrong}`);
  checkName(to, "label_replace");
  const replace = replaceWhole(pattern, replacement);
  return relabel(call, to, (labels) => {
    const value = replace(labelValue(labels, from));
    return value === undefined ? labels : setLabel(labels, to, value);
  });
}

function labelJoin(call: Call): Value {
  const to = textOf(call, 1);
  const separator = textOf(call, 2);
  const from = call.args.slice(3).map((_, i) => textOf(call, i + 3));
  checkName(to, "label_join");
  return relabel(call, to, (labels) =>
    setLabel(labels, to, from.map((name) => labelValue(labels, name)).join(separator)),
  );
}

function warnOrder({ frame, expr }: Call): void {
  if (frame.query.grid.start_ms === frame.query.grid.end_ms) return;
  warn(frame, "sort is ineffective for range queries since results are always ordered by labels", expr.at);
}

function sort(descending: boolean): Implementation {
  return (call) => {
    warnOrder(call);
    const rows = rowsOf(call, 0).filter((row) => row.present.some((p) => p === FLOAT));
    const sign = descending ? -1 : 1;
    return vector(
      rows.sort((a, b) => {
        const [x, y] = [a.values[0] as number, b.values[0] as number];
        if (Number.isNaN(x) || Number.isNaN(y)) return Number(Number.isNaN(x)) - Number(Number.isNaN(y));
        return sign * (x - y);
      }),
    );
  };
}

/** Digits count as numbers. */
const NATURAL = new Intl.Collator("en", { numeric: true });

/** Series that are equal in the given labels are ordered by all of their labels. */
function sortByLabel(descending: boolean): Implementation {
  return (call) => {
    warnOrder(call);
    const names = call.args.slice(1).map((_, i) => textOf(call, i + 1));
    const sign = descending ? -1 : 1;
    return vector(
      rowsOf(call, 0).sort((a, b) => {
        for (const name of names) {
          const order = NATURAL.compare(labelValue(a.labels, name), labelValue(b.labels, name));
          if (order !== 0) return sign * order;
        }
        return sign * compareLabels(finalLabels(a), finalLabels(b));
      }),
    );
  };
}

/** Functions of numbers alone. */
function ofNumbers(pick: (values: number[]) => number): Implementation {
  return (call) => {
    const columns = call.args.map((_, i) => numbersOf(call, i));
    return { type: "scalar", values: constantColumn(call.frame, (i) => pick(columns.map((c) => c[i] as number))) };
  };
}

const number =
  (value: (frame: Frame, i: number) => number): Implementation =>
  ({ frame }) => ({
    type: "scalar",
    values: constantColumn(frame, (i) => value(frame, i)),
  });

export const FUNCTIONS: Readonly<Record<string, Implementation>> = {
  absent: (call) => vector([absentRow(call.frame, rowsOf(call, 0), absentLabels(call.expr.args[0]))]),
  clamp: clamp(1, 2),
  clamp_max: clamp(undefined, 1),
  clamp_min: clamp(1, undefined),
  end: number((frame) => frame.query.grid.end_ms / 1000),
  label_join: labelJoin,
  label_replace: labelReplace,
  max_of: ofNumbers((values) => Math.max(...values)),
  min_of: ofNumbers((values) => Math.min(...values)),
  pi: number(() => Math.PI),
  range: number((frame) => (frame.query.grid.end_ms - frame.query.grid.start_ms) / 1000),
  round,
  scalar,
  sgn: pointwise((v) => (v < 0 ? -1 : v > 0 ? 1 : v)),
  sort: sort(false),
  sort_by_label: sortByLabel(false),
  sort_by_label_desc: sortByLabel(true),
  sort_desc: sort(true),
  start: number((frame) => frame.query.grid.start_ms / 1000),
  step: number((frame) =>
    frame.query.grid.start_ms === frame.query.grid.end_ms ? 0 : frame.query.grid.step_ms / 1000,
  ),
  time: number(timeAt),
  vector: toVector,
  ...each(OF_ONE_NUMBER, pointwise),
  ...each(DATE_PARTS, date),
};

/** For a vector that no selector gives: the time of the step. */
export function timestampOfStep(frame: Frame, rows: Row[]): Row[] {
  for (const row of rows) {
    row.dropName = true;
    for (let i = 0; i < row.present.length; i++) {
      if (row.present[i] === ABSENT) continue;
      row.present[i] = FLOAT;
      row.values[i] = timeAt(frame, i);
    }
  }
  return rows;
}
