import { copyBits } from "../../nan-bits.ts";
import { compileRegex } from "../../regex.ts";
import type { Labels, Matcher } from "../../source.ts";
import { type CallExpr, children, type Expr, NAME, type RollupExpr } from "../ast.ts";
import { executionError } from "../errors.ts";
import type { Frame } from "../frame.ts";
import { labelsKey, labelValue, setLabel } from "../labels.ts";
import { type Evaluate, evaluateSelector } from "./selectors.ts";
import { ABSENT, HISTOGRAM, newRow, type Row } from "./values.ts";

/** `info(v, {matchers})`: adds the labels of info series, such as `target_info`, to the series of the same target. */

/** The labels that identify a series' target. */
const IDENTIFYING = ["instance", "job"];
const DEFAULT_NAME: Matcher = { name: NAME, op: "=", value: "target_info" };

interface Wanted {
  /** What the names of info series match. */
  names: Matcher[];
  /** The labels that are added, all when there are none. */
  data: Matcher[];
}

export function addInfo(frame: Frame, call: CallExpr, evaluate: Evaluate): Row[] {
  const [arg, selector] = call.args;
  const value = arg && evaluate(frame, arg);
  if (!arg || value?.type !== "vector") throw executionError("info() needs an instant vector");
  const filters = selector?.kind === "selector" ? (selector.filters[0] ?? []) : [DEFAULT_NAME];
  const wanted = { names: namesOf(filters), data: filters.filter((matcher) => matcher.name !== NAME) };
  // Info series themselves are left as they are.
  const [left, enriched] = [true, false].map((isInfo) =>
    value.rows.filter((row) => isInfoSeries(row, wanted.names) === isInfo),
  ) as [Row[], Row[]];
  const infos = infoGroups(frame, enriched, wanted, firstSelector(arg));
  const results = new Map<string, Row>();
  for (const row of enriched) enrich(frame, row, wanted.data, infos, results);
  return [...left, ...results.values()];
}

/** Names that are only ruled out leave the other info metrics. */
function namesOf(filters: Matcher[]): Matcher[] {
  const names = filters.filter((matcher) => matcher.name === NAME);
  const excludes = names.length > 0 && names.every(({ op }) => op.startsWith("!"));
  return excludes ? [...names, { name: NAME, op: "=~", value: ".+_info" }] : names;
}

function isInfoSeries(row: Row, names: Matcher[]): boolean {
  return names.length > 0 && names.every((matcher) => matches(matcher, labelValue(row.labels, NAME)));
}

function matches({ op, value }: Matcher, text: string): boolean {
  const found = op.endsWith("~") ? compileRegex(value)(text) : value === text;
  return found === !op.startsWith("!");
}

/** Info series are looked at where the first selector of the argument looks. */
function firstSelector(expr: Expr): Pick<RollupExpr, "offset" | "moment"> {
  if (expr.kind === "rollup" && expr.arg.kind === "selector") return expr;
  const [first] = children(expr).filter((child) => child.kind !== "number" && child.kind !== "string");
  return first ? firstSelector(first) : {};
}

/** Series of one info metric and one target: those that follow each other in time, in most cases one. */
function infoGroups(
  frame: Frame,
  rows: Row[],
  { names, data }: Wanted,
  at: Pick<RollupExpr, "offset" | "moment">,
): Map<string, Row[]> {
  const targets = IDENTIFYING.flatMap((name): Matcher[] => {
    const values = new Set(rows.map((row) => labelValue(row.labels, name)).filter((value) => value !== ""));
    const pattern = [...values].map((value) => value.replace(/[\\.+*?()|[\]{}^$]/g, "\\$&")).join("|");
    return values.size === 0 ? [] : [{ name, op: "=~", value: pattern }];
  });
  if (targets.length === 0) return new Map();
  const filters = [[...(names.length > 0 ? names : [DEFAULT_NAME]), ...targets, ...data]];
  // The values are times: of two that follow each other the newer one holds.
  const found = evaluateSelector(frame, { kind: "selector", at: 0, filters }, at, true);
  if (found.some((row) => row.present.includes(HISTOGRAM))) throw executionError("info sample should be float");
  return Map.groupBy(found, (row) => targetKey(row.labels));
}

/** The same for all series of a target. */
function targetKey(labels: Labels): string {
  return labelsKey(IDENTIFYING.map((name) => labelValue(labels, name)));
}

function enrich(frame: Frame, row: Row, data: Matcher[], infos: Map<string, Row[]>, results: Map<string, Row>): void {
  const byMetric = [...Map.groupBy(infos.get(targetKey(row.labels)) ?? [], (info) => labelValue(info.labels, NAME))];
  const needsInfo = data.some((matcher) => !matches(matcher, ""));
  const known = new Map<string, Labels>();
  for (let i = 0; i < frame.points; i++) {
    if (row.present[i] === ABSENT) continue;
    const picked = byMetric.map(([, same]) => newest(same, i)).filter((info) => info !== undefined);
    if (picked.length === 0 && needsInfo) continue;
    const key = picked.map((info) => labelsKey(info.labels)).join("\n");
    const labels = known.get(key) ?? addLabels(row.labels, picked, data);
    known.set(key, labels);
    put(frame, results, row, labels, i);
  }
}

function newest(rows: Row[], i: number): Row | undefined {
  let best: Row | undefined;
  for (const row of rows) {
    if (row.present[i] === ABSENT) continue;
    if (best?.values[i] === row.values[i]) throw executionError("found duplicate series for info metric");
    if (!best || (row.values[i] as number) > (best.values[i] as number)) best = row;
  }
  return best;
}

/** What the series has itself stays; two info metrics must not contradict each other. */
function addLabels(base: Labels, infos: Row[], data: Matcher[]): Labels {
  const wanted = new Set(data.map(({ name }) => name));
  const added = new Map<string, string>();
  for (const { labels } of infos) {
    for (let i = 0; i < labels.length; i += 2) {
      const [name, value] = [labels[i] as string, labels[i + 1] as string];
      if (name === NAME || (wanted.size > 0 && !wanted.has(name)) || labelValue(base, name) !== "") continue;
      if ((added.get(name) ?? value) !== value) throw executionError(`conflicting label: ${name}`);
      added.set(name, value);
    }
  }
  return [...added].reduce((labels, [name, value]) => setLabel(labels, name, value), base);
}

function put(frame: Frame, results: Map<string, Row>, row: Row, labels: Labels, i: number): void {
  const key = `${row.dropName ? "-" : "+"}${labelsKey(labels)}`;
  const out = results.get(key) ?? newRow(frame, labels, row.dropName);
  results.set(key, out);
  if (out.present[i] !== ABSENT) throw executionError("vector cannot contain metrics with the same labelset");
  out.present[i] = row.present[i] as number;
  copyBits(row.values, i, out.values, i);
}
