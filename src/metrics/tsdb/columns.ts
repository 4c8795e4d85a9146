import type { Columns } from "../source.ts";
import { growColumns, newColumns } from "./chunk/chunk.ts";

/** Work on columns of samples; values are moved by their bits, so that every NaN keeps its payload. */

const bitsOf = (values: Float64Array): Uint32Array =>
  new Uint32Array(values.buffer, values.byteOffset, values.length * 2);

export function pushSample(columns: Columns, time: number, low: number, high: number): void {
  growColumns(columns, columns.length + 1);
  columns.unsure = true;
  const bits = bitsOf(columns.values);
  columns.timestamps[columns.length] = time;
  bits[2 * columns.length] = low;
  bits[2 * columns.length + 1] = high;
  columns.length++;
}

export function pushColumns(into: Columns, from: Columns): void {
  growColumns(into, into.length + from.length);
  into.unsure = true;
  into.timestamps.set(from.timestamps.subarray(0, from.length), into.length);
  bitsOf(into.values).set(bitsOf(from.values).subarray(0, 2 * from.length), 2 * into.length);
  into.length += from.length;
}

/** Keeps what lies in [start, end] of the samples from index `from` on, which are in order. */
export function clip(columns: Columns, from: number, start_ms: number, end_ms: number): void {
  const { timestamps } = columns;
  let first = from;
  let end = columns.length;
  while (first < end && (timestamps[first] as number) < start_ms) first++;
  while (end > first && (timestamps[end - 1] as number) > end_ms) end--;
  if (first > from) {
    timestamps.copyWithin(from, first, end);
    bitsOf(columns.values).copyWithin(2 * from, 2 * first, 2 * end);
  }
  columns.length = from + end - first;
}

/** Sorts by time; of two samples with the same time the later write wins. */
export function settle(columns: Columns): void {
  if (!columns.unsure) return;
  columns.unsure = false;
  const { timestamps, length } = columns;
  let ordered = true;
  for (let i = 1; i < length && ordered; i++) ordered = (timestamps[i] as number) > (timestamps[i - 1] as number);
  if (ordered) return;
  const order = Uint32Array.from({ length }, (_, i) => i).sort(
    (a, b) => (timestamps[a] as number) - (timestamps[b] as number) || a - b,
  );
  const sorted = newColumns(length);
  const from = bitsOf(columns.values);
  for (let i = 0; i < length; i++) {
    const index = order[i] as number;
    const next = order[i + 1];
    if (next !== undefined && timestamps[next] === timestamps[index]) continue;
    pushSample(sorted, timestamps[index] as number, from[2 * index] as number, from[2 * index + 1] as number);
  }
  columns.length = 0;
  pushColumns(columns, sorted);
  columns.unsure = false;
}
