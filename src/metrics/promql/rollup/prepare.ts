import type { Columns } from "../../source.ts";

/** What is done to the samples of a series before a rollup function sees them. All of it in place. */

/** Without staleness markers and other NaN. */
export function dropNaN(samples: Columns): void {
  const { values, timestamps, length } = samples;
  let kept = 0;
  while (kept < length && !Number.isNaN(values[kept] as number)) kept++;
  for (let i = kept + 1; i < length; i++) {
    const value = values[i] as number;
    if (Number.isNaN(value)) continue;
    values[kept] = value;
    timestamps[kept] = timestamps[i] as number;
    kept++;
  }
  samples.length = kept;
}

/**
 * A counter that fell was restarted: what it had is added to all that follows. A fall by less than an eighth is
 * taken for a partial restart, as shared counters show it, and only the fall is added.
 */
export function removeResets(samples: Columns): void {
  const { values, length } = samples;
  if (length === 0) return;
  let correction = 0;
  let before = values[0] as number;
  for (let i = 1; i < length; i++) {
    const value = values[i] as number;
    if (value < before) correction += (before - value) * 8 < before ? before - value : before;
    before = value;
    if (correction === 0) continue;
    // Adding can round down; a counter without resets never falls.
    values[i] = Math.max(value + correction, values[i - 1] as number);
  }
}

/** Each value becomes the difference to the next; the last one repeats. */
export function toDeltas(samples: Columns): void {
  const { values, length } = samples;
  if (length === 0) return;
  for (let i = 0; i + 1 < length; i++) values[i] = (values[i + 1] as number) - (values[i] as number);
  values[length - 1] = length > 1 ? (values[length - 2] as number) : 0;
}

/** The same per second. */
export function toDerivatives(samples: Columns): void {
  const { values, timestamps, length } = samples;
  if (length === 0) return;
  for (let i = 0; i + 1 < length; i++) {
    const elapsed = ((timestamps[i + 1] as number) - (timestamps[i] as number)) / 1000;
    values[i] = ((values[i + 1] as number) - (values[i] as number)) / elapsed;
  }
  values[length - 1] = length > 1 ? (values[length - 2] as number) : 0;
}

/** Each value becomes the seconds since the sample before; the first one repeats the second. */
export function toIntervals(samples: Columns): void {
  const { values, timestamps, length } = samples;
  for (let i = 1; i < length; i++) values[i] = ((timestamps[i] as number) - (timestamps[i - 1] as number)) / 1000;
  if (length > 0) values[0] = length > 1 ? (values[1] as number) : Number.NaN;
}
