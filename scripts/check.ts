/** What every commit passes: format and lint, types, unawaited promises, repository rules. `--fix` fixes what can be fixed automatically. */
import { spawnSync } from "node:child_process";
import { join } from "node:path";

const root = join(import.meta.dirname, "..");
const fix = process.argv.includes("--fix");
const tool = (name: string): string => join(root, "tools/node_modules/.bin", name);

const steps: [string, string, string[]][] = [
  ["format and lint", tool("biome"), ["check", "--error-on-warnings", ...(fix ? ["--write"] : []), "."]],
  ["types", join(root, "node_modules/.bin/tsc"), []],
  ["types of the pages", join(root, "node_modules/.bin/tsc"), ["-p", "web"]],
  ["unawaited promises", tool("oxlint"), ["--type-aware", "src", "web", "test", "bench", "scripts"]],
  ["repository rules", process.execPath, ["--test", "--test-reporter=dot", "test/tidy.test.ts"]],
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
