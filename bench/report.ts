/**
 * What a benchmark is here. An area is a file `bench/<area>.ts` that exports
 *
 *   export async function run(report: Report): Promise<void>
 *
 * and measures its subject next to its peers in the same run: on a machine that others use too, only figures
 * that were taken side by side can be compared. Programs and helpers of an area live in `bench/<area>/`.
 */
import { closeSync, fdatasyncSync, mkdtempSync, openSync, readFileSync, rmSync, writeSync } from "node:fs";
import { availableParallelism, cpus, loadavg, tmpdir } from "node:os";
import { join } from "node:path";

export interface Figure {
  what: string;
  value: number;
  unit: string;
  /** The `what` of an earlier figure in this section to show this one as a multiple of. */
  to?: string;
  at_least?: number;
  at_most?: number;
  note?: string;
}

export interface Report {
  /** A heading; figures belong to the last one. */
  section(title: string): void;
  add(figure: Figure): void;
  /** What cannot be measured here, and why. */
  skip(what: string, reason: string): void;
}

export type Row = Figure & { section: string; ratio?: number; met?: boolean };

/** Prints every figure as it comes, so that a long run can be watched, and keeps them all for `--json`. */
export class PrintedReport implements Report {
  readonly rows: Row[] = [];
  readonly skipped: { what: string; reason: string }[] = [];
  readonly #print: (line: string) => void;
  #section = "";

  constructor(print: (line: string) => void) {
    this.#print = print;
  }

  section(title: string): void {
    if (title !== this.#section) this.#print(`\n${title}`);
    this.#section = title;
  }

  add(figure: Figure): void {
    const peer = this.rows.find((row) => row.section === this.#section && row.what === figure.to);
    if (figure.to !== undefined && !peer) throw new Error(`there is no figure "${figure.to}" to compare with`);
    const { value, at_least, at_most } = figure;
    const bounded = at_least !== undefined || at_most !== undefined;
    const row: Row = {
      section: this.#section,
      ...figure,
      ...(peer ? { ratio: value / peer.value } : {}),
      ...(bounded ? { met: value >= (at_least ?? -Infinity) && value <= (at_most ?? Infinity) } : {}),
    };
    this.rows.push(row);
    this.#print(line(row));
  }

  skip(what: string, reason: string): void {
    this.skipped.push({ what, reason });
    this.#print(`  ${what}: not measured, ${reason}`);
  }
}

function line(row: Row): string {
  const target = row.at_least === undefined ? `at most ${row.at_most}` : `at least ${row.at_least}`;
  const remarks = [
    row.ratio === undefined ? "" : `${row.ratio.toFixed(2)} × ${row.to}`,
    row.met === undefined ? "" : `${row.met ? "met" : "MISSED"}: ${target}`,
    row.note ?? "",
  ];
  const value = `${digits(row.value)} ${row.unit}`;
  return `  ${row.what.padEnd(44)} ${value.padStart(16)}   ${remarks.filter(Boolean).join("; ")}`.trimEnd();
}

/** Three digits that count, no more: the next run gives others. */
export const digits = (value: number): string =>
  value >= 1000 ? Math.round(value).toLocaleString("en") : String(Number(value.toPrecision(3)));

/** What the figures depend on. */
export function machineFacts(): Record<string, string | number> {
  return {
    cpu: cpus()[0]?.model ?? "unknown",
    cores: availableParallelism(),
    node: process.version,
    load_1min: loadavg()[0] ?? 0,
    fsync_ms: fsyncMs(),
  };
}

/** Processor time that other guests of the host took from this box from now until asked, in percent. */
export function stolenSince(): () => number {
  const started = processorTimes();
  return () => {
    const [total, stolen] = processorTimes().map((ticks, index) => ticks - (started[index] ?? 0));
    return total ? Math.round((100 * (stolen ?? 0)) / total) : 0;
  };
}

/** Ticks of all cores since boot, and those of them that were stolen: the eighth column of the first line. */
function processorTimes(): [total: number, stolen: number] {
  const [line = ""] = readFileSync("/proc/stat", "utf8").split("\n");
  const ticks = line.split(/\s+/).slice(1, 9).map(Number);
  return [ticks.reduce((sum, each) => sum + each, 0), ticks[7] ?? 0];
}

/** The median time to make 4 KiB durable in the temp folder, which is where the benchmarks keep their data. */
export function fsyncMs(times = 200): number {
  const dir = mkdtempSync(join(tmpdir(), "hangar-fsync-"));
  const fd = openSync(join(dir, "file"), "w");
  try {
    const page = Buffer.alloc(4096, 1);
    const taken = Array.from({ length: times }, () => {
      writeSync(fd, page);
      const started = performance.now();
      fdatasyncSync(fd);
      return performance.now() - started;
    });
    return Number(median(taken).toFixed(3));
  } finally {
    closeSync(fd);
    rmSync(dir, { recursive: true });
  }
}

export const median = (values: readonly number[]): number => quantile(values, 0.5);

/** The value below which this part of them lies. */
export function quantile(values: readonly number[], part: number): number {
  return values.toSorted((a, b) => a - b)[Math.floor(values.length * part)] ?? Number.NaN;
}
