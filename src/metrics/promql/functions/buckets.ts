import { column, copyRow, type Frame, type Row } from "../frame.ts";
import { dropName, labelsKey, labelValue, setLabel } from "../labels.ts";
import { parseFloatStrict } from "../numbers.ts";

/** Histograms as series with `le` (cumulative, Prometheus) or `vmrange` (one range each, VictoriaMetrics). */

export interface Bucket {
  le: number;
  row: Row;
}

/** Buckets of one histogram each, by their other labels, in rising order of `le`. */
export function groupBuckets(rows: Row[], keepName: boolean): Bucket[][] {
  const groups = new Map<string, Bucket[]>();
  for (const row of rows) {
    const text = labelValue(row.labels, "le");
    const le = text === "" ? undefined : parseFloatStrict(text);
    if (le === undefined || Number.isNaN(le)) continue;
    const without = setLabel(row.labels, "le", "");
    const labels = keepName ? without : dropName(without);
    const key = labelsKey(labels);
    const bucket: Bucket = { le, row: keepName ? row : { ...row, labels } };
    const group = groups.get(key);
    if (group) group.push(bucket);
    else groups.set(key, [bucket]);
  }
  return [...groups.values()].map((group) => group.sort((a, b) => a.le - b.le));
}

/** The same bound written in two ways, `1` and `1.0`, is one bucket. */
export function mergeSameBounds(buckets: Bucket[]): Bucket[] {
  const out: Bucket[] = [];
  for (const bucket of buckets) {
    const last = out.at(-1);
    if (last?.le !== bucket.le) {
      out.push(bucket);
      continue;
    }
    for (let i = 0; i < last.row.values.length; i++) {
      last.row.values[i] = (last.row.values[i] as number) + (bucket.row.values[i] as number);
    }
  }
  return out;
}

/** A bucket cannot hold less than the one it includes; late or lost scrapes make it look so. */
export function mendBuckets(buckets: Bucket[], i: number): void {
  let least = buckets[0]?.row.values[i] as number;
  for (let j = 1; j < buckets.length; j++) {
    const { values } = (buckets[j] as Bucket).row;
    const value = values[i] as number;
    if (Number.isNaN(value) || least > value) values[i] = least;
    else least = value;
  }
}

interface Ranged {
  start: number;
  startText: string;
  end: number;
  endText: string;
  row: Row;
}

/** Series with `vmrange` become cumulative ones with `le`; those that have `le` already pass. */
export function toCumulative(frame: Frame, rows: Row[]): Row[] {
  const out: Row[] = [];
  const groups = new Map<string, Ranged[]>();
  for (const row of rows) {
    const range = labelValue(row.labels, "vmrange");
    if (range === "") {
      if (labelValue(row.labels, "le") !== "") out.push(row);
      continue;
    }
    const ranged = parseRange(row, range);
    if (!ranged) continue;
    const key = labelsKey(ranged.row.labels);
    const group = groups.get(key);
    if (group) group.push(ranged);
    else groups.set(key, [ranged]);
  }
  for (const group of groups.values()) out.push(...cumulate(frame, group));
  return out;
}

function parseRange(row: Row, range: string): Ranged | undefined {
  const [startText = "", endText = "", extra] = range.split("...");
  const start = parseFloatStrict(startText);
  const end = parseFloatStrict(endText);
  if (start === undefined || end === undefined || extra !== undefined) return undefined;
  const labels = setLabel(setLabel(row.labels, "le", ""), "vmrange", "");
  return { start, startText, end, endText, row: { labels, values: row.values } };
}

function cumulate(frame: Frame, ranges: Ranged[]): Row[] {
  const filled = ranges.filter(({ row }) => row.values.some((v) => v > 0)).sort((a, b) => a.end - b.end);
  const buckets = new Map<string, Row>();
  const add = (row: Row, le: string, values: Float64Array): void => {
    buckets.set(le, { labels: setLabel(row.labels, "le", le), values });
  };
  let reached = 0;
  for (const { start, startText, end, endText, row } of filled) {
    // A gap below the range gets a bucket of its own, or quantiles would be drawn across it.
    if (start !== reached && !buckets.has(startText)) add(row, startText, column(frame));
    const known = buckets.get(endText);
    if (known) mergeInto(known.values, row.values);
    else add(row, endText, row.values);
    reached = end;
  }
  const last = filled.at(-1);
  if (last && last.end !== Number.POSITIVE_INFINITY) add(last.row, "+Inf", column(frame));
  return accumulate([...buckets.values()], frame.points);
}

/** Two series for one bucket follow each other in time when a histogram moved; they do not add up. */
function mergeInto(into: Float64Array, from: Float64Array): void {
  let both = 0;
  for (let i = 0; i < into.length; i++)
    if (!Number.isNaN(into[i] as number) && !Number.isNaN(from[i] as number)) both++;
  if (both > 2) return;
  for (let i = 0; i < into.length; i++) if (!Number.isNaN(from[i] as number)) into[i] = from[i] as number;
}

function accumulate(rows: Row[], points: number): Row[] {
  for (let i = 0; i < points; i++) {
    let total = 0;
    for (const { values } of rows) {
      const value = values[i] as number;
      if (value > 0) total += value;
      values[i] = total;
    }
  }
  return rows;
}

/** A copy of each row, for functions that use the buckets several times. */
export function copyRows(rows: Row[]): Row[] {
  return rows.map((row) => copyRow(row));
}
