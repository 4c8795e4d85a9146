import type { BinaryExpr } from "../ast.ts";
import { dropName, groupByLabels, matchedLabels } from "../labels.ts";
import { finalLabels, type Row } from "./values.ts";

/** The labels that decide which series belong together. */
export const matchLabels = (row: Row, { group }: BinaryExpr): Row["labels"] =>
  matchedLabels(group, finalLabels(row), dropName(row.labels));

export const bySignature = (rows: Row[], expr: BinaryExpr): Map<string, Row[]> =>
  groupByLabels(rows, (row) => matchLabels(row, expr));
