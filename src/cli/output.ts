import type { ErrorBody } from "#core/errors.ts";
import { styled } from "./terminal-text.ts";

/** The colour of each state, on a terminal. */
const STATE_COLOURS: readonly [RegExp, "green" | "yellow" | "red" | "dim"][] = [
  [/^(started|running|passing|ready|complete|succeeded|ok|healthy)\b/, "green"],
  [/^(failed|critical|lost|unreachable|error|broken)\b/, "red"],
  [/^(starting|stopping|suspending|replacing|creating|created|pending|warning|unknown|frozen|draining)\b/, "yellow"],
  [/^(stopped|suspended|destroyed|destroying|deleted)\b/, "dim"],
];
const STATE_HEADS = new Set(["state", "status", "health", "checks"]);

/** A table with bold headings, columns as wide as they need to be, and coloured states. */
export function table(heads: readonly string[], rows: readonly (readonly string[])[]): string {
  const { head, lines } = tableWriter(heads, rows);
  return rows.length === 0 ? head : `${head}\n${lines(rows)}`;
}

type Rows = readonly (readonly string[])[];

/** Writes a table in pieces: its columns are as wide as the first rows need. */
export function tableWriter(heads: readonly string[], rows: Rows): { head: string; lines(rows: Rows): string } {
  const widths = heads.map((head, i) => Math.max(head.length, ...rows.map((row) => row[i]?.length ?? 0)));
  const line = (cells: readonly string[], colour: (cell: string, i: number) => string = (cell) => cell): string =>
    cells.map((cell, i) => colour(i === heads.length - 1 ? cell : cell.padEnd(widths[i] ?? 0), i)).join("  ");
  const coloured = (cell: string, i: number): string => {
    const [, colour] = (STATE_HEADS.has(heads[i] ?? "") && STATE_COLOURS.find(([word]) => word.test(cell))) || [];
    return colour ? styled(colour, cell) : cell;
  };
  return {
    head: styled("bold", line(heads.map((one) => one.toUpperCase())).trimEnd()),
    lines: (some) => some.map((row) => line(row, coloured).trimEnd()).join("\n"),
  };
}

/** Names on the left, values on the right. */
export function facts(pairs: readonly (readonly [string, string])[]): string {
  const width = Math.max(...pairs.map(([name]) => name.length));
  return pairs.map(([name, value]) => `${name.padEnd(width)}  ${value}`).join("\n");
}

/** `3 minutes ago`. */
export function ago(iso: string | number, now_ms: number): string {
  const seconds = Math.max(0, Math.round((now_ms - new Date(iso).getTime()) / 1000));
  const units: [number, string][] = [
    [86_400, "day"],
    [3600, "hour"],
    [60, "minute"],
    [1, "second"],
  ];
  const [size, name] = units.find(([length]) => seconds >= length) ?? [1, "second"];
  const n = Math.floor(seconds / size);
  return `${n} ${name}${n === 1 ? "" : "s"} ago`;
}

/** `1.4 GB`, `512 MB`: two digits that count, or the whole number. */
export function bytesText(bytes: number): string {
  const units = ["B", "KB", "MB", "GB", "TB"];
  let value = bytes;
  let unit = 0;
  // Rounding up would give four digits.
  while (value >= 999.5 && unit < units.length - 1) {
    value /= 1024;
    unit++;
  }
  return `${unit === 0 || value >= 99.5 ? value.toFixed(0) : value.toPrecision(2)} ${units[unit]}`;
}

/** An error for display: the message, the details and the hint, a line each. */
export function errorText(message: string, body: Partial<ErrorBody>): string {
  const lines = [`${styled("red", "error:", process.stderr)} ${message}`];
  for (const { path, problem, allowed } of body.details ?? [])
    lines.push(`  ${path} ${problem}${allowed ? ` (allowed: ${allowed})` : ""}`);
  if (body.hint) lines.push(`  try: ${body.hint}`);
  if (body.request_id) lines.push(`  request: ${body.request_id}`);
  return lines.join("\n");
}
