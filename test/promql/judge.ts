/** Runs an evaluation of a script and says in words what is wrong with the answer; undefined when nothing is. */
import { type Dialect, type Expr, rebuild } from "#metrics/promql/ast.ts";
import { instant, parse, range } from "#metrics/promql/engine.ts";
import { labelsKey, showLabels } from "#metrics/promql/labels.ts";
import { print } from "#metrics/promql/printer.ts";
import type { QueryResult, ResultSeries } from "#metrics/promql/results.ts";
import type { SampleSource } from "#metrics/source.ts";
import { sameHistogram } from "./histogram-text.ts";
import { type Evaluation, type LoadedSeries, type Point, time } from "./script.ts";

interface Setting {
  source: SampleSource;
  dialect: Dialect;
  /** Also with @ on every selector at other moments, and as the middle step of a range. */
  replay: boolean;
}

export function judge(evaluation: Evaluation, setting: Setting): string | undefined {
  try {
    return evaluation.instant ? judgeInstant(evaluation, setting) : judgeRange(evaluation, setting);
  } catch (error) {
    return `threw ${error instanceof Error ? error.stack : String(error)}`;
  }
}

const has = (evaluation: Evaluation, kind: string): boolean => evaluation.expect.some((e) => e.kind === kind);

function attempt(run: () => QueryResult): QueryResult | Error {
  try {
    return run();
  } catch (error) {
    if (error instanceof Error && error.name === "QueryError") return error;
    throw error;
  }
}

function judgeInstant(evaluation: Evaluation, setting: Setting): string | undefined {
  const { expr: query, start_ms: time_ms } = evaluation;
  const { source, dialect } = setting;
  const result = attempt(() => instant({ query, time_ms, source, dialect }));
  const wrong = compare(evaluation, result) ?? compareAnnotations(evaluation, result);
  if (wrong !== undefined || !setting.replay || result instanceof Error || has(evaluation, "string")) return wrong;
  const cases = [{ query, time_ms }, ...withAt(query, time_ms)];
  for (const replay of cases) {
    const again = attempt(() => instant({ ...replay, source, dialect }));
    const differs = compare(evaluation, again) ?? judgeMiddle(evaluation, setting, replay.query, replay.time_ms);
    if (differs !== undefined) return `replayed as ${replay.query} at ${replay.time_ms} ms: ${differs}`;
  }
  return undefined;
}

/** The same query as a range of three steps must give the same at the middle one. */
function judgeMiddle(
  evaluation: Evaluation,
  { source, dialect }: Setting,
  query: string,
  time_ms: number,
): string | undefined {
  if (has(evaluation, "ordered") || has(evaluation, "range") || /\b(start|end|range|step)\s*\(\s*\)/.test(query))
    return undefined;
  const around = { start_ms: time_ms - 60_000, end_ms: time_ms + 60_000, step_ms: 60_000 };
  const result = attempt(() => range({ query, ...around, source, dialect }));
  if (result instanceof Error) return `as a range: ${result.message}`;
  const series = result.data.type === "matrix" ? result.data.series : [];
  const middle = series.flatMap((one) => {
    const i = one.timestamps.indexOf(time_ms);
    const histograms = one.histograms?.filter(({ timestamp }) => timestamp === time_ms) ?? [];
    if (i < 0 && histograms.length === 0) return [];
    const [from, to] = i < 0 ? [0, 0] : [i, i + 1];
    const numbers = { timestamps: one.timestamps.slice(from, to), values: one.values.slice(from, to) };
    return [{ labels: one.labels, ...numbers, histograms }];
  });
  const differs =
    evaluation.scalar === undefined
      ? compareVector(evaluation, middle)
      : compareNumber(evaluation.scalar, middle[0]?.values[0]);
  return differs === undefined ? undefined : `as the middle of a range: ${differs}`;
}

