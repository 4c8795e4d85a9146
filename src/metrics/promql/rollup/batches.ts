import type { Columns } from "../../source.ts";
import type { Steps } from "./steps.ts";

/**
 * The two rollups behind most dashboards, over all steps at once: the same numbers as their kernels give, without a
 * call and a dozen stores per step.
 */

/** Fills `into`; `length` is the window and `room` how far before it a previous sample may lie. */
export type Batch = (samples: Columns, steps: Steps, length: number, room: number, into: Float64Array) => void;

/** The newest sample of each window. */
export const lastOfEach: Batch = ({ timestamps, values, length: count }, steps, length, _room, into) => {
  let to = 0;
  for (let step = 0; step < steps.points; step++) {
    const now = steps.start_ms + step * steps.step_ms;
    while (to < count && (timestamps[to] as number) <= now) to++;
    const seen = to > 0 && (timestamps[to - 1] as number) > now - length;
    into[step] = seen ? (values[to - 1] as number) : Number.NaN;
  }
};

/** The slope from the sample before each window, or from its first, to its last. */
export const slopeOfEach: Batch = ({ timestamps, values, length: count }, steps, length, room, into) => {
  let from = 0;
  let to = 0;
  for (let step = 0; step < steps.points; step++) {
    const now = steps.start_ms + step * steps.step_ms;
    const start = now - length;
    while (from < count && (timestamps[from] as number) <= start) from++;
    if (to < from) to = from;
    while (to < count && (timestamps[to] as number) <= now) to++;
    const hasPrevious = from > 0 && from < count && (timestamps[from - 1] as number) > start - room;
    into[step] = slope(timestamps, values, hasPrevious ? from - 1 : from, to - 1, hasPrevious ? 0 : Number.NaN);
  }
};

/** Per second between two samples, or what is said when there are no two. */
function slope(times: Float64Array, values: Float64Array, first: number, last: number, otherwise: number): number {
  if (last <= first) return otherwise;
  const elapsed = ((times[last] as number) - (times[first] as number)) / 1000;
  return ((values[last] as number) - (values[first] as number)) / elapsed;
}
