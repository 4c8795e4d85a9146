/**
 * npm run mutate: changes the code that decides (who may, what follows, who holds, how much) in every small
 * way there is, one at a time, and looks whether a test notices. Prints those that no test noticed, and the score.
 */
import { spawnSync } from "node:child_process";
import { readFileSync } from "node:fs";
import { delimiter, dirname, join } from "node:path";

/** Of a hundred changes so many must be noticed, in every file. */
const WANTED = 85;

const root = join(import.meta.dirname, "..");
const REPORT = join(root, "node_modules/.cache/mutate/report.json");

interface Report {
  files: Record<string, { mutants: { status: string }[] }>;
}

/** Noticed by a test that failed, or that no longer came to its end. */
const NOTICED = new Set(["Killed", "Timeout"]);
/** Not a change at all: the code could not even be read. */
const NOTHING = new Set(["CompileError", "RuntimeError", "Ignored"]);
/** When more of a hundred than this could not be read, it is not the changes that are wrong. */
const UNREADABLE = 10;

function scores({ files }: Report): { file: string; noticed: number; all: number }[] {
  return Object.entries(files).map(([file, { mutants }]) => {
    const counted = mutants.filter(({ status }) => !NOTHING.has(status));
    return { file, noticed: counted.filter(({ status }) => NOTICED.has(status)).length, all: counted.length };
  });
}

const env = {
  ...process.env,
  // Tests run a thousand times: each at a tenth of its size, with the Node that runs this.
  HANGAR_MUTATE: "1",
  // Run by a test, theirs would answer that test instead of the tool.
  NODE_TEST_CONTEXT: undefined,
  PATH: `${dirname(process.execPath)}${delimiter}${process.env["PATH"]}`,
};
const stryker = join(root, "tools/mutate/node_modules/.bin/stryker");
const { status } = spawnSync(process.execPath, [stryker, "run", "tools/mutate/stryker.json"], {
  cwd: root,
  stdio: "inherit",
  env,
});
if (status !== 0) process.exit(status ?? 1);

const report = JSON.parse(readFileSync(REPORT, "utf8")) as Report;
const found = scores(report);
const broken = Object.values(report.files)
  .flatMap(({ mutants }) => mutants)
  .filter(({ status }) => status === "RuntimeError").length;
const sum = (of: "noticed" | "all"): number => found.reduce((total, one) => total + one[of], 0);
const percent = (noticed: number, all: number): string => ((100 * noticed) / Math.max(1, all)).toFixed(1);
for (const { file, noticed, all } of found)
  process.stdout.write(`${percent(noticed, all).padStart(5)} %  ${noticed} of ${all}  ${file}\n`);
const [noticed, all] = [sum("noticed"), sum("all")];
process.stdout.write(`mutation score ${percent(noticed, all)} %: ${noticed} of ${all} changes noticed\n`);
if (100 * broken > UNREADABLE * (all + broken)) {
  process.stdout.write(`${broken} changes could not be run at all: see the report, ${REPORT}\n`);
  process.exit(1);
}
process.exit(found.every((file) => 100 * file.noticed >= WANTED * file.all) ? 0 : 1);
