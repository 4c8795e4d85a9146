import type { Row } from "../frame.ts";

/** With more places at each step, finding the right one would cost more than sorting all rows. */
export const GREATEST_MOST = 64;

/** The greatest values of each step, `k` places for each, the least first. */
interface Places {
  k: number;
  values: Float64Array;
  /** Whose value it is. */
  owners: Uint32Array;
  /** How many places of a step are taken. */
  taken: Uint8Array;
}

/**
 * Leaves at each step only the `k` greatest values of all rows, or the least with `sign` -1; of equal ones, those of
 * later rows. Answers the rows that have some left. One row after the other, so that memory is read in its order.
 */
export function keepGreatest(rows: readonly Row[], k: number, sign: 1 | -1): Row[] {
  const points = rows[0]?.values.length ?? 0;
  const places: Places = {
    k,
    values: new Float64Array(k * points),
    owners: new Uint32Array(k * points),
    taken: new Uint8Array(points),
  };
  for (const [owner, { values }] of rows.entries()) takeRow(places, values, owner, sign);
  const remaining = new Uint8Array(rows.length);
  eachPlace(places, (_, at) => {
    remaining[places.owners[at] as number] = 1;
  });
  const some = rows.filter((_, owner) => remaining[owner] === 1);
  for (const { values } of some) values.fill(Number.NaN);
  eachPlace(places, (step, at) => {
    (rows[places.owners[at] as number] as Row).values[step] = sign * (places.values[at] as number);
  });
  return some;
}

function takeRow(places: Places, row: Float64Array, owner: number, sign: number): void {
  const { k, values, taken } = places;
  for (let step = 0; step < row.length; step++) {
    const value = sign * (row[step] as number);
    // Where nothing was measured both are false.
    if (taken[step] === k ? value >= (values[step * k] as number) : !Number.isNaN(value))
      insert(places, step, value, owner);
  }
}

function insert({ k, values, owners, taken }: Places, step: number, value: number, owner: number): void {
  const start = step * k;
  const count = taken[step] as number;
  let at = start + count;
  if (count < k) {
    taken[step] = count + 1;
    for (; at > start && (values[at - 1] as number) > value; at--) move(at - 1, at);
  } else {
    // The least goes, and what is no greater than the new one moves down.
    at = start;
    for (; at + 1 < start + k && (values[at + 1] as number) <= value; at++) move(at + 1, at);
  }
  values[at] = value;
  owners[at] = owner;

  function move(from: number, to: number): void {
    values[to] = values[from] as number;
    owners[to] = owners[from] as number;
  }
}

function eachPlace({ k, taken }: Places, work: (step: number, at: number) => void): void {
  for (let step = 0; step < taken.length; step++)
    for (let at = step * k; at < step * k + (taken[step] as number); at++) work(step, at);
}
