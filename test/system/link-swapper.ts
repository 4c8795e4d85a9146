/** Exchanges a folder and a file for links out of the tree, and back, as fast as it can: `link-swapper.ts ROOT`. */
import { join } from "node:path";
import { AT_FDCWD, call } from "#drivers/linux/calls.ts";

/** At once, so that there is never nothing at the name. */
const RENAME_EXCHANGE = 2;
const renameat2 = call("renameat2", ["int", "str", "int", "str", "uint"]);

const [root = ""] = process.argv.slice(2);
const pairs = ["folder", "file"].map((name) => [join(root, name), join(root, `${name}.link`)] as const);
process.stdout.write("ready\n");
for (;;) for (const [one, other] of pairs) renameat2(one, AT_FDCWD, one, AT_FDCWD, other, RENAME_EXCHANGE);
