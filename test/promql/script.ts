/**
 * The load / eval language of query tests: `load 5m` gives series, `eval instant at 10m expr` and `eval range from
 * 0 to 1h step 5m expr` say what comes out. Blank lines and comments end a block.
 */
import { messageOf } from "#core/assert.ts";
import { durationMs } from "#metrics/promql/durations.ts";
import { nextToken } from "#metrics/promql/lexer.ts";
import type { Labels } from "#metrics/source.ts";
import { type HistogramPoint, histogramPoints } from "./histogram-text.ts";

/** A number, no sample, the end of a series, or a native histogram. */
export type Point = number | "missing" | "stale" | HistogramPoint;

export interface LoadedSeries {
  labels: Labels;
  points: Point[];
}

const KINDS = ["ordered", "fail", "warn", "no_warn", "info", "no_info", "string", "range"] as const;

interface Expectation {
  kind: (typeof KINDS)[number];
  message?: string;
  regex?: string;
  /** The text of `expect string`, or what follows `expect range vector`. */
  text?: string;
}

export interface Evaluation {
  type: "eval";
  line: number;
  expr: string;
  /** All in milliseconds; an instant has the same start and end. */
  instant: boolean;
  start_ms: number;
  end_ms: number;
  step_ms: number;
  expect: Expectation[];
  scalar: number | undefined;
  series: LoadedSeries[];
}

/** A command of a later version of the language, which the runner reports instead of stopping. */
interface Unreadable {
  type: "unreadable";
  line: number;
  text: string;
  reason: string;
}

type Command =
  | { type: "clear" }
  | Unreadable
  | { type: "load"; step_ms: number; series: LoadedSeries[]; nhcb: boolean }
  | Evaluation;

export function parseScript(text: string): Command[] {
  const lines = text.split("\n").map((line) => (line.trim().startsWith("#") ? "" : line.trim()));
  const commands: Command[] = [];
  for (let i = 0; i < lines.length; i++) {
    const head = lines[i] ?? "";
    if (head === "") continue;
    const body: string[] = [];
    const line = i + 1;
    if (/^(load|eval)/i.test(head)) while ((lines[i + 1] ?? "") !== "") body.push(lines[++i] ?? "");
    commands.push(readCommand(head, body, line));
  }
  return commands;
}

function readCommand(head: string, body: string[], line: number): Command {
  try {
    return parseCommand(head, body, line);
  } catch (error) {
    return { type: "unreadable", line, text: head, reason: messageOf(error) };
  }
}

function parseCommand(head: string, body: string[], line: number): Command {
  if (/^clear$/i.test(head)) return { type: "clear" };
  const load = /^load\w*\s+(\S+)$/i.exec(head);
  if (load) {
    const series = body.filter((text) => !/@st\s/.test(text)).flatMap(parseLoaded);
    return { type: "load", step_ms: time(load[1]), series, nhcb: /^load_with_nhcb/i.test(head) };
  }
  const base = { type: "eval" as const, line, ...parseExpectations(head, body) };
  const at = /^eval\w*\s+instant\s+at\s+(\S+)\s+(.+)$/is.exec(head);
  if (at) {
    const moment = time(at[1]);
    return { ...base, instant: true, start_ms: moment, end_ms: moment, step_ms: 60_000, expr: at[2] ?? "" };
  }
  const range = /^eval\w*\s+range\s+from\s+(\S+)\s+to\s+(\S+)\s+step\s+(\S+)\s+(.+)$/is.exec(head);
  if (!range) throw new Error(`line ${line}: cannot read ${JSON.stringify(head)}`);
  const [, start, end, step, expr = ""] = range;
  return { ...base, instant: false, start_ms: time(start), end_ms: time(end), step_ms: time(step), expr };
}

export function time(text = ""): number {
  const value = durationMs(text, 0);
  if (value === undefined) throw new Error(`${JSON.stringify(text)} is no duration`);
  return value;
}

function parseExpectations(head: string, body: string[]): Pick<Evaluation, "expect" | "scalar" | "series"> {
  const expect: Expectation[] = [];
  const old = /^eval_(fail|warn|info|ordered)\b/i.exec(head)?.[1]?.toLowerCase();
  if (old) expect.push({ kind: old as Expectation["kind"] });
  let scalar: number | undefined;
  const series: LoadedSeries[] = [];
  for (const text of body) {
    const said = /^expect\s+(\w+)\s*(.*)$/i.exec(text);
    if (said) expect.push(parseExpectation(said[1]?.toLowerCase() ?? "", said[2] ?? ""));
    else if (/^[+-]?(inf|nan|[\d.]+(e[+-]?\d+)?)$/i.test(text)) scalar = number(text);
    else series.push(parseSeries(text));
  }
  return { expect, scalar, series };
}

