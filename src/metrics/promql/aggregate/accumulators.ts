/**
 * Aggregates that need no more than a column or two per group: each series is added as it is read and then
 * forgotten. NaN means "no value" and changes nothing.
 */
export interface Accumulator {
  add(values: Float64Array): void;
  finish(): Float64Array;
}

const NONE = Number.NaN;

/** Combines with what is there; the first value of a step is taken as it is. */
function folding(
  points: number,
  combine: (a: number, b: number) => number,
  first = (v: number): number => v,
): Accumulator {
  const out = new Float64Array(points).fill(NONE);
  return {
    add: (values) => {
      for (let i = 0; i < points; i++) {
        const value = values[i] as number;
        if (Number.isNaN(value)) continue;
        const so_far = out[i] as number;
        out[i] = Number.isNaN(so_far) ? first(value) : combine(so_far, value);
      }
    },
    finish: () => out,
  };
}

/** The one that matters most, written out so that the loop holds nothing but the addition. */
function summing(points: number): Accumulator {
  const out = new Float64Array(points).fill(NONE);
  let fresh = true;
  return {
    add: (values) => {
      if (fresh) {
        out.set(values.subarray(0, points));
        fresh = false;
        return;
      }
      for (let i = 0; i < points; i++) {
        const value = values[i] as number;
        if (Number.isNaN(value)) continue;
        const so_far = out[i] as number;
        out[i] = Number.isNaN(so_far) ? value : so_far + value;
      }
    },
    finish: () => out,
  };
}

/** A fold with the count beside it, put together at the end. */
function counted(points: number, inner: Accumulator, end: (total: number, count: number) => number): Accumulator {
  const counts = new Float64Array(points);
  return {
    add: (values) => {
      inner.add(values);
      for (let i = 0; i < points; i++) if (!Number.isNaN(values[i] as number)) counts[i] = (counts[i] as number) + 1;
    },
    finish: () => {
      const out = inner.finish();
      for (let i = 0; i < points; i++) out[i] = end(out[i] as number, counts[i] as number);
      return out;
    },
  };
}

/** Welford's variance, a column of averages and a column of squares. */
function spreading(points: number, end: (variance: number) => number): Accumulator {
  const counts = new Float64Array(points);
  const averages = new Float64Array(points);
  const squares = new Float64Array(points);
  let series = 0;
  return {
    add: (values) => {
      series++;
      for (let i = 0; i < points; i++) {
        const value = values[i] as number;
        if (Number.isNaN(value)) continue;
        const count = (counts[i] as number) + 1;
        const before = averages[i] as number;
        const after = before + (value - before) / count;
        counts[i] = count;
        averages[i] = after;
        squares[i] = (squares[i] as number) + (value - before) * (value - after);
      }
    },
    finish: () =>
      squares.map((q, i) => {
        const count = counts[i] as number;
        if (count === 0) return NONE;
        // One series alone does not spread, even when it is infinite.
        return series === 1 ? 0 : end(q / count);
      }),
  };
}

export const ACCUMULATORS: Readonly<Record<string, (points: number) => Accumulator>> = {
  avg: (points) => counted(points, summing(points), (sum, n) => (n === 0 ? NONE : sum / n)),
  count: (points) => counted(points, summing(points), (_, n) => (n === 0 ? NONE : n)),
  geomean: (points) =>
    counted(
      points,
      folding(points, (a, b) => a * b),
      (product, n) => (n === 0 ? NONE : n === 1 ? product : product ** (1 / n)),
    ),
  group: (points) =>
    folding(
      points,
      () => 1,
      () => 1,
    ),
  max: (points) => folding(points, Math.max),
  min: (points) => folding(points, Math.min),
  stddev: (points) => spreading(points, Math.sqrt),
  stdvar: (points) => spreading(points, (v) => v),
  sum: summing,
  sum2: (points) =>
    folding(
      points,
      (a, b) => a + b * b,
      (v) => v * v,
    ),
};
