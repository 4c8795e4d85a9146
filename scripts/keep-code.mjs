// Runs the bundle of the command, and keeps the code that V8 made of all that was run; bin/hangar.mjs starts from it.
//   node keep-code.mjs BUNDLE CODE words of a command…
import { readFileSync, writeFileSync } from "node:fs";
import module from "node:module";
import { dirname } from "node:path";
import { Script } from "node:vm";

const [bundle, code] = process.argv.splice(2, 2);
const script = new Script(module.wrap(readFileSync(bundle, "latin1")), { filename: bundle });
process.on("exit", () => {
  writeFileSync(code, script.createCachedData());
  process.exitCode = 0;
});
const cli = { exports: {} };
script.runInThisContext()(cli.exports, module.createRequire(bundle), cli, bundle, dirname(bundle));
