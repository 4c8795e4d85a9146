import type { Labels } from "../../source.ts";
import type { AggregateExpr, Modifier } from "../ast.ts";
import type { Row } from "../frame.ts";
import { isEmpty } from "../frame.ts";
import { dropLabels, dropName, keepLabels, labelsKey, NO_LABELS } from "../labels.ts";

/** The labels of the group a series belongs to. */
export function groupLabels(labels: Labels, modifier: Modifier | undefined): Labels {
  if (!modifier) return NO_LABELS;
  if (modifier.op === "without") return dropLabels(dropName(labels), modifier.labels);
  return modifier.labels.length === 0 ? NO_LABELS : keepLabels(labels, modifier.labels);
}

export interface Group {
  labels: Labels;
  rows: Row[];
}

/** Series in groups, empty ones left out; `limit` bounds the groups and what comes later is skipped. */
export function groupRows(rows: Row[], expr: Pick<AggregateExpr, "modifier" | "limit">): Group[] {
  const groups = new Map<string, Group>();
  for (const row of rows) {
    if (isEmpty(row)) continue;
    const labels = groupLabels(row.labels, expr.modifier);
    const key = labelsKey(labels);
    const group = groups.get(key);
    if (group) group.rows.push(row);
    else if (!full(groups.size, expr.limit)) groups.set(key, { labels, rows: [row] });
  }
  return [...groups.values()];
}

export function full(size: number, limit: number | undefined): boolean {
  return limit !== undefined && limit > 0 && size >= limit;
}
