/**
 * Runs the conformance cases of a folder: `promqltest/*.test` with `index.json` in the strict dialect, `promqltest-next/*.test`
 * of which none decides, and the MetricsQL cases `metricsql/exec_cases.json` and `metricsql/parser_cases.json`. Whatever is absent is not run.
 */
import { existsSync, readdirSync, readFileSync } from "node:fs";
import { join } from "node:path";
import { messageOf } from "#core/assert.ts";
import { parse, range } from "#metrics/promql/engine.ts";
import { memorySource } from "#metrics/promql/memory-source.ts";
import { print } from "#metrics/promql/printer.ts";
import type { ResultSeries } from "#metrics/promql/results.ts";
import { judge } from "./judge.ts";
import { parseScript } from "./script.ts";
import { Storage } from "./storage.ts";

export interface Verdict {
  file: string;
  /** Where in the file: a line, or the name of the case. */
  place: string;
  query: string;
  /** Only core cases decide; the others are counted apart. */
  core: boolean;
  wrong: string | undefined;
  /** The case lists only some of the labels of its result. */
  partial?: true;
}

export function runConformance(dir: string): Verdict[] {
  return [
    ...runScripts(join(dir, "promqltest")),
    ...runScripts(join(dir, "promqltest-next"), false),
    ...runExec(join(dir, "metricsql")),
    ...runParser(join(dir, "metricsql")),
  ];
}

interface Indexed {
  file: string;
  line: number;
  core: boolean;
}

function readJson<T>(path: string): T | undefined {
  return existsSync(path) ? (JSON.parse(readFileSync(path, "utf8")) as T) : undefined;
}

/** Without an index every case counts, unless `decides` says that none does. */
function runScripts(dir: string, decides = true): Verdict[] {
  if (!existsSync(dir)) return [];
  const index = readJson<Indexed[]>(join(dir, "index.json"));
  const core = new Set(index?.filter((entry) => entry.core).map((entry) => `${entry.file}:${entry.line}`));
  const files = readdirSync(dir).filter((file) => file.endsWith(".test"));
  return files
    .sort()
    .flatMap((file) => runScript(join(dir, file), file, (line) => decides && (!index || core.has(`${file}:${line}`))));
}

function runScript(path: string, file: string, isCore: (line: number) => boolean): Verdict[] {
  const storage = new Storage();
  const verdicts: Verdict[] = [];
  for (const command of parseScript(readFileSync(path, "utf8"))) {
    if (command.type === "unreadable") {
      const { line, text: query, reason } = command;
      verdicts.push({ file, place: `line ${line}`, query, core: isCore(line), wrong: `cannot be read: ${reason}` });
    } else if (command.type === "clear") storage.clear();
    else if (command.type === "load") {
      storage.load(command.step_ms, command.series);
      if (command.nhcb) storage.loadCustomBuckets(command.step_ms, command.series);
    } else {
      const wrong = judge(command, { source: storage.source(), dialect: "promql", replay: true });
      verdicts.push({ file, place: `line ${command.line}`, query: command.expr, core: isCore(command.line), wrong });
    }
  }
  return verdicts;
}

interface ExecCase {
  name: string;
  query: string;
  start: number;
  end: number;
  step: number;
  expected: { metric: Record<string, string>; values: (number | string | null)[] }[];
}

const EMPTY = memorySource([]);

function runExec(dir: string): Verdict[] {
  const data = readJson<{ cases: ExecCase[]; errors: string[] }>(join(dir, "exec_cases.json"));
  if (!data) return [];
  const base = { file: "exec_cases.json", core: true };
  return [
    ...data.cases.map((one) => ({ ...base, place: one.name, query: one.query, ...judgeExec(one) })),
    ...data.errors.map((query) => {
      const run = (): unknown => range({ query, source: EMPTY, start_ms: 1e6, end_ms: 2e6, step_ms: 2e5 });
      return { ...base, place: "must fail", query, wrong: mustFail(run) };
    }),
  ];
}

function mustFail(run: () => unknown): string | undefined {
  try {
    run();
    return "did not fail";
  } catch (error) {
    return error instanceof Error && error.name === "QueryError" ? undefined : `threw ${String(error)}`;
  }
}

function judgeExec({ query, start, end, step, expected }: ExecCase): { wrong: string | undefined; partial?: true } {
  try {
    const grid = { start_ms: start * 1000, end_ms: end * 1000, step_ms: step * 1000 };
    const { data } = range({ query, source: EMPTY, ...grid });
    const series = data.type === "matrix" ? data.series : [];
    if (series.length !== expected.length) return { wrong: `${series.length} series instead of ${expected.length}` };
    let partial = false;
    for (const [i, want] of expected.entries()) {
      const got = series[i] as ResultSeries;
      const wrong = compareValues(want.values, got, grid.start_ms, grid.step_ms);
      if (wrong !== undefined) return { wrong };
      const labels = compareLabels(want.metric, got.labels);
      if (labels === "different")
        return { wrong: `labels ${got.labels.join(" ")} instead of ${JSON.stringify(want.metric)}` };
      if (labels === "partial") partial = true;
    }
    return partial ? { wrong: undefined, partial } : { wrong: undefined };
  } catch (error) {
    return { wrong: `failed: ${messageOf(error)}` };
  }
}

/** Some cases were written down with only some of their labels; those they have must be right. */
function compareLabels(want: Record<string, string>, got: readonly string[]): "same" | "partial" | "different" {
  const found = new Map<string, string>();
  for (let i = 0; i < got.length; i += 2) found.set(got[i] as string, got[i + 1] as string);
  const names = Object.keys(want);
  if (!names.every((name) => found.get(name) === want[name])) return "different";
  return names.length === found.size ? "same" : "partial";
}

const SPECIAL: Record<string, number> = {
  NaN: Number.NaN,
  "+Inf": Number.POSITIVE_INFINITY,
  Inf: Number.POSITIVE_INFINITY,
  "-Inf": Number.NEGATIVE_INFINITY,
};

function compareValues(
  want: (number | string | null)[],
  got: ResultSeries,
  start_ms: number,
  step_ms: number,
): string | undefined {
  const at = new Map(Array.from(got.timestamps, (time, i) => [time, got.values[i] as number]));
  for (const [i, value] of want.entries()) {
    const wanted = value === null ? Number.NaN : typeof value === "string" ? (SPECIAL[value] ?? Number(value)) : value;
    const found = at.get(start_ms + i * step_ms) ?? Number.NaN;
    const apart = Math.abs(wanted - found);
    const close = apart <= 1e-12 * Math.max(Math.abs(wanted), Math.abs(found));
    if (!close && !Object.is(wanted, found) && wanted !== found) return `${found} instead of ${wanted} at step ${i}`;
  }
  return undefined;
}

function runParser(dir: string): Verdict[] {
  const data = readJson<{ roundtrip: [string, string][]; errors: string[] }>(join(dir, "parser_cases.json"));
  if (!data) return [];
  const base = { file: "parser_cases.json", core: true };
  return [
    ...data.roundtrip.map(([query, wanted]) => ({ ...base, place: "prints", query, wrong: printsAs(query, wanted) })),
    ...data.errors.map((query) => ({ ...base, place: "must fail", query, wrong: mustFail(() => parse(query)) })),
  ];
}

function printsAs(query: string, wanted: string): string | undefined {
  try {
    const got = print(parse(query));
    return got === wanted ? undefined : `prints ${got} instead of ${wanted}`;
  } catch (error) {
    return `failed: ${messageOf(error)}`;
  }
}
