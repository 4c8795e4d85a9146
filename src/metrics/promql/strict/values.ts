import { type FloatHistogram, sizeOf } from "../../histogram/histogram.ts";
import { copyBits } from "../../nan-bits.ts";
import type { Labels } from "../../source.ts";
import { executionError, placeOf } from "../errors.ts";
import { column, countBytes, type Frame } from "../frame.ts";
import { dropName, labelsKey } from "../labels.ts";

/**
 * Values of the strict dialect. Unlike in MetricsQL, NaN is a value like any other, so which steps have one is stored
 * beside the numbers.
 */

/** At a step a series has nothing, a number, or a native histogram. */
export const ABSENT = 0;
export const FLOAT = 1;
export const HISTOGRAM = 2;

export interface Row {
  labels: Labels;
  /** The name is dropped at the end: until then it distinguishes series and appears in messages. */
  dropName: boolean;
  values: Float64Array;
  present: Uint8Array;
}

export type Value =
  | { type: "vector"; rows: Row[] }
  | { type: "scalar"; values: Float64Array }
  | { type: "string"; text: string };

export function newRow(frame: Frame, labels: Labels, drop: boolean): Row {
  return { labels, dropName: drop, values: column(frame), present: new Uint8Array(frame.points) };
}

/** The native histogram at a step, undefined for anything else. */
export function histogramOf(frame: Frame, row: Row, i: number): FloatHistogram | undefined {
  return row.present[i] === HISTOGRAM ? frame.query.histograms.at(row.values, i) : undefined;
}

export function putNative(frame: Frame, row: Row, i: number, histogram: FloatHistogram): void {
  row.present[i] = HISTOGRAM;
  countBytes(frame.query, sizeOf(histogram));
  frame.query.histograms.put(row.values, i, histogram);
}

/** The labels a series will have in the answer. */
export function finalLabels(row: Row): Labels {
  return row.dropName ? dropName(row.labels) : row.labels;
}

export function isEmpty(row: Row): boolean {
  return !row.present.some((p) => p !== ABSENT);
}

/** Series that have become the same are one, unless both have a value at the same step. */
export function mergeSame(rows: Row[]): Row[] {
  const known = new Map<string, Row>();
  for (const row of rows) {
    const labels = finalLabels(row);
    const key = labelsKey(labels);
    const other = known.get(key);
    if (!other) {
      known.set(key, { ...row, labels, dropName: false });
      continue;
    }
    for (let i = 0; i < row.present.length; i++) {
      if (row.present[i] === ABSENT) continue;
      if (other.present[i] !== ABSENT) throw executionError("vector cannot contain metrics with the same labelset");
      other.present[i] = row.present[i] as number;
      copyBits(row.values, i, other.values, i);
    }
  }
  return [...known.values()];
}

/** Changes every number of every row; native histograms have no number and go. */
export function mapRows(rows: Row[], change: (value: number, i: number) => number): Row[] {
  for (const row of rows) {
    row.dropName = true;
    for (let i = 0; i < row.present.length; i++) {
      if (row.present[i] === FLOAT) row.values[i] = change(row.values[i] as number, i);
      else row.present[i] = ABSENT;
    }
  }
  return rows;
}

/** Annotations end with the place they are about. */
function annotate(frame: Frame, kind: "warning" | "info", message: string, at: number): void {
  const { line, column: col } = placeOf(frame.query.text, at);
  const into = kind === "warning" ? frame.query.warnings : frame.query.infos;
  if (into.size < ANNOTATIONS) into.add(`PromQL ${kind}: ${message} (${line}:${col})`);
}

/** Maximum number of different annotations per query; more of them would only repeat the first ones. */
const ANNOTATIONS = 50;

export const warn = (frame: Frame, message: string, at: number): void => annotate(frame, "warning", message, at);
export const inform = (frame: Frame, message: string, at: number): void => annotate(frame, "info", message, at);

export function checkQuantile(frame: Frame, phi: number, at: number): void {
  if (phi >= 0 && phi <= 1) return;
  const shown = Number.isNaN(phi)
    ? "NaN"
    : phi === Number.POSITIVE_INFINITY
      ? "+Inf"
      : String(phi).replace("Infinity", "Inf");
  warn(frame, `quantile value should be between 0 and 1, got ${shown}`, at);
}
