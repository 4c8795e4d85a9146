/** What changed between two values, as a person reads it. */
import type { VNode } from "preact";
import { pre, span } from "../html.ts";
import { type DiffLine, diff } from "./diff.ts";

/** Sorted keys, so that a diff shows only real changes. */
export const pretty = (value: unknown): string => JSON.stringify(sortKeys(value), null, 2);

function sortKeys(value: unknown): unknown {
  if (Array.isArray(value)) return value.map(sortKeys);
  if (value === null || typeof value !== "object") return value;
  const entries = Object.entries(value).sort(([x], [y]) => (x < y ? -1 : 1));
  return Object.fromEntries(entries.map(([key, inner]) => [key, sortKeys(inner)]));
}

const SIGNS = { same: "  ", gone: "- ", new: "+ " } as const;

export function Diff({ lines }: { lines: readonly DiffLine[] }): VNode {
  return pre(
    { class: "diff", tabIndex: 0, "aria-label": "What changed" },
    ...lines.map(({ kind, text }, index) => span({ key: index, class: kind }, `${SIGNS[kind]}${text}\n`)),
  );
}

/** Unchanged lines around a change. */
const AROUND = 3;

/** Only what changed, with a few lines around it. */
export function changes(before: unknown, after: unknown): DiffLine[] {
  const lines = diff(pretty(before), pretty(after));
  const near = lines.map((_, index) =>
    lines.slice(Math.max(0, index - AROUND), index + AROUND + 1).some(({ kind }) => kind !== "same"),
  );
  return lines.flatMap((line, index): DiffLine[] => {
    if (near[index]) return [line];
    return index > 0 && near[index - 1] ? [{ kind: "same", text: "…" }] : [];
  });
}
