/**
 * npm test: everything, in two groups. Fast tests share one process; system tests (kills, power cuts, real
 * servers) have one each. `npm test -- src/http` runs the files whose path holds that text; `npm run prove`
 * runs the same with the full figures.
 */
import { spawnSync } from "node:child_process";
import { readdirSync } from "node:fs";
import { join, relative } from "node:path";

const root = join(import.meta.dirname, "..");
const args = process.argv.slice(2);
const wanted = args.filter((arg) => !arg.startsWith("--"));

function testFiles(folder: string): string[] {
  return readdirSync(join(root, folder), { recursive: true, withFileTypes: true })
    .filter((entry) => entry.isFile() && entry.name.endsWith(".test.ts"))
    .map((entry) => relative(root, join(entry.parentPath, entry.name)))
    .filter((file) => wanted.length === 0 || wanted.some((text) => file.includes(text)))
    .sort();
}

const files = [...testFiles("src"), ...testFiles("test")];
const isSystem = (file: string): boolean => file.startsWith("test/system/");
const groups: [string, string[], string[]][] = [
  ["fast tests", files.filter((file) => !isSystem(file)), ["--test-isolation=none"]],
  ["system tests", files.filter(isSystem), ["--test-concurrency=2"]],
];
const proving = args.includes("--prove");
// A test that failed may leave something open: the run still ends, with that failure in it. Proofs take their time.
const ending = ["--test-force-exit", ...(proving ? [] : [`--test-timeout=${10 * 60_000}`])];

if (files.length === 0) {
  process.stderr.write(`no test file has ${wanted.join(" or ")} in its path\n`);
  process.exit(1);
}
const env = { ...process.env, ...(proving ? { HANGAR_PROVE: "1" } : {}) };
let failed = false;
for (const [name, group, flags] of groups) {
  if (group.length === 0) continue;
  process.stdout.write(`\n== ${name} (${group.length} files)\n`);
  const reporter = process.stdout.isTTY ? "spec" : "dot";
  const reporters = [`--test-reporter=${process.env["CI"] ? "spec" : reporter}`, "--test-reporter-destination=stdout"];
  const { status } = spawnSync(process.execPath, ["--test", ...flags, ...ending, ...reporters, ...group], {
    cwd: root,
    stdio: "inherit",
    env,
  });
  failed ||= status !== 0;
}
process.exit(failed ? 1 : 0);
