/**
 * npm run bench                       lists the areas
 * npm run bench api metrics           measures some; `--json` prints data, `--record` also writes docs/PERFORMANCE.md
 * npm run bench all                   measures everything and writes docs/PERFORMANCE.md
 * npm run bench compare [AREA…]       measures again what was recorded, and fails when a ratio got worse
 */
import { mkdirSync, readdirSync, readFileSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { parseArgs } from "node:util";
import { writeReadmeBlock } from "../scripts/readme-block.ts";
import { performancePage, performanceTop } from "./page.ts";
import { plot } from "./plot.ts";
import { DOCS, keepMeasured, type Measured, readMeasured, worse } from "./record.ts";
import { machineFacts, PrintedReport, type Report, stolenSince } from "./report.ts";
import { writeScalePage } from "./scale-page.ts";

const say = (text: string): void => void process.stdout.write(`${text}\n`);

/** Files that can be run; the others here are helpers of theirs. */
const areas = readdirSync(import.meta.dirname)
  .filter((name) => name.endsWith(".ts") && isArea(readFileSync(join(import.meta.dirname, name), "utf8")))
  .map((name) => name.slice(0, -3))
  .sort();

function isArea(source: string): boolean {
  return /^export async function run\(report: Report\)/m.test(source);
}

async function measure(area: string, print: (text: string) => void): Promise<Measured> {
  const machine = machineFacts();
  print(`\n== ${area}`);
  for (const [name, value] of Object.entries(machine)) print(`${name.padEnd(10)} ${value}`);
  const stolen = stolenSince();
  const report = new PrintedReport(print);
  const { run } = (await import(`./${area}.ts`)) as { run(report: Report): Promise<void> };
  await run(report);
  const date = new Date().toISOString().slice(0, 10);
  const facts = { ...machine, stolen_percent: stolen() };
  print(`\nother guests of this host took ${facts.stolen_percent} % of the processor time meanwhile`);
  return { area, date, machine: facts, figures: report.rows, skipped: report.skipped };
}

/** After each area, so that a run that is broken off has kept what it had. */
function keep(fresh: Measured): void {
  const kept = keepMeasured(fresh);
  mkdirSync(join(DOCS, "performance"), { recursive: true });
  const plots = new Map(kept.map(({ area, figures }) => [area, plot(`${area}: ratios to peers`, figures)]));
  for (const [area, svg] of plots) if (svg) writeFileSync(join(DOCS, "performance", `${area}.svg`), svg);
  const drawn = new Set([...plots].flatMap(([area, svg]) => (svg ? [area] : [])));
  writeFileSync(join(DOCS, "PERFORMANCE.md"), performancePage(kept, drawn));
  writeReadmeBlock("measured", performanceTop(kept));
  writeScalePage(kept);
}

/** The others are measured all the same: a run takes an hour. */
function failed(area: string, error: unknown): undefined {
  process.stderr.write(`\n${area} could not be measured: ${error instanceof Error ? error.stack : String(error)}\n`);
}

async function compare(wanted: readonly string[]): Promise<boolean> {
  const before = readMeasured().filter(({ area }) => wanted.length === 0 || wanted.includes(area));
  if (before.length === 0) say("nothing was recorded yet: npm run bench all");
  const found: string[] = [];
  for (const old of before) found.push(...worse(old, await measure(old.area, say)));
  say(found.length === 0 ? "\nno ratio is worse than it was" : `\nworse than before:\n${found.join("\n")}`);
  return found.length === 0 && before.length > 0;
}

/** Why this is not measured, or undefined. */
function refusal(wanted: readonly string[], { record, part }: { record: boolean; part?: string }): string | undefined {
  const unknown = wanted.filter((area) => !areas.includes(area));
  if (unknown.length > 0) return `There is no benchmark ${unknown.join(", ")}; there are: ${areas.join(", ")}`;
  return record && part !== undefined ? "--record writes an area whole: leave out --part" : undefined;
}

async function main(): Promise<boolean> {
  const { values, positionals } = parseArgs({
    allowPositionals: true,
    options: {
      json: { type: "boolean", default: false },
      record: { type: "boolean", default: false },
      // Sizes of the areas that take them.
      machines: { type: "string" },
      hosts: { type: "string" },
      seconds: { type: "string" },
      // One part of an area that has some: printed only, because a page is recorded whole.
      part: { type: "string" },
    },
  });
  const [first, ...rest] = positionals;
  const wanted = first === "all" ? areas : first === "compare" ? rest : positionals;
  const refused = refusal(wanted, values);
  if (refused !== undefined) {
    process.stderr.write(`${refused}\n`);
    return false;
  }
  if (first === "compare") return await compare(wanted);
  if (wanted.length === 0) say(`npm run bench AREA…|all|compare [--json] [--record]   areas: ${areas.join(", ")}`);
  const measured: Measured[] = [];
  for (const area of wanted) {
    const one = await measure(area, values.json ? () => {} : say).catch((error: unknown) => failed(area, error));
    if (!one) continue;
    measured.push(one);
    if (values.record || first === "all") keep(one);
  }
  if (values.json) say(JSON.stringify(measured, null, 2));
  return measured.length === wanted.length;
}

process.exitCode = (await main()) ? 0 : 1;
