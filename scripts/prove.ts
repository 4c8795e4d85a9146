/**
 * npm run prove: the tests at the sizes of a tier, and docs/RELIABILITY.md with what they showed.
 *
 *   npm run prove [-- text-of-a-path… --tier push|night|soak]
 *   npm run prove -- --box debian13|debian12-v2      in a freshly installed system under QEMU
 *   npm run prove -- --box debian13 --only B3        only the tests that show this promise
 */
import { mkdtempSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { parseArgs } from "node:util";
import { BOX_NAMES } from "./prove/box/boxes.ts";
import { reliabilityPage, reliabilityTop } from "./prove/page.ts";
import { keepProofs, proofsOf, readProofs } from "./prove/record.ts";
import type { Line } from "./prove/reporter.ts";
import { writeReadmeBlock } from "./readme-block.ts";
import { runTests, TIERS, type Tier, type Watching } from "./test-groups.ts";

const { values, positionals } = parseArgs({
  allowPositionals: true,
  options: { tier: { type: "string", default: "night" }, box: { type: "string" }, only: { type: "string" } },
});
const tier = TIERS.find((one) => one === values.tier);
if (!tier) {
  process.stderr.write(`--tier is one of ${TIERS.join(", ")}, not ${values.tier}\n`);
  process.exit(2);
}
if (values.box !== undefined) {
  if (!BOX_NAMES.includes(values.box)) {
    process.stderr.write(`--box is one of ${BOX_NAMES.join(", ")}, not ${values.box}\n`);
    process.exit(2);
  }
  process.env["HANGAR_BOX"] = values.box;
}
const wanted = values.box !== undefined && positionals.length === 0 ? ["test/system/box-"] : positionals;
process.exit((await prove(wanted, tier)) ? 0 : 1);

async function prove(wanted: readonly string[], tier: Tier): Promise<boolean> {
  const dir = mkdtempSync(join(tmpdir(), "hangar-prove-"));
  try {
    const date = new Date().toISOString().slice(0, 10);
    const watching: Watching = {
      reporter: join(import.meta.dirname, "prove/reporter.ts"),
      fileOf: (group) => join(dir, group),
      // After each group, so that what was shown is kept when a later one is broken off.
      done(group) {
        const lines = readFileSync(join(dir, group), "utf8").trim().split("\n").filter(Boolean);
        keepProofs(
          proofsOf(
            lines.map((line) => JSON.parse(line) as Line),
            { tier, date },
          ),
        );
        writeFileSync(join(import.meta.dirname, "../docs/RELIABILITY.md"), reliabilityPage(readProofs()));
        writeReadmeBlock("proved", reliabilityTop(readProofs()));
      },
    };
    return await runTests(wanted, { tier, only: values.only, watching });
  } finally {
    rmSync(dir, { recursive: true, force: true });
  }
}
