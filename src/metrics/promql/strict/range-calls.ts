import type { Columns } from "../../source.ts";
import type { CallExpr, Expr, RollupExpr } from "../ast.ts";
import { executionError } from "../errors.ts";
import type { Frame } from "../frame.ts";
import { labelValue, NO_LABELS } from "../labels.ts";
import { evaluateBounded } from "./bounded-ranges.ts";
import { changesOf, computeNative, resetsOf, takesNative } from "./native-rollups.ts";
import { ANY_KIND, type NativePoint, RANGE_FUNCTIONS, type Range, WANTS_COUNTER } from "./rollups.ts";
import { type Evaluate, eachRange, type LookbackWindow, type Samples, sampleKind } from "./selectors.ts";
import { ABSENT, checkQuantile, FLOAT, HISTOGRAM, inform, newRow, putNative, type Row, warn } from "./values.ts";

/** Calls of functions that take a range vector. */

/** Functions that look at samples, as opposed to values of a step. */
export function takesRange(name: string): boolean {
  return (
    Object.hasOwn(RANGE_FUNCTIONS, name) ||
    Object.hasOwn(ANY_KIND, name) ||
    /^(first|last|absent)_over_time$/.test(name)
  );
}

/** The range is the only argument with a window, wherever it stands. */
function rangeArgument(call: CallExpr): RollupExpr {
  const found = call.args.find((arg) => arg.kind === "rollup" && arg.window !== undefined);
  if (found?.kind !== "rollup") throw executionError(`${call.name}() needs a range such as metric[5m]`);
  return found;
}

export function evaluateRange(frame: Frame, call: CallExpr, evaluate: Evaluate): Row[] {
  const name = call.name.toLowerCase();
  const rollup = rangeArgument(call);
  if (rollup.boundary) return evaluateBounded(frame, name, rollup, rollup.boundary, evaluate);
  const params = call.args.filter((arg) => arg !== rollup).map((arg) => numbers(frame, arg, evaluate));
  if (name === "quantile_over_time") {
    for (const phi of new Set(params[0])) checkQuantile(frame, phi, call.args[0]?.at ?? call.at);
  }
  const rows: Row[] = [];
  eachRange(frame, rollup, evaluate, (samples, window, range_ms) => {
    // last_over_time and first_over_time give the series itself at another moment, so it keeps its name.
    const drop = samples.dropName || !/^(first|last)_over_time$/.test(name);
    const row = newRow(frame, samples.labels, drop);
    if (!computeRow({ frame, call, name, params }, row, samples, window, range_ms)) return;
    rows.push(row);
    if (WANTS_COUNTER.has(name) && row.present.includes(FLOAT)) adviseCounter(frame, nameOf(row), rollup.at);
  });
  return name === "absent_over_time" ? [absentRow(frame, rows, absentLabels(rollup))] : rows;
}

function numbers(frame: Frame, arg: Expr, evaluate: Evaluate): Float64Array {
  const value = evaluate(frame, arg);
  if (value.type !== "scalar") throw executionError("a number was expected");
  return value.values;
}

/** The samples of one series, numbers apart from native histograms; ends of series are left out. */
interface Split {
  values: Float64Array;
  times: Float64Array;
  /** How often the numbers have fallen so far. */
  falls: Int32Array;
  numbers: number;
  /** Times and kinds of all samples, and how many histograms come before each. */
  allTimes: Float64Array;
  kinds: Uint8Array;
  histogramsBefore: Int32Array;
  all: number;
  natives: NativePoint[];
}

/** Without NaN there is nothing to look at one by one. */
function numbersOnly(columns: Columns): Split {
  const { length } = columns;
  const values = columns.values.slice(0, length);
  const times = columns.timestamps.slice(0, length);
  const falls = new Int32Array(length);
  for (let i = 1; i < length; i++) {
    const fell = (values[i] as number) < (values[i - 1] as number);
    falls[i] = (falls[i - 1] as number) + (fell ? 1 : 0);
  }
  const kinds = new Uint8Array(length).fill(FLOAT);
  const histogramsBefore = new Int32Array(length + 1);
  return { values, times, falls, numbers: length, allTimes: times, kinds, histogramsBefore, all: length, natives: [] };
}

