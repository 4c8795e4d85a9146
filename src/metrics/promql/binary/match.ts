import type { Labels } from "../../source.ts";
import type { BinaryExpr } from "../ast.ts";
import type { Row } from "../frame.ts";
import { dropLabels, dropName, groupByLabels, keepLabels, labelValue, matchedLabels, setLabel } from "../labels.ts";

/** Which series of the two sides belong together. */

/** The name never decides. */
export function byKey(rows: Row[], { group }: Pick<BinaryExpr, "group">): Map<string, Row[]> {
  return groupByLabels(rows, ({ labels }) => {
    const nameless = dropName(labels);
    return matchedLabels(group, nameless, nameless);
  });
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
