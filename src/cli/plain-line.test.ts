import assert from "node:assert/strict";
import { suite, test } from "node:test";
import { readPlainLine } from "./plain-line.ts";
import { runProgram } from "./program.ts";
import type { Typed } from "./run-verb.ts";
import type { Verb } from "./verb.ts";
import { allVerbs } from "./verbs.ts";

/** Parses a line with commander, as the reference. */
async function readByCommander(verbs: readonly Verb[], words: readonly string[]): Promise<[string, Typed]> {
  const read: [string, Typed][] = [];
  await runProgram(verbs, words, async (verb, typed) => void read.push([verb.words, typed]));
  assert.ok(read[0], words.join(" "));
  return read[0];
}

/** The arguments of an example without shell syntax. */
const wordsOf = (example: string): string[] | undefined =>
  /["'$|<>\\]/.test(example) ? undefined : example.split(" ").slice(1);

/** Each command with as many arguments as it may have, alone and with each of its options. */
function linesOf(verb: Verb): string[][] {
  const args = (verb.arguments ?? []).filter(([name]) => !name.includes("...")).map((_, at) => `word${at}`);
  const head = [...verb.words.split(" "), ...args];
  const options = [...(verb.options ?? []), ["--json", ""] as const, ["--url <address>", ""] as const];
  const with_each = options.flatMap(([flags]) =>
    (flags.match(/--?[\w-]+(?=[, ]|$)/g) ?? []).map((flag) => (flags.includes("<") ? [flag, "value"] : [flag])),
  );
  return [head, ...with_each.map((option) => [...head, ...option])];
}

suite("fast path of the command line parser", () => {
  test("every command, option and example is parsed as commander does", async () => {
    const verbs = await allVerbs();
    const lines = verbs.flatMap((verb) => [
      ...linesOf(verb),
      ...verb.examples.flatMap((example) => {
        const words = wordsOf(example);
        return words ? [words] : [];
      }),
    ]);
    let plain = 0;
    for (const words of lines) {
      const found = readPlainLine(verbs, words);
      if (!found) continue;
      plain++;
      const [verb, typed] = await readByCommander([found.verb], words);
      assert.deepEqual(
        [found.verb.words, found.typed],
        [verb, { ...typed, options: { ...typed.options } }],
        words.join(" "),
      );
    }
    assert.ok(plain > lines.length / 2, `${plain} of ${lines.length} lines are plain`);
  });

  test("aliases are accepted, and options before, between and after arguments", async () => {
    const verbs = await allVerbs();
    for (const line of ["m ls", "machines stop --app web one --json", "apps rm one", "machine show -a web one"]) {
      const words = line.split(" ");
      const found = readPlainLine(verbs, words);
      const [verb, typed] = await readByCommander(verbs, words);
      assert.deepEqual([found?.verb.words, found?.typed], [verb, { ...typed, options: { ...typed.options } }], line);
    }
  });

  test("an ambiguous command line is left to commander", async () => {
    const verbs = await allVerbs();
    for (const line of [
      "",
      "nothing",
      "machines",
      "machines nothing",
      "--json machines list",
      "machines list --help",
      "machines list -h",
      "machines list --app=web",
      "machines list -aweb",
      "machines list --app",
      "machines list --app --json",
      "machines list --state started stopped",
      "machines list --no-json",
      "machines list one",
      "machines list -- one",
      "machines list -",
      "machines exec one ls",
      "volumes create data --size 1",
      "machines show one two",
    ])
      assert.equal(readPlainLine(verbs, line.split(" ")), undefined, line);
  });
});
