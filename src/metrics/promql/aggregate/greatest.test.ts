import assert from "node:assert/strict";
import { suite, test } from "node:test";
import { random, runs, seed } from "../../../../test/support.ts";
import type { Row } from "../frame.ts";
import { keepGreatest } from "./greatest.ts";

const NONE = Number.NaN;
const rowsOf = (...lists: number[][]): Row[] =>
  lists.map((values) => ({ labels: [], values: Float64Array.from(values) }));
const shown = (rows: readonly Row[]): number[][] => rows.map(({ values }) => [...values]);

/** The same by sorting each step. */
function bySorting(rows: readonly Row[], k: number, sign: 1 | -1): Row[] {
  const points = rows[0]?.values.length ?? 0;
  for (let step = 0; step < points; step++) {
    const at = ({ values }: Row): number => values[step] as number;
    const ranked = rows.filter((row) => !Number.isNaN(at(row))).sort((a, b) => sign * at(a) - sign * at(b));
    for (const { values } of ranked.slice(0, Math.max(0, ranked.length - k))) values[step] = NONE;
  }
  return rows.filter(({ values }) => values.some((value) => !Number.isNaN(value)));
}

suite("topk at each step", () => {
  test("of equal values those of later rows win, and missing values do not count", () => {
    const rows = rowsOf([3, 1, NONE], [2, 1, NONE], [1, 1, -Infinity]);
    assert.deepEqual(shown(keepGreatest(rows, 2, 1)), [
      [3, NONE, NONE],
      [2, 1, NONE],
      [NONE, 1, -Infinity],
    ]);
    assert.deepEqual(shown(keepGreatest(rowsOf([3, NONE], [2, 5]), 1, -1)), [[2, 5]]);
    assert.deepEqual(keepGreatest([], 3, 1), []);
  });

  test("the result equals sorting every step", (t) => {
    const roll = random(seed(t));
    const pick = (below: number): number => Math.floor(roll() * below);
    for (let run = 0; run < runs(300, 20_000); run++) {
      const points = 1 + pick(6);
      const values = (): number[] => Array.from({ length: points }, () => (pick(5) === 0 ? NONE : pick(9) - 4));
      const lists = Array.from({ length: pick(12) }, values);
      const [k, sign] = [1 + pick(6), pick(2) === 0 ? 1 : -1] as const;
      const expected = shown(bySorting(rowsOf(...lists), k, sign));
      // A removed value and a zero with a sign are printed alike.
      assert.deepEqual(
        shown(keepGreatest(rowsOf(...lists), k, sign))
          .flat()
          .map((v) => v + 0),
        expected.flat().map((v) => v + 0),
      );
    }
  });
});
