import type { Labels } from "../../source.ts";
import type { BinaryExpr } from "../ast.ts";
import type { Row } from "../frame.ts";
import { dropLabels, dropName, keepLabels, labelsKey, labelValue, setLabel } from "../labels.ts";

/** Which series of the two sides belong together. */

/** The labels that decide; the name never does. */
function matchKey(labels: Labels, expr: Pick<BinaryExpr, "group">): string {
  const { group } = expr;
  if (group?.op === "on") return labelsKey(keepLabels(dropName(labels), group.labels));
  const rest = dropName(labels);
  return labelsKey(group ? dropLabels(rest, group.labels) : rest);
}

export function byKey(rows: Row[], expr: BinaryExpr): Map<string, Row[]> {
  const groups = new Map<string, Row[]>();
  for (const row of rows) {
    const key = matchKey(row.labels, expr);
    const group = groups.get(key);
    if (group) group.push(row);
    else groups.set(key, [row]);
  }
  return groups;
}

export function dropsName(expr: BinaryExpr, compares: boolean): boolean {
  return !(compares && !expr.bool) && !expr.keepMetricNames;
}

/** The labels of a one-to-one result. */
export function resultLabels(labels: Labels, expr: BinaryExpr, compares: boolean): Labels {
  const named = dropsName(expr, compares) ? dropName(labels) : labels;
  const { group } = expr;
  if (!group) return named;
  if (group.op === "ignoring") return dropLabels(named, group.labels);
  return keepLabels(named, expr.keepMetricNames ? [...group.labels, "__name__"] : group.labels);
}

/** The labels of the side with many series, with those that group_left or group_right copies from the other. */
export function joinedLabels(many: Labels, one: Labels, expr: BinaryExpr, compares: boolean): Labels {
  let out = dropsName(expr, compares) ? dropName(many) : many;
  const prefix = expr.prefix ?? "";
  const skip = expr.group?.op === "on" ? expr.group.labels : [];
  const wanted = expr.join?.labels ?? [];
  const copied = wanted[0] === "*" ? one.filter((_, i) => i % 2 === 0 && one[i] !== "__name__") : wanted;
  for (const name of copied) {
    if (skip.includes(name)) continue;
    const value = labelValue(one, name);
    if (value !== "" || wanted[0] !== "*") out = setLabel(out, prefix + name, value);
  }
  return out;
}
