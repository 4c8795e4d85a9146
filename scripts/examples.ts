/**
 * npm run examples: the examples that need a test runner of their own, run as their pages say. The others need nothing
 * that is not here, and are run by `npm test`.
 */
import { spawnSync } from "node:child_process";
import { readdirSync, readFileSync } from "node:fs";
import { join } from "node:path";

const root = join(import.meta.dirname, "..");
const folder = join(root, "examples");

/** `npx` as somebody who has installed the runner: it is found, and run by the Node that runs this. */
const NPX = `npx() { runner=$1; shift; "${process.execPath}" "${join(root, "tools/runners/node_modules/.bin")}/$runner" "$@"; }`;

let failed = 0;
for (const name of readdirSync(folder).sort()) {
  const page = readFileSync(join(folder, name, "README.md"), "utf8");
  for (const [, block = ""] of page.matchAll(/```sh runners\n([\s\S]*?)```/g)) {
    process.stdout.write(`\n== ${name}\n`);
    const env = { ...process.env, NODE_TEST_CONTEXT: undefined, CI: "1" };
    const { status } = spawnSync("bash", ["-c", `set -eu\n${NPX}\n${block}`], {
      cwd: join(folder, name),
      stdio: "inherit",
      env,
    });
    process.stdout.write(`${status === 0 ? "ok  " : "FAIL"} ${name}\n`);
    if (status !== 0) failed++;
  }
}
process.exit(failed === 0 ? 0 : 1);
