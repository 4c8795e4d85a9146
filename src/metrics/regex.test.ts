import assert from "node:assert/strict";
import { suite, test } from "node:test";
import { compileRegex, regexError, replaceAll, replaceWhole } from "./regex.ts";

suite("label regular expressions", () => {
  test("a pattern matches the whole value, in RE2 syntax", () => {
    const cases: [string, string, boolean][] = [
      ["a", "a", true],
      ["a", "ab", false],
      ["a|b|", "", true],
      ["a.*", "abc", true],
      ["a.+", "a", false],
      [".*", "x\ny", true],
      ["a.*", "a\n", true],
      ["[ab]+", "abab", true],
      ["(?i)WEB", "web", true],
      ["\\d{3}", "200", true],
      ["a|bc", "abc", false],
      ["^a$", "a", true],
      ["web-.+|api", "web-1", true],
    ];
    for (const [pattern, value, wanted] of cases)
      assert.equal(compileRegex(pattern)(value), wanted, `${pattern} on ${value}`);
  });

  test("an invalid RE2 pattern is refused with the reason", () => {
    for (const pattern of ["(", "[a", "a**", "(?<=a)b", "\\1"]) assert.ok(regexError(pattern), pattern);
    assert.equal(regexError("(a|b)+"), undefined);
  });

  test("replacements refer to groups as in Go", () => {
    assert.equal(replaceWhole("(\\w+)-(\\d+)", "$2:$" + "{1}")("web-12"), "12:web");
    assert.equal(replaceWhole("(?P<app>\\w+)-.*", "$" + "{app}")("web-12"), "web");
    assert.equal(replaceWhole("(a)(b)?", "<$1$2$9>$$")("a"), "<a>$");
    assert.equal(replaceWhole("a", "x")("ab"), undefined);
    assert.equal(replaceAll("[0-9]+", "<$0>")("a1b22"), "a<1>b<22>");
    assert.equal(replaceAll("z", "x")("abc"), undefined);
  });

  test("patterns that make backtracking engines hang run in linear time (T7)", () => {
    const long = "a".repeat(64 * 1024);
    const bad = [
      "(a+)+$",
      "(a|a)*b",
      "(a*)*b",
      "(a|aa)+$",
      "(.*a){20}b",
      "^(([a-z])+.)+[A-Z]([a-z])+$",
      "(x+x+)+y",
      "(\\w+\\s?)*$!",
    ];
    for (const pattern of bad) {
      const matches = compileRegex(pattern);
      // The best of three, since the first run also pays for compiling the engine.
      const times = ["!", "?", "#"].map((end) => {
        const before = process.cpuUsage();
        matches(long + end);
        const used = process.cpuUsage(before);
        return (used.user + used.system) / 1000;
      });
      assert.ok(Math.min(...times) < 100, `${pattern} took ${times.join(", ")} ms`);
    }
  });
});
