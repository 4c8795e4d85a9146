import type { BinaryExpr } from "../ast.ts";
import { isEmpty, isScalar, type Row } from "../frame.ts";
import { compareLabels, labelsKey } from "../labels.ts";
import { byKey } from "./match.ts";

/** and, or, unless, if, ifnot, default: which values stay, step by step. */

type Groups = Map<string, Row[]>;
type Choice = (left: Groups, right: Groups) => Row[];

const hasValue = (rows: Row[], i: number): boolean => rows.some((row) => !Number.isNaN(row.values[i] as number));

/** Left values where the right side has one, or where it has none. */
function filterLeft(left: Row[], right: Row[], wanted: boolean): Row[] {
  for (const { values } of left) {
    for (let i = 0; i < values.length; i++) if (hasValue(right, i) !== wanted) values[i] = Number.NaN;
  }
  return left.filter((row) => !isEmpty(row));
}

/** A lone number on the right goes with every group; and, or and unless do not do that. */
function orNumber(groups: Groups, key: string): Row[] | undefined {
  const exact = groups.get(key);
  if (exact || groups.size !== 1) return exact;
  const [only = []] = groups.values();
  return isScalar(only) ? only : undefined;
}

function keepWhere(find: (groups: Groups, key: string) => Row[] | undefined): Choice {
  return (left, right) =>
    [...left].flatMap(([key, rows]) => {
      const others = find(right, key);
      return others ? filterLeft(rows, others, true) : [];
    });
}

function dropWhere(find: (groups: Groups, key: string) => Row[] | undefined): Choice {
  return (left, right) =>
    [...left].flatMap(([key, rows]) => {
      const others = find(right, key);
      return others ? filterLeft(rows, others, false) : rows;
    });
}

function fillGaps(left: Row[], right: Row[]): void {
  for (const { values } of left) {
    for (let i = 0; i < values.length; i++) {
      if (!Number.isNaN(values[i] as number)) continue;
      const other = right.find((row) => !Number.isNaN(row.values[i] as number));
      if (other) values[i] = other.values[i] as number;
    }
  }
}

/** A left side without any series is replaced as a whole. */
const orDefault: Choice = (left, right) => {
  if (left.size === 0) return [...right.values()].flat();
  for (const [key, rows] of left) fillGaps(rows, orNumber(right, key) ?? []);
  return [...left.values()].flat();
};

const byName = (a: Row, b: Row): number => compareLabels(a.labels, b.labels);

/** Left series, then right values at steps where no left series of the group has one. */
const or: Choice = (left, right) => {
  const lefts = [...left.values()].flat();
  const rights = [...right].flatMap(([key, rows]) => {
    const others = left.get(key) ?? [];
    const remaining = filterLeft(rows, others, false);
    return remaining.filter((row) => {
      const same = others.find((other) => labelsKey(other.labels) === labelsKey(row.labels));
      if (same) fillGaps([same], [row]);
      return !same;
    });
  });
  return [...lefts.sort(byName), ...rights.sort(byName)];
};

const exactly = (groups: Groups, key: string): Row[] | undefined => groups.get(key);

const CHOICES: Record<string, Choice> = {
  and: keepWhere(exactly),
  default: orDefault,
  if: keepWhere(orNumber),
  ifnot: dropWhere(orNumber),
  or,
  unless: dropWhere(exactly),
};

export function evaluateChoice(expr: BinaryExpr, left: Row[], right: Row[]): Row[] {
  return CHOICES[expr.op]?.(byKey(left, expr), byKey(right, expr)) ?? [];
}
