import type { Labels } from "../source.ts";
import { type BinaryExpr, NAME } from "./ast.ts";

/** Work on label lists, which alternate names and values, are sorted by name and are never changed. */

export const NO_LABELS: Labels = [];

/** The value, or the empty string when the label is absent. */
export function labelValue(labels: Labels, name: string): string {
  for (let i = 0; i < labels.length; i += 2) {
    if (labels[i] === name) return labels[i + 1] as string;
  }
  return "";
}

/** With this label set; an empty value removes it. */
export function setLabel(labels: Labels, name: string, value: string): Labels {
  const out: string[] = [];
  let placed = value === "";
  for (let i = 0; i < labels.length; i += 2) {
    const key = labels[i] as string;
    if (!placed && key > name) {
      out.push(name, value);
      placed = true;
    }
    if (key !== name) out.push(key, labels[i + 1] as string);
  }
  if (!placed) out.push(name, value);
  return out;
}

/** Most functions change what a series means, so its name goes. */
export function dropName(labels: Labels): Labels {
  return labelValue(labels, NAME) === "" ? labels : setLabel(labels, NAME, "");
}

export function keepLabels(labels: Labels, names: readonly string[]): Labels {
  return filterLabels(labels, (name) => names.includes(name));
}

export function dropLabels(labels: Labels, names: readonly string[]): Labels {
  return filterLabels(labels, (name) => !names.includes(name));
}

function filterLabels(labels: Labels, keep: (name: string) => boolean): Labels {
  const out: string[] = [];
  for (let i = 0; i < labels.length; i += 2) {
    const name = labels[i] as string;
    if (keep(name)) out.push(name, labels[i + 1] as string);
  }
  return out;
}

/** One string per set of labels; U+10FFFF is no character, so no label has it. */
export function labelsKey(labels: Labels): string {
  return labels.join("\u{10ffff}");
}

/** Prometheus' order: label by label, names before values, the shorter first. */
export function compareLabels(a: Labels, b: Labels): number {
  const shared = Math.min(a.length, b.length);
  for (let i = 0; i < shared; i++) {
    const left = a[i] as string;
    const right = b[i] as string;
    if (left !== right) return left < right ? -1 : 1;
  }
  return a.length - b.length;
}

/** For messages: `{__name__="up", app="web"}`. */
export function showLabels(labels: Labels): string {
  const parts: string[] = [];
  for (let i = 0; i < labels.length; i += 2) parts.push(`${labels[i]}=${JSON.stringify(labels[i + 1])}`);
  return `{${parts.join(", ")}}`;
}

/** Rows whose labels are the same, as `labelsOf` sees them, in the order of the rows. */
export function groupByLabels<T>(rows: readonly T[], labelsOf: (row: T) => Labels): Map<string, T[]> {
  return Map.groupBy(rows, (row) => labelsKey(labelsOf(row)));
}

/** The labels that `on` and `ignoring` match series by: of `on` those of `named`, else the rest of `nameless`. */
export function matchedLabels(group: BinaryExpr["group"], named: Labels, nameless: Labels): Labels {
  if (group?.op === "on") return keepLabels(named, group.labels);
  return group ? dropLabels(nameless, group.labels) : nameless;
}