function split(columns: Columns): Split {
  const { length } = columns;
  if (!columns.values.subarray(0, length).some(Number.isNaN)) return numbersOnly(columns);
  const out: Split = {
    values: new Float64Array(length),
    times: new Float64Array(length),
    falls: new Int32Array(length),
    numbers: 0,
    allTimes: new Float64Array(length),
    kinds: new Uint8Array(length),
    histogramsBefore: new Int32Array(length + 1),
    all: 0,
    natives: [],
  };
  for (let i = 0; i < length; i++) {
    const kind = sampleKind(columns.values, i);
    if (kind === ABSENT) continue;
    const time = columns.timestamps[i] as number;
    const histogram = columns.histograms?.at(columns.values, i);
    const isHistogram = histogram !== undefined;
    if (histogram) out.natives.push({ time, histogram });
    out.histogramsBefore[out.all + 1] = (out.histogramsBefore[out.all] as number) + (isHistogram ? 1 : 0);
    out.kinds[out.all] = kind;
    out.allTimes[out.all++] = time;
    if (!isHistogram) putNumber(out, columns.values[i] as number, time);
  }
  return out;
}

function putNumber(out: Split, value: number, time: number): void {
  const n = out.numbers++;
  const fell = n > 0 && value < (out.values[n - 1] as number);
  out.values[n] = value;
  out.times[n] = time;
  out.falls[n] = (n > 0 ? (out.falls[n - 1] as number) : 0) + (fell ? 1 : 0);
}

/** The first place at or after `from` whose time is past the limit. */
function past(times: Float64Array, from: number, length: number, limit: number): number {
  let i = from;
  while (i < length && (times[i] as number) <= limit) i++;
  return i;
}

interface Work {
  frame: Frame;
  call: CallExpr;
  name: string;
  params: Float64Array[];
}

/** Moves indexes over the samples; false when no step has a result. */
function computeRow(work: Work, row: Row, samples: Samples, window: LookbackWindow, range_ms: number): boolean {
  const { frame, params } = work;
  const parts = split(samples.columns);
  const range = newRange(parts, range_ms);
  let [from, to, first, last] = [0, 0, 0, 0];
  let found = false;
  for (let i = 0; i < frame.points; i++) {
    const end_ms = window.at(i);
    from = past(parts.times, from, parts.numbers, end_ms - range_ms);
    to = past(parts.times, Math.max(from, to), parts.numbers, end_ms);
    first = past(parts.allTimes, first, parts.all, end_ms - range_ms);
    last = past(parts.allTimes, Math.max(first, last), parts.all, end_ms);
    if (first === last) continue;
    range.from = from;
    range.length = to - from;
    range.end_ms = end_ms;
    range.now_ms = frame.start_ms + i * frame.step_ms;
    describe(range, parts, first, last);
    for (let n = 0; n < params.length; n++) range.params[n] = params[n]?.[i] as number;
    if (computeStep(work, row, i, range)) found = true;
  }
  return found;
}

/** One for all steps of a series. */
function newRange(parts: Split, range_ms: number): Range {
  return {
    values: parts.values,
    times: parts.times,
    from: 0,
    length: 0,
    falls: parts.falls,
    histograms: 0,
    firstIsHistogram: false,
    lastIsHistogram: false,
    natives: [],
    firstTime: 0,
    lastTime: 0,
    end_ms: 0,
    range_ms,
    now_ms: 0,
    params: [],
  };
}

function describe(range: Range, parts: Split, first: number, last: number): void {
  range.histograms = (parts.histogramsBefore[last] as number) - (parts.histogramsBefore[first] as number);
  if (parts.natives.length > 0) {
    range.natives = parts.natives.slice(parts.histogramsBefore[first], parts.histogramsBefore[last]);
  }
  range.firstIsHistogram = parts.kinds[first] === HISTOGRAM;
  range.lastIsHistogram = parts.kinds[last - 1] === HISTOGRAM;
  range.firstTime = parts.allTimes[first] as number;
  range.lastTime = parts.allTimes[last - 1] as number;
}

function computeStep(work: Work, row: Row, i: number, range: Range): boolean {
  const kind = range.histograms > 0 ? resultKind(work, row, range) : FLOAT;
  if (kind === ABSENT) return false;
  if (kind === HISTOGRAM) {
    const { frame, call, name } = work;
    const native = { frame, at: rangeArgument(call).at, name, metric: nameOf(row) };
    const histogram = computeNative(native, range);
    if (histogram) putNative(frame, row, i, histogram);
    return histogram !== undefined;
  }
  row.present[i] = FLOAT;
  const value = compute(work.name, range);
  if (value === undefined) row.present[i] = ABSENT;
  else row.values[i] = value;
  return value !== undefined;
}

