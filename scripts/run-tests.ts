/** npm test [-- --all | text-of-a-path…]: the tests, at the sizes of every push. `--all`: also those of the night. */
import { parseArgs } from "node:util";
import { runTests } from "./test-groups.ts";

const { values, positionals } = parseArgs({ allowPositionals: true, options: { all: { type: "boolean" } } });
process.exit((await runTests(positionals, { tier: "push", ...(values.all ? { all: true } : {}) })) ? 0 : 1);
