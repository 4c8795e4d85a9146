/** The load / eval scripts of test/promql: `strict.test` and its likes in the strict dialect, the others in MetricsQL. */
import assert from "node:assert/strict";
import { readdirSync, readFileSync } from "node:fs";
import { join } from "node:path";
import { suite, test } from "node:test";
import { judge } from "../../../test/promql/judge.ts";
import { parseScript } from "../../../test/promql/script.ts";
import { Storage } from "../../../test/promql/storage.ts";

const folder = join(import.meta.dirname, "../../../test/promql");

for (const file of readdirSync(folder).filter((name) => name.endsWith(".test"))) {
  suite(file, () => {
    const strict = file.endsWith("strict.test");
    const storage = new Storage();
    for (const command of parseScript(readFileSync(join(folder, file), "utf8"))) {
      if (command.type === "unreadable") throw new Error(`line ${command.line}: ${command.reason}`);
      if (command.type === "clear") storage.clear();
      else if (command.type === "load") storage.load(command.step_ms, command.series);
      else {
        const source = storage.source();
        test(`line ${command.line}: ${command.expr}`, () => {
          const wrong = judge(command, { source, dialect: strict ? "promql" : "metricsql", replay: strict });
          assert.equal(wrong, undefined);
        });
      }
    }
  });
}
