/** What every commit passes: types, looks, promises, and the house rules. `--fix` mends what can be mended. */
import { spawnSync } from "node:child_process";
import { join } from "node:path";

const root = join(import.meta.dirname, "..");
const fix = process.argv.includes("--fix");
const tool = (name: string): string => join(root, "tools/node_modules/.bin", name);

const steps: [string, string, string[]][] = [
  ["looks", tool("biome"), ["check", "--error-on-warnings", ...(fix ? ["--write"] : []), "."]],
  ["types", join(root, "node_modules/.bin/tsc"), []],
  ["types of the pages", join(root, "node_modules/.bin/tsc"), ["-p", "web"]],
  ["promises", tool("oxlint"), ["--type-aware", "src", "web", "test", "bench", "scripts"]],
  ["house", process.execPath, ["--test", "--test-reporter=dot", "test/tidy.test.ts"]],
];

let failed = false;
for (const [what, command, args] of steps) {
  const started = performance.now();
  const env = { ...process.env, OXLINT_TSGOLINT_PATH: tool("tsgolint") };
  const { status } = spawnSync(command, args, { cwd: root, stdio: "inherit", env });
  const seconds = ((performance.now() - started) / 1000).toFixed(1);
  process.stdout.write(`${status === 0 ? "ok  " : "FAIL"} ${what} (${seconds} s)\n`);
  failed ||= status !== 0;
}
process.exit(failed ? 1 : 0);
