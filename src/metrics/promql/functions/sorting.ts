import type { Row } from "../frame.ts";
import { labelValue } from "../labels.ts";
import { atLeast, type Call, type Definition, exactly, rowsOf, stringsOf, wholeOf } from "./apply.ts";

/** Functions that order series. */

/** A row without a value comes first in either direction, as in VictoriaMetrics. */
function rank(a: number, b: number, sign: 1 | -1): number {
  if (Number.isNaN(a) || Number.isNaN(b)) return Number(Number.isNaN(b)) - Number(Number.isNaN(a));
  return sign * (a - b);
}

/** By the newest step at which two rows differ. */
function byValue(descending: boolean): Definition {
  const sign = descending ? -1 : 1;
  return exactly(1, (call) =>
    rowsOf(call, 0).sort((a, b) => {
      for (let i = a.values.length - 1; i >= 0; i--) {
        const order = rank(a.values[i] as number, b.values[i] as number, sign);
        if (order !== 0) return order;
      }
      return 0;
    }),
  );
}

/** The first label that differs decides. */
function byLabels(compare: (a: string, b: string) => number, descending: boolean): Definition {
  return atLeast(1, (call: Call): Row[] => {
    const names = stringsOf(call, 1);
    const sign = descending ? -1 : 1;
    return rowsOf(call, 0).sort((a, b) => {
      for (const name of names) {
        const order = compare(labelValue(a.labels, name), labelValue(b.labels, name));
        if (order !== 0) return sign * order;
      }
      return 0;
    });
  });
}

const plain = (a: string, b: string): number => (a === b ? 0 : a < b ? -1 : 1);

/** Runs of digits count as numbers: `disk9` before `disk10`. */
function natural(a: string, b: string): number {
  const left = a.match(/\d+|\D+/g) ?? [];
  const right = b.match(/\d+|\D+/g) ?? [];
  for (let i = 0; i < Math.min(left.length, right.length); i++) {
    const [x = "", y = ""] = [left[i], right[i]];
    const numeric = /^\d/.test(x) && /^\d/.test(y);
    const order = numeric ? Number(x) - Number(y) : plain(x, y);
    if (order !== 0) return order;
  }
  return left.length - right.length;
}

export const SORTING: Record<string, Definition> = {
  limit_offset: exactly(3, (call) => {
    const offset = Math.max(0, wholeOf(call, 1));
    const rows = rowsOf(call, 2).filter((row) => row.values.some((v) => !Number.isNaN(v)));
    return rows.slice(offset, offset + Math.max(0, wholeOf(call, 0)));
  }),
  sort: byValue(false),
  sort_desc: byValue(true),
  sort_by_label: byLabels(plain, false),
  sort_by_label_desc: byLabels(plain, true),
  sort_by_label_numeric: byLabels(natural, false),
  sort_by_label_numeric_desc: byLabels(natural, true),
};
