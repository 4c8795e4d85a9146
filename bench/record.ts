/** The last figures of each area, kept in docs/performance.json, and what is worse than they were. */
import { existsSync, readFileSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { digits, type Row } from "./report.ts";

/** One run of one area. */
export interface Measured {
  area: string;
  /** The day, as YYYY-MM-DD. */
  date: string;
  machine: Record<string, string | number>;
  figures: Row[];
  skipped: { what: string; reason: string }[];
}

export const DOCS = join(import.meta.dirname, "../docs");
const FILE = join(DOCS, "performance.json");

export function readMeasured(): Measured[] {
  return existsSync(FILE) ? (JSON.parse(readFileSync(FILE, "utf8")) as Measured[]) : [];
}

/** In place of what was kept for the same area. */
export function keepMeasured(fresh: Measured): Measured[] {
  const kept = [...readMeasured().filter(({ area }) => area !== fresh.area), fresh];
  kept.sort((a, b) => a.area.localeCompare(b.area, "en"));
  writeFileSync(FILE, `${JSON.stringify(kept, null, 2)}\n`);
  return kept;
}

/** Times and sizes should be small, everything else large. A target says it better than the unit. */
export function wantsLess({ at_least, at_most, unit }: Pick<Row, "at_least" | "at_most" | "unit">): boolean {
  if (at_least !== undefined) return false;
  return at_most !== undefined || /^(ns|µs|ms|s|B|KB|KiB|MB|MiB|GB)$|^(µs|ms|CPU)\b/.test(unit);
}

/** A ratio may get this much worse before it counts: the same code gives others on the next run. */
export const SLACK = 1.2;

/** Ratios that are worse than they were, in words. What only one of the runs has is not compared. */
export function worse(before: Measured, after: Measured): string[] {
  return after.figures.flatMap((row) => {
    const old = before.figures.find(({ section, what }) => section === row.section && what === row.what);
    if (row.ratio === undefined || old?.ratio === undefined || old.to !== row.to) return [];
    const change = wantsLess(row) ? row.ratio / old.ratio : old.ratio / row.ratio;
    if (change <= SLACK) return [];
    const place = `${after.area}, ${row.section}: ${row.what}`;
    return [`${place} was ${digits(old.ratio)} × ${row.to}, is ${digits(row.ratio)} ×`];
  });
}
