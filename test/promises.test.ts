/** The promises of docs/RELIABILITY.md, and the tests that name them. */
import assert from "node:assert/strict";
import { readdirSync, readFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { suite, test } from "node:test";
import { reliabilityPage, reliabilityTop } from "../scripts/prove/page.ts";
import { PROMISE_IDS, promisesOf } from "../scripts/prove/promises.ts";
import { proofsOf, readProofs } from "../scripts/prove/record.ts";
import { withBlock } from "../scripts/readme-block.ts";

const root = join(import.meta.dirname, "..");

suite("promises", () => {
  test("every promise that a test names exists", () => {
    const files = ["src", "test"].flatMap((folder) =>
      readdirSync(join(root, folder), { recursive: true, encoding: "utf8" })
        .filter((file) => /\.(test|suite)\.ts$/.test(file))
        .map((file) => join(root, folder, file)),
    );
    const names = files.flatMap((file) =>
      [...readFileSync(file, "utf8").matchAll(/\b(?:test|suite)\((["`])(.*?)\1/gs)].map(([, , name = ""]) => name),
    );
    const named = names.flatMap(promisesOf);
    assert.ok(named.length > PROMISE_IDS.size / 2, `only ${named.length} were found`);
    assert.deepEqual(
      named.filter((id) => !PROMISE_IDS.has(id)),
      [],
    );
  });

  test("RELIABILITY.md matches the recorded runs", () => {
    assert.equal(readFileSync(join(root, "docs/RELIABILITY.md"), "utf8"), reliabilityPage(readProofs()));
  });

  test("a run rewrites its lines in README.md and nothing else", () => {
    const readme = readFileSync(join(root, "README.md"), "utf8");
    for (const name of ["proved", "measured"]) {
      const [once, twice] = [["a", "b"], ["c"]].map((lines) => withBlock(readme, name, lines));
      assert.match(once ?? "", new RegExp(`<!-- ${name}: written by the run -->\\na\\nb\\n<!-- /${name} -->`));
      assert.equal(withBlock(once ?? "", name, ["c"]), twice);
    }
    assert.throws(() => withBlock("# Hangar", "proved", []), /no block proved/);
  });

  test("figures belong to the test before them, and a skipped test proves nothing", () => {
    const at = `${root}/a.test.ts:1`;
    const ended = { at, file: `${root}/a.test.ts`, promises: ["S1"], skipped: undefined, ms: 1234, passed: true };
    const proofs = proofsOf(
      [
        { ...ended, test: "one (S1)" },
        { at, said: "SEED=7" },
        { at, said: "60 kills" },
        { at, said: `kept as ${tmpdir()}/hangar-x/aside/db-7.db, by ${root}/src/main.ts` },
        { ...ended, test: "two (S1)", passed: false },
        { ...ended, test: "three (S1)", skipped: "no root" },
        { at, said: "said by one that was skipped" },
      ],
      { tier: "push", date: "2026-01-02" },
    );
    assert.deepEqual(
      proofs.map(({ test, seed, said, passed }) => ({ test, seed, said, passed })),
      [
        { test: "one (S1)", seed: "7", said: ["60 kills", "kept as db-7.db, by src/main.ts"], passed: true },
        { test: "two (S1)", seed: undefined, said: [], passed: false },
      ],
    );
    const page = reliabilityPage(proofs);
    assert.match(
      page,
      /\| S1 \|.*\*\*broken\*\*.*60 kills; kept as db-7.db, by src\/main.ts \(push, 2026-01-02, SEED=7\)/,
    );
    assert.match(page, /\| S2 \|.*\*\*pending\*\*/);
    assert.match(reliabilityTop(proofs)[0] ?? "", / 0 shown, \d+ pending, 1 broken\.$/);
    assert.match(reliabilityTop(proofs.filter(({ passed }) => passed))[0] ?? "", / 1 shown, \d+ pending, 0 broken\.$/);
  });
});
