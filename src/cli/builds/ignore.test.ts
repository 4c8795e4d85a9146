import assert from "node:assert/strict";
import { suite, test } from "node:test";
import { ignoreRules } from "./ignore.ts";

/** The cases of Docker's reference and of moby's patternmatcher: the file, what is left out, what stays. */
const CASES: readonly [string, string[], string[]][] = [
  ["# comment\n*/temp*", ["somedir/temporary.txt", "somedir/temp"], ["temp", "a/b/temp"]],
  ["*/*/temp*", ["somedir/subdir/temporary.txt"], ["somedir/temp"]],
  ["temp?", ["tempa", "tempb"], ["temp", "tempab"]],
  ["**/*.go", ["a.go", "a/b/c.go"], ["a.gox"]],
  ["*.md\n!README.md", ["a.md"], ["README.md", "docs/a.md"]],
  ["*.md\n!README*.md\nREADME-secret.md", ["a.md", "README-secret.md"], ["README-more.md"]],
  ["*.md\nREADME-secret.md\n!README*.md", ["a.md"], ["README-secret.md"]],
  ["/foo/bar", ["foo/bar", "foo/bar/baz"], ["bar", "a/foo/bar"]],
  ["foo/../bar/", ["bar", "bar/x"], ["foo"]],
  ["node_modules", ["node_modules", "node_modules/a/b"], ["a/node_modules"]],
  ["**/node_modules", ["node_modules", "a/b/node_modules/c"], ["node_modules2"]],
  ["docs\n!docs/README.md", ["docs/a"], ["docs/README.md"]],
  ["a[b-d]e", ["abe", "ade"], ["aae", "aee"]],
  ["**", ["a", "a/b"], []],
  ["a**/d", ["ab/c/d"], ["b/d"]],
  ["a\\*b", ["a*b"], ["axb"]],
  ["a.b", ["a.b"], ["axb"]],
  [".", [], ["a"]],
  ["", [], ["a"]],
];

suite(".dockerignore", () => {
  for (const [text, left_out, kept] of CASES)
    test(JSON.stringify(text), () => {
      const rules = ignoreRules(text);
      for (const path of left_out) assert.equal(rules.ignores(path), true, `${path} is left out`);
      for (const path of kept) assert.equal(rules.ignores(path), false, `${path} stays`);
    });
});
