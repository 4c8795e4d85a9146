/** `node scripts/conformance-promql.ts [DIR]`: the query conformance cases under DIR, and how many of them pass. */
import { join, resolve } from "node:path";
import { runConformance, type Verdict } from "../test/promql/conformance.ts";

const dir = resolve(process.argv[2] ?? join(import.meta.dirname, "../../shared/conformance"));
const verdicts = runConformance(dir);
const write = (line: string): void => void process.stdout.write(`${line}\n`);
const passed = (list: Verdict[]): number => list.filter(({ wrong }) => wrong === undefined).length;

for (const [file, cases] of Map.groupBy(verdicts, (verdict) => verdict.file)) {
  const core = cases.filter((verdict) => verdict.core);
  const others = cases.filter((verdict) => !verdict.core);
  const partial = cases.filter((verdict) => verdict.partial).length;
  const notes = [
    ...(others.length > 0 ? [`${passed(others)}/${others.length} not core`] : []),
    ...(partial > 0 ? [`${partial} list their labels in part`] : []),
  ];
  write(`${file.padEnd(28)} ${passed(core)}/${core.length}${notes.length > 0 ? `  (${notes.join(", ")})` : ""}`);
}

const failed = verdicts.filter(({ core, wrong }) => core && wrong !== undefined);
for (const { file, place, query, wrong } of failed) write(`FAIL ${file} ${place}: ${query}\n     ${wrong}`);
if (verdicts.length === 0) write(`no cases found under ${dir}`);
write(`${verdicts.filter(({ core, wrong }) => core && wrong === undefined).length} passed, ${failed.length} failed`);
process.exit(failed.length > 0 || verdicts.length === 0 ? 1 : 0);
