import type { Columns } from "../../source.ts";
import type { RollupExpr, SelectorExpr } from "../ast.ts";
import { executionError } from "../errors.ts";
import type { Frame } from "../frame.ts";
import { labelValue } from "../labels.ts";
import { type Boundary, boundaryFunction, type Extended, extendedSamples, reach, smoothedAt } from "./boundaries.ts";
import { boundedNative, countedNative, smoothedNative } from "./bounded-natives.ts";
import type { NativeCall } from "./native-rollups.ts";
import type { NativePoint } from "./rollups.ts";
import { type Evaluate, eachRange, eachSeries, lookOf, sampleKind } from "./selectors.ts";
import { FLOAT, isEmpty, newRow, putNative, type Row, warn } from "./values.ts";

/** Evaluates what has an `anchored` or `smoothed` after it. */

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
    const natives = nativesOf(columns);
    const row = newRow(frame, labels, true);
    const call = { frame, at: rollup.at, name, metric: labelValue(labels, "__name__") };
    for (let i = 0; i < frame.points; i++) {
      const end_ms = window.at(i);
      const extended = at(end_ms - range_ms, end_ms);
      const points = within(natives, end_ms - range_ms - before_ms, end_ms + after_ms);
      if (points.length > 0) putNatives(call, row, i, extended, points, boundary === "smoothed");
      else put(row, i, extended.from === extended.to ? undefined : compute(extended));
    }
    if (!isEmpty(row)) rows.push(row);
  });
  return rows;
}

/** The native histograms of a series; most have none. */
function nativesOf({ timestamps, values, length, histograms }: Columns): NativePoint[] {
  const natives: NativePoint[] = [];
  if (!histograms || histograms.length === 0) return natives;
  for (let i = 0; i < length; i++) {
    const histogram = histograms.at(values, i);
    if (histogram) natives.push({ time: timestamps[i] as number, histogram });
  }
  return natives;
}

const within = (natives: readonly NativePoint[], after_ms: number, end_ms: number): readonly NativePoint[] =>
  natives.length === 0 ? natives : natives.filter(({ time }) => time > after_ms && time <= end_ms);

/** A window that has native histograms, and maybe numbers as well. */
function putNatives(
  call: NativeCall,
  row: Row,
  i: number,
  extended: Extended,
  points: readonly NativePoint[],
  smoothed: boolean,
): void {
  const { times, values, from, to, start_ms, end_ms } = extended;
  if (call.name === "changes" || call.name === "resets") {
    const numbers = Array.from({ length: to - from }, (_, n) => ({
      time: times[from + n] as number,
      value: values[from + n] as number,
    }));
    const natives = points.map(({ time, histogram }) => ({ time, value: histogram }));
    put(row, i, countedNative(call.name, [...numbers, ...natives], start_ms));
  } else if (from < to) warnMix(call);
  else {
    const histogram = boundedNative(call, { points, start_ms, end_ms, smoothed });
    if (histogram) putNative(call.frame, row, i, histogram);
  }
}

function warnMix({ frame, metric, at }: NativeCall): void {
  warn(frame, `encountered a mix of histograms and floats for metric name ${JSON.stringify(metric)}`, at);
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
    const natives = nativesOf(columns);
    const row = newRow(frame, labels, false);
    const call = { frame, at: selector.at, name: "smoothed", metric: labelValue(labels, "__name__") };
    for (let i = 0; i < frame.points; i++) {
      const moment_ms = window.at(i);
      const extended = at(moment_ms, moment_ms);
      const points = within(natives, moment_ms - lookback_ms, moment_ms + lookback_ms);
      if (points.length === 0) put(row, i, smoothedAt(extended, moment_ms));
      else if (extended.from < extended.to) warnMix(call);
      else {
        const histogram = smoothedNative(call, points, moment_ms);
        if (histogram) putNative(frame, row, i, histogram);
      }
    }
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
  if (nativesOf(columns).length > 0) throw executionError(`${boundary} modifier is not supported with histograms`);
  const { before_ms, after_ms } = reach(boundary, query.lookback_ms);
  const extended = windowOver(columns, before_ms, after_ms)(end_ms - range_ms, end_ms);
  return extendedSamples(extended, boundary === "smoothed");
}

function put(row: Row, i: number, value: number | undefined): void {
  if (value === undefined) return;
  row.present[i] = FLOAT;
  row.values[i] = value;
}