const UNSAFE =
  /\b(days_in_month|day_of_month|day_of_week|day_of_year|hour|minute|month|year|predict_linear|time|timestamp|start|end|range|step)\s*\(/i;

/** The query with `@` on every selector that has none, at moments that must not matter then. */
function withAt(query: string, time_ms: number): { query: string; time_ms: number }[] {
  if (UNSAFE.test(query)) return [];
  const pinned = print(pin(parse(query, "promql"), time_ms));
  const moments = time_ms === 0 ? [-1000, 1000] : [-10 * time_ms, 0, Math.trunc(time_ms / 5), time_ms, 10 * time_ms];
  return moments.map((moment) => ({ query: pinned, time_ms: moment }));
}

function pin(expr: Expr, time_ms: number): Expr {
  const moment: Expr = { kind: "number", at: expr.at, value: time_ms / 1000, text: (time_ms / 1000).toFixed(3) };
  if (expr.kind === "selector") return { kind: "rollup", at: expr.at, arg: expr, moment };
  if (expr.kind !== "rollup") return rebuild(expr, (child) => pin(child, time_ms));
  // A subquery that is pinned pins what is in it; one that had its own @ does too.
  return expr.moment ? expr : { ...expr, moment };
}

function judgeRange(evaluation: Evaluation, { source, dialect }: Setting): string | undefined {
  const { expr: query, start_ms, end_ms, step_ms } = evaluation;
  const result = attempt(() => range({ query, start_ms, end_ms, step_ms, source, dialect }));
  return compare(evaluation, result) ?? compareAnnotations(evaluation, result);
}

function compare(evaluation: Evaluation, result: QueryResult | Error): string | undefined {
  if (result instanceof Error) return compareFailure(evaluation, result);
  if (has(evaluation, "fail")) return "did not fail";
  const { data } = result;
  const text = evaluation.expect.find((e) => e.kind === "string")?.text;
  if (text !== undefined)
    return data.type === "string" && data.value === text ? undefined : `gave ${JSON.stringify(data)}`;
  const { scalar } = evaluation;
  if (scalar !== undefined) return data.type === "scalar" ? compareNumber(scalar, data.value) : `gave a ${data.type}`;
  if (data.type === "scalar" || data.type === "string") return `gave a ${data.type}`;
  if (has(evaluation, "range")) return compareRange(evaluation, data.series);
  return evaluation.instant ? compareVector(evaluation, data.series) : compareMatrix(evaluation, data.series);
}

function compareFailure(evaluation: Evaluation, error: Error): string | undefined {
  const fail = evaluation.expect.find((e) => e.kind === "fail");
  if (!fail) return `failed: ${error.message}`;
  const fits = error.message.includes(fail.message ?? "") && new RegExp(fail.regex ?? "").test(error.message);
  return fits ? undefined : `failed with ${error.message}, not ${fail.message ?? fail.regex}`;
}

function compareAnnotations(evaluation: Evaluation, result: QueryResult | Error): string | undefined {
  if (result instanceof Error) return undefined;
  for (const [kind, found] of [
    ["warn", result.warnings],
    ["info", result.infos],
  ] as const) {
    const wanted = evaluation.expect.filter((e) => e.kind === kind);
    if (has(evaluation, `no_${kind}`) && found.length > 0) return `unexpected ${kind}: ${found.join("; ")}`;
    if (wanted.length === 0) continue;
    if (found.length === 0) return `no ${kind}`;
    for (const { message, regex } of wanted) {
      const fits = (text: string): boolean =>
        (message === undefined || text === message) && (regex === undefined || new RegExp(regex).test(text));
      if (!found.some(fits)) return `${kind} is ${found.join("; ")}, not ${message ?? regex}`;
    }
  }
  return undefined;
}

const SMALLEST = 2.2250738585072014e-308;

/** Equal to six digits; NaN equals NaN. */
function almostEqual(a: number, b: number): boolean {
  if (Number.isNaN(a) || Number.isNaN(b)) return Number.isNaN(a) && Number.isNaN(b);
  if (a === b) return true;
  const sum = Math.abs(a) + Math.abs(b);
  const apart = Math.abs(a - b);
  if (a === 0 || b === 0 || sum < SMALLEST) return apart < 1e-6 * SMALLEST;
  return apart / Math.min(sum, Number.MAX_VALUE) < 1e-6;
}

function compareNumber(wanted: number, got: number | undefined): string | undefined {
  return got !== undefined && almostEqual(wanted, got) ? undefined : `${got} instead of ${wanted}`;
}

function compareSeries(
  wanted: LoadedSeries[],
  got: ResultSeries[],
  points: (one: ResultSeries) => Point[],
): string | undefined {
  const left = new Map(got.map((one) => [labelsKey(one.labels), one]));
  if (left.size < got.length) return `the same labels twice: ${got.map((s) => showLabels(s.labels)).join(" ")}`;
  for (const series of wanted) {
    const one = left.get(labelsKey(series.labels));
    left.delete(labelsKey(series.labels));
    const wrong = comparePoints(series.points, one ? points(one) : []);
    if (wrong === undefined) continue;
    const among = one ? "" : ` (no such series among ${got.map((s) => showLabels(s.labels)).join(" ")})`;
    return `${showLabels(series.labels)} ${wrong}${among}`;
  }
  const [extra] = left.values();
  return extra ? `unexpected series ${showLabels(extra.labels)} ${[...extra.values].join(" ")}` : undefined;
}

function comparePoints(wanted: Point[], got: Point[]): string | undefined {
  for (let i = 0; i < Math.max(wanted.length, got.length); i++) {
    const [a, b] = [wanted[i] ?? "missing", got[i] ?? "missing"];
    if (!samePoint(a, b)) return `at ${i}: ${showPoint(b)} instead of ${showPoint(a)}`;
  }
  return undefined;
}

function samePoint(a: Point, b: Point): boolean {
  if (typeof a === "number" && typeof b === "number") return almostEqual(a, b);
  return typeof a === "object" && typeof b === "object" ? sameHistogram(a, b.histogram, almostEqual) : a === b;
}

const showPoint = (point: Point): string =>
  typeof point === "object" ? JSON.stringify(point.histogram) : String(point);

const native = (one: ResultSeries | undefined): Point | undefined => {
  const [first] = one?.histograms ?? [];
  return first && { histogram: first.histogram, hinted: false };
};

function compareVector(evaluation: Evaluation, got: ResultSeries[]): string | undefined {
  const wrong = compareSeries(evaluation.series, got, (one) => [native(one) ?? one.values[0] ?? "missing"]);
  if (wrong !== undefined || !has(evaluation, "ordered")) return wrong;
  const order = (list: { labels: readonly string[] }[]): string => list.map((one) => labelsKey(one.labels)).join("\n");
  return order(evaluation.series) === order(got)
    ? undefined
    : `in the wrong order: ${got.map((s) => showLabels(s.labels)).join(" ")}`;
}

function onGrid(one: ResultSeries, start_ms: number, end_ms: number, step_ms: number): Point[] {
  const at = new Map<number, Point>(Array.from(one.timestamps, (time, i) => [time, one.values[i] as number]));
  for (const { timestamp, histogram } of one.histograms ?? []) at.set(timestamp, { histogram, hinted: false });
  return Array.from(
    { length: Math.floor((end_ms - start_ms) / step_ms) + 1 },
    (_, i) => at.get(start_ms + i * step_ms) ?? "missing",
  );
}

function compareMatrix(evaluation: Evaluation, got: ResultSeries[]): string | undefined {
  const { start_ms, end_ms, step_ms } = evaluation;
  return compareSeries(evaluation.series, got, (one) => onGrid(one, start_ms, end_ms, step_ms));
}

/** `expect range vector from 10s to 1m step 10s`: an instant query that gives samples. */
function compareRange(evaluation: Evaluation, got: ResultSeries[]): string | undefined {
  const text = evaluation.expect.find((e) => e.kind === "range")?.text ?? "";
  const [, from = "", to = "", step = ""] = /from\s+(\S+)\s+to\s+(\S+)\s+step\s+(\S+)/.exec(text) ?? [];
  return compareSeries(evaluation.series, got, (one) => onGrid(one, time(from), time(to), time(step)));
}
