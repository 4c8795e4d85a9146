/** `npm run bench` lists the areas, `npm run bench api metrics` measures some, `--json` prints data instead. */
import { readdirSync, readFileSync } from "node:fs";
import { join } from "node:path";
import { machineFacts, PrintedReport, type Report } from "./report.ts";

const say = (text: string): void => void process.stdout.write(`${text}\n`);

/** Files that can be run; the others here are helpers of theirs. */
const areas = readdirSync(import.meta.dirname)
  .filter((name) => name.endsWith(".ts") && isArea(readFileSync(join(import.meta.dirname, name), "utf8")))
  .map((name) => name.slice(0, -3))
  .sort();

function isArea(source: string): boolean {
  return /^export async function run\(report: Report\)/m.test(source);
}

async function measure(wanted: readonly string[], json: boolean): Promise<void> {
  const facts = machineFacts();
  if (!json) for (const [name, value] of Object.entries(facts)) say(`${name.padEnd(10)} ${value}`);
  const report = new PrintedReport(json ? () => {} : say);
  for (const area of wanted) {
    const { run } = (await import(`./${area}.ts`)) as { run(report: Report): Promise<void> };
    await run(report);
  }
  if (json) say(JSON.stringify({ machine: facts, figures: report.rows, skipped: report.skipped }, null, 2));
}

const args = process.argv.slice(2);
const wanted = args.filter((arg) => arg !== "--json");
const unknown = wanted.filter((area) => !areas.includes(area));
if (unknown.length > 0) {
  process.stderr.write(`There is no benchmark ${unknown.join(", ")}; there are: ${areas.join(", ")}\n`);
  process.exitCode = 1;
} else if (wanted.length === 0) {
  say(`npm run bench AREA… [--json]   areas: ${areas.join(", ")}`);
} else {
  await measure(wanted, args.includes("--json"));
}
