import type { BinaryExpr } from "../ast.ts";
import { dropLabels, dropName, keepLabels, labelsKey } from "../labels.ts";
import { finalLabels, type Row } from "./values.ts";

/** The labels that decide which series belong together. */
export function matchLabels(row: Row, expr: BinaryExpr): Row["labels"] {
  const { group } = expr;
  if (group?.op === "on") return keepLabels(finalLabels(row), group.labels);
  return dropLabels(dropName(row.labels), group?.labels ?? []);
}

export function bySignature(rows: Row[], expr: BinaryExpr): Map<string, Row[]> {
  const groups = new Map<string, Row[]>();
  for (const row of rows) {
    const key = labelsKey(matchLabels(row, expr));
    const group = groups.get(key);
    if (group) group.push(row);
    else groups.set(key, [row]);
  }
  return groups;
}
