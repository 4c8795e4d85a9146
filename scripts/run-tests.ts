/** npm test [-- text-of-a-path…]: the tests, at the sizes of every push. */
import { runTests } from "./test-groups.ts";

process.exit((await runTests(process.argv.slice(2), "push")) ? 0 : 1);
