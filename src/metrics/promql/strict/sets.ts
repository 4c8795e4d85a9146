import type { BinaryExpr } from "../ast.ts";
import type { Frame } from "../frame.ts";
import { bySignature } from "./signatures.ts";
import { ABSENT, newRow, type Row } from "./values.ts";

/** and, or, unless: which values stay, decided step by step. */
export function matchSets(frame: Frame, expr: BinaryExpr, left: Row[], right: Row[]): Row[] {
  const lefts = bySignature(left, expr);
  const rights = bySignature(right, expr);
  if (expr.op === "or") return [...left, ...keepWhere(frame, rights, (key, i) => !isThere(lefts.get(key), i))];
  const wanted = expr.op === "and";
  return keepWhere(frame, lefts, (key, i) => isThere(rights.get(key), i) === wanted);
}

function isThere(rows: Row[] | undefined, i: number): boolean {
  return rows?.some((row) => row.present[i] !== ABSENT) ?? false;
}

function keepWhere(frame: Frame, groups: Map<string, Row[]>, keep: (key: string, i: number) => boolean): Row[] {
  const out: Row[] = [];
  for (const [key, rows] of groups) {
    const keeps = Uint8Array.from({ length: frame.points }, (_, i) => (keep(key, i) ? 1 : 0));
    for (const row of rows) {
      const copy = newRow(frame, row.labels, row.dropName);
      copy.values.set(row.values);
      for (let i = 0; i < frame.points; i++) copy.present[i] = keeps[i] === 1 ? (row.present[i] as number) : ABSENT;
      if (copy.present.some((p) => p !== ABSENT)) out.push(copy);
    }
  }
  return out;
}
