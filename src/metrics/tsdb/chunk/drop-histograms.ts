import { copyBits, histogramAt } from "../../nan-bits.ts";
import type { Columns } from "../../source.ts";

/** Leaves out the native histograms from index `first` on. */
export function dropHistograms(columns: Columns, first: number): void {
  const { timestamps, values, length } = columns;
  let kept = first;
  for (let i = first; i < length; i++) {
    if (histogramAt(values, i) !== undefined) continue;
    timestamps[kept] = timestamps[i] as number;
    copyBits(values, i, values, kept);
    kept++;
  }
  columns.length = kept;
}
