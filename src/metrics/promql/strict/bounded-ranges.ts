import type { Columns } from "../../source.ts";
import type { RollupExpr, SelectorExpr } from "../ast.ts";
import type { Frame } from "../frame.ts";
import { type Boundary, boundaryFunction, type Extended, extendedSamples, reach, smoothedAt } from "./boundaries.ts";
import { type Evaluate, eachRange, eachSeries, lookOf, sampleKind } from "./selectors.ts";
import { FLOAT, isEmpty, newRow, type Row } from "./values.ts";

/** Evaluates what has an `anchored` or `smoothed` after it. Native histograms are not looked at. */

/** The numbers of a series; its ends and native histograms are left out. */
function numbersOf({ timestamps, values, length }: Columns): Pick<Extended, "times" | "values"> {
  const keep = Array.from({ length }, (_, i) => i).filter((i) => sampleKind(values, i) === FLOAT);
  return {
    times: Float64Array.from(keep, (i) => timestamps[i] as number),
    values: Float64Array.from(keep, (i) => values[i] as number),
  };
}

/** Moves over the samples with the steps; a window is open at its beginning. */
function windowOver(
  columns: Columns,
  before_ms: number,
  after_ms: number,
): (start_ms: number, end_ms: number) => Extended {
  const extended: Extended = { ...numbersOf(columns), from: 0, to: 0, start_ms: 0, end_ms: 0 };
  const { times } = extended;
  return (start_ms, end_ms) => {
    while (extended.from < times.length && (times[extended.from] as number) <= start_ms - before_ms) extended.from++;
    extended.to = Math.max(extended.from, extended.to);
    while (extended.to < times.length && (times[extended.to] as number) <= end_ms + after_ms) extended.to++;
    extended.start_ms = start_ms;
    extended.end_ms = end_ms;
    return extended;
  };
}

export function evaluateBounded(
  frame: Frame,
  name: string,
  rollup: RollupExpr,
  boundary: Boundary,
  evaluate: Evaluate,
): Row[] {
  const compute = boundaryFunction(name, boundary);
  const { before_ms, after_ms } = reach(boundary, frame.query.lookback_ms);
  const rows: Row[] = [];
  eachRange(frame, rollup, evaluate, ({ labels, columns }, window, range_ms) => {
    const at = windowOver(columns, before_ms, after_ms);
    const row = newRow(frame, labels, true);
    for (let i = 0; i < frame.points; i++) {
      const end_ms = window.at(i);
      const extended = at(end_ms - range_ms, end_ms);
      put(row, i, extended.from === extended.to ? undefined : compute(extended));
    }
    if (!isEmpty(row)) rows.push(row);
  });
  return rows;
}

/** An instant vector selector: values at the very moment of each step. */
export function smoothedSelector(
  frame: Frame,
  selector: SelectorExpr,
  rollup: Pick<RollupExpr, "offset" | "moment">,
): Row[] {
  const window = lookOf(frame, rollup);
  const { lookback_ms } = frame.query;
  const rows: Row[] = [];
  eachSeries(frame, selector, window.first_ms - lookback_ms, window.last_ms + lookback_ms, ({ labels, columns }) => {
    const at = windowOver(columns, lookback_ms, lookback_ms);
    const row = newRow(frame, labels, false);
    for (let i = 0; i < frame.points; i++) put(row, i, smoothedAt(at(window.at(i), window.at(i)), window.at(i)));
    if (!isEmpty(row)) rows.push(row);
  });
  return rows;
}

/** The samples of a range vector at one moment. */
export function boundedSamples(
  { query }: Frame,
  columns: Columns,
  boundary: Boundary,
  end_ms: number,
  range_ms: number,
): [time_ms: number, value: number][] {
  const { before_ms, after_ms } = reach(boundary, query.lookback_ms);
  const extended = windowOver(columns, before_ms, after_ms)(end_ms - range_ms, end_ms);
  return extendedSamples(extended, boundary === "smoothed");
}

function put(row: Row, i: number, value: number | undefined): void {
  if (value === undefined) return;
  row.present[i] = FLOAT;
  row.values[i] = value;
}
