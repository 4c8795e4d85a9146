/**
 * All tests, in groups, one after the other. Fast tests share one process; system tests (kills, power cuts, real servers)
 * have one each; those with a browser run when no machine comes or goes, as Chromium breaks off what it is loading
 * whenever a network device of the host appears.
 */
import { spawnSync } from "node:child_process";
import { readdirSync } from "node:fs";
import { join, relative } from "node:path";

/** How large tests are: at every push, at night, and when there is a day. */
export const TIERS = ["push", "night", "soak"] as const;
export type Tier = (typeof TIERS)[number];

const root = join(import.meta.dirname, "..");

function testFiles(folder: string, wanted: readonly string[]): string[] {
  return readdirSync(join(root, folder), { recursive: true, withFileTypes: true })
    .filter((entry) => entry.isFile() && entry.name.endsWith(".test.ts"))
    .map((entry) => relative(root, join(entry.parentPath, entry.name)))
    .filter((file) => wanted.length === 0 || wanted.some((text) => file.includes(text)))
    .sort();
}

const isIn =
  (folder: string) =>
  (file: string): boolean =>
    file.startsWith(`test/${folder}/`);
const [isSystem, isBrowser] = [isIn("system"), isIn("browser")];

export interface Watching {
  /** A module that is told what the tests say, and the file that takes its words. */
  reporter: { module: string; file: string };
  /** Called after each group. */
  done(): void;
}

/** Runs the files whose path holds one of these texts, or all. Answers whether all went well. */
export function runTests(wanted: readonly string[], tier: Tier, watching?: Watching): boolean {
  const files = [...testFiles("src", wanted), ...testFiles("test", wanted)];
  if (files.length === 0) {
    process.stderr.write(`no test file has ${wanted.join(" or ")} in its path\n`);
    return false;
  }
  const groups: [string, string[], string[]][] = [
    ["fast tests", files.filter((file) => !isSystem(file) && !isBrowser(file)), ["--test-isolation=none"]],
    ["system tests", files.filter(isSystem), ["--test-concurrency=2"]],
    ["browser tests", files.filter(isBrowser), ["--test-concurrency=2"]],
  ];
  // A test that failed may leave something open: the run still ends, with that failure in it. Proofs take their time.
  const ending = ["--test-force-exit", ...(tier === "push" ? [`--test-timeout=${10 * 60_000}`] : [])];
  const shown = process.env["CI"] || process.stdout.isTTY ? "spec" : "dot";
  const reporters = [
    [shown, "stdout"],
    ...(watching ? [[watching.reporter.module, watching.reporter.file]] : []),
  ].flatMap(([reporter, place]) => [`--test-reporter=${reporter}`, `--test-reporter-destination=${place}`]);
  const env = { ...process.env, ...(tier === "push" ? {} : { HANGAR_PROVE: tier }) };
  let well = true;
  for (const [name, group, flags] of groups) {
    if (group.length === 0) continue;
    process.stdout.write(`\n== ${name} (${group.length} files)\n`);
    const args = ["--test", ...flags, ...ending, ...reporters, ...group];
    const { status } = spawnSync(process.execPath, args, { cwd: root, stdio: "inherit", env });
    watching?.done();
    well &&= status === 0;
  }
  return well;
}