/** The number for a window that holds one. */
function compute(name: string, range: Range): number | undefined {
  if (name === "last_over_time") return range.values[range.from + range.length - 1];
  if (name === "first_over_time") return range.values[range.from];
  if (name === "absent_over_time") return 1;
  if (range.histograms > 0 && name === "changes") return changesOf(range);
  if (range.histograms > 0 && name === "resets") return resetsOf(range);
  return (ANY_KIND[name] ?? RANGE_FUNCTIONS[name])?.(range);
}

/** Whether a window with histograms gives a number, a histogram or nothing, and what to say about it. */
function resultKind(work: Work, row: Row, range: Range): number {
  const { name } = work;
  if (name === "last_over_time") return range.lastIsHistogram ? HISTOGRAM : FLOAT;
  if (name === "first_over_time") return range.firstIsHistogram ? HISTOGRAM : FLOAT;
  if (name === "absent_over_time" || name === "changes" || name === "resets" || Object.hasOwn(ANY_KIND, name))
    return FLOAT;
  if (takesNative(name)) return nativeKind(work, row, range);
  if (range.length === 0) return ABSENT;
  const what = "ignored histograms in a range containing both floats and histograms";
  inform(work.frame, `${what} for metric name ${JSON.stringify(nameOf(row))}`, rangeArgument(work.call).at);
  return FLOAT;
}

/** Functions that compute with histograms; a mix of both kinds has no meaning for them. */
function nativeKind({ frame, call, name }: Work, row: Row, range: Range): number {
  if (range.length === 0) return HISTOGRAM;
  const isInstant = name === "irate" || name === "idelta";
  if (isInstant && range.length + range.histograms < 2) return ABSENT;
  const kinds = isInstant ? lastKinds(range) : undefined;
  if (kinds && kinds[0] === kinds[1]) return kinds[0] ? HISTOGRAM : FLOAT;
  const metric = JSON.stringify(nameOf(row));
  warn(frame, `encountered a mix of histograms and floats for metric name ${metric}`, rangeArgument(call).at);
  return ABSENT;
}

/** Whether the last two samples are histograms. */
function lastKinds(range: Range): [boolean, boolean] {
  const floats = Array.from({ length: Math.min(2, range.length) }, (_, n) => ({
    time: range.times[range.from + range.length - 1 - n] as number,
    native: false,
  }));
  const natives = range.natives.slice(-2).map(({ time }) => ({ time, native: true }));
  const newest = [...floats, ...natives].sort((a, b) => a.time - b.time).slice(-2);
  return [newest[0]?.native ?? false, newest[1]?.native ?? false];
}

const nameOf = (row: Row): string => labelValue(row.labels, "__name__");

function adviseCounter(frame: Frame, name: string, at: number): void {
  if (name === "" || /(_total|_sum|_count|_bucket)$/.test(name)) return;
  inform(
    frame,
    `metric might not be a counter, name does not end in _total/_sum/_count/_bucket: ${JSON.stringify(name)}`,
    at,
  );
}

/** 1 at the steps at which no row has a value. */
export function absentRow(frame: Frame, rows: Row[], labels: Row["labels"]): Row {
  const out = newRow(frame, labels, false);
  for (let i = 0; i < frame.points; i++) {
    if (rows.some((row) => row.present[i] !== ABSENT)) continue;
    out.present[i] = FLOAT;
    out.values[i] = 1;
  }
  return out;
}

/** The labels that equality matchers settle; one that is named twice is not settled. */
export function absentLabels(expr: Expr | undefined): Row["labels"] {
  if (expr?.kind === "rollup") return expr.step || expr.inheritStep ? NO_LABELS : absentLabels(expr.arg);
  if (expr?.kind !== "selector") return NO_LABELS;
  const settled = new Map<string, string>();
  const seen = new Set<string>();
  for (const { name, op, value } of expr.filters[0] ?? []) {
    if (name === "__name__") continue;
    if (op === "=" && !seen.has(name)) settled.set(name, value);
    else settled.delete(name);
    seen.add(name);
  }
  // A label with an empty value is no label.
  return [...settled]
    .filter(([, value]) => value !== "")
    .sort(([a], [b]) => (a < b ? -1 : 1))
    .flat();
}
