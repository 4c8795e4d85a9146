import type { ErrorBody } from "#core/errors.ts";
import { styled } from "./terminal-text.ts";

/** Columns under bold heads, as wide as they need to be. */
export function table(heads: readonly string[], rows: readonly (readonly string[])[]): string {
  const widths = heads.map((head, i) => Math.max(head.length, ...rows.map((row) => row[i]?.length ?? 0)));
  const line = (cells: readonly string[]): string =>
    cells
      .map((cell, i) => cell.padEnd(widths[i] ?? 0))
      .join("  ")
      .trimEnd();
  return [styled("bold", line(heads.map((head) => head.toUpperCase()))), ...rows.map(line)].join("\n");
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
  // Rounded up it would have four digits.
  while (value >= 999.5 && unit < units.length - 1) {
    value /= 1024;
    unit++;
  }
  return `${unit === 0 || value >= 99.5 ? value.toFixed(0) : value.toPrecision(2)} ${units[unit]}`;
}

/** What failed, why, and what to try: a line each. */
export function errorText(message: string, body: Partial<ErrorBody>): string {
  const lines = [`${styled("red", "error:", process.stderr)} ${message}`];
  for (const { path, problem, allowed } of body.details ?? [])
    lines.push(`  ${path} ${problem}${allowed ? ` (allowed: ${allowed})` : ""}`);
  if (body.hint) lines.push(`  try: ${body.hint}`);
  if (body.request_id) lines.push(`  request: ${body.request_id}`);
  return lines.join("\n");
}