function parseExpectation(kind: string, rest: string): Expectation {
  const how = /^(msg|regex):\s*(.*)$/.exec(rest);
  const known = KINDS.find((one) => one === kind);
  if (!known) throw new Error(`${JSON.stringify(kind)} is nothing that can be expected`);
  if (how) return how[1] === "msg" ? { kind: known, message: how[2] ?? "" } : { kind: known, regex: how[2] ?? "" };
  if (kind === "string") return { kind: known, text: nextToken(rest, 0, "promql").text };
  return rest === "" ? { kind: known } : { kind: known, text: rest };
}

/** A line of `load` that cannot be read leaves its series out; what is asked about it will fail and say so. */
function parseLoaded(text: string): LoadedSeries[] {
  try {
    return [parseSeries(text)];
  } catch {
    return [];
  }
}

/** `name{a="b"} 1 2 3`; the name may be absent, quoted, or inside the braces. */
function parseSeries(text: string): LoadedSeries {
  const name = /^[a-zA-Z_:][\w:]*/.exec(text)?.[0];
  const pairs: [string, string][] = name ? [["__name__", name]] : [];
  let at = name?.length ?? 0;
  if (/^\s*\{(?!\{)/.test(text.slice(at))) {
    const inside = parseLabels(text, text.indexOf("{", at) + 1);
    pairs.push(...inside.pairs);
    at = inside.end;
  }
  const labels = pairs
    .filter(([, value]) => value !== "")
    .sort(([a], [b]) => (a < b ? -1 : 1))
    .flat();
  return { labels, points: parsePoints(text.slice(at)) };
}

/** Labels up to the closing brace; a lone string is the name. */
function parseLabels(text: string, from: number): { pairs: [string, string][]; end: number } {
  const pairs: [string, string][] = [];
  for (let at = from; ; ) {
    const key = nextToken(text, at, "metricsql");
    at = key.end;
    if (key.type === "end") throw new Error("the labels have no end");
    if (key.type === "sign" && key.text === "}") return { pairs, end: at };
    if (key.type === "sign") continue;
    const sign = nextToken(text, at, "promql");
    const value = sign.text === "=" ? nextToken(text, sign.end, "promql") : undefined;
    pairs.push(value ? [key.text, value.text] : ["__name__", key.text]);
    if (value) at = value.end;
  }
}

const ITEM = /\{\{[^}]*\}\}(?:[+-]\{\{[^}]*\}\})?(?:x\d+)?|\S+/g;

function parsePoints(text: string): Point[] {
  return [...text.matchAll(ITEM)].flatMap(([item]) => parseItem(item));
}

function parseItem(item: string): Point[] {
  const times = /^(.*?)x(\d+)$/.exec(item);
  const [body, count] = times ? [times[1] ?? "", Number(times[2])] : [item, undefined];
  if (body === "_") return Array.from({ length: count ?? 1 }, () => "missing");
  const repeat = (count ?? 0) + 1;
  if (body.startsWith("{{")) return histogramPoints(body, repeat);
  if (body === "stale") return Array.from({ length: repeat }, () => "stale");
  const ramp = count === undefined ? null : /^([+-]?(?:inf|nan|(?:[\d.]+(?:e[+-]?\d+)?)))([+-].+)$/i.exec(body);
  const start = number(ramp?.[1] ?? body);
  const slope = ramp ? number(ramp[2] ?? "0") : 0;
  return Array.from({ length: repeat }, (_, i) => start + (slope === 0 ? 0 : slope * i));
}

function number(text: string): number {
  const lower = text.toLowerCase();
  if (lower.endsWith("inf")) return lower.startsWith("-") ? Number.NEGATIVE_INFINITY : Number.POSITIVE_INFINITY;
  if (lower.endsWith("nan")) return Number.NaN;
  const value = Number(text);
  if (Number.isNaN(value)) throw new Error(`${JSON.stringify(text)} is no number`);
  return value;
}
