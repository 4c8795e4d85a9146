/** Unit tests of rules next to Debian's promtool: the same files, the same verdicts, the same texts of alerts. */
import assert from "node:assert/strict";
import { spawnSync } from "node:child_process";
import { existsSync, readdirSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { suite, test } from "node:test";
import { random, seed, tempDir } from "../support.ts";

const ROOT = join(import.meta.dirname, "../..");
const FILES = join(ROOT, "test/rules");
const PROMTOOL = "/usr/bin/promtool";
const skip = existsSync(PROMTOOL) ? undefined : "needs promtool: apt-get install prometheus";

const ours = (file: string) =>
  spawnSync(process.execPath, [join(ROOT, "src/alerts/test-rules.ts"), file], { encoding: "utf8" });
const theirs = (file: string) => spawnSync(PROMTOOL, ["test", "rules", file], { encoding: "utf8" });

/** The texts of alerts by their label `kind`, as either program prints what it got. */
function texts(printed: string, form: RegExp): Map<string, Map<string, string>> {
  const found = new Map<string, Map<string, string>>();
  for (const [, labels = "", annotations = ""] of printed.matchAll(form)) {
    const kind = /kind="(\w+)"/.exec(labels)?.[1];
    const pairs = [...annotations.matchAll(/(\w+)="((?:[^"\\]|\\.)*)"/g)];
    if (kind) found.set(kind, new Map(pairs.map(([, name = "", text = ""]) => [name, text])));
  }
  return found;
}

suite("unit tests of rules, next to promtool", { skip }, () => {
  test("files pass and fail as with promtool", () => {
    const files = readdirSync(FILES).filter((file) => file.endsWith(".test.yml"));
    assert.ok(files.length >= 3);
    for (const file of files) {
      const path = join(FILES, file);
      const own = ours(path);
      const other = theirs(path);
      assert.equal(own.status === 0, other.status === 0, `${file}:\n${own.stdout}\n${other.stdout}${other.stderr}`);
    }
  });

  test("templates give the same texts for the same numbers", (t) => {
    const next = random(seed(t));
    const odd = [
      "0",
      "1",
      "-1",
      "0.5",
      "1e21",
      "1e-7",
      "1e6",
      "999999",
      "3661",
      "90061",
      "-3661",
      "1048576",
      "Inf",
      "NaN",
    ];
    const values = [
      ...odd,
      ...Array.from({ length: 40 }, () => String((next() - 0.3) * 10 ** Math.round(next() * 14 - 5))),
    ];
    const series = values.map((value, at) => `{series: 'numbers{kind="k${at}"}', values: '${value} ${value}'}`);
    const path = join(tempDir(), "numbers.test.yml");
    writeFileSync(
      path,
      `rule_files: [${join(FILES, "rules.yml")}]
tests:
  - interval: 1m
    external_labels: {cluster: here}
    external_url: http://h.example/base
    input_series: [{series: 'up{instance="a", __value__="v"}', values: '0 0'}, ${series.join(", ")}]
    alert_rule_test: [{eval_time: 1m, alertname: Formats}]
`,
    );
    const own = texts(ours(path).stdout, /labels \{(.*?)\} annotations \{(.*)\}/g);
    const other = texts(theirs(path).stderr, /Labels:\{(.*?)\}\n\s+Annotations:\{(.*)\}/g);
    assert.equal(other.size, values.length);
    for (const [kind, wanted] of other)
      for (const [name, text] of wanted) {
        // A whole number beyond int64 is Go's overflow; the error names the same fault in other words.
        if (text.startsWith("<error")) assert.match(own.get(kind)?.get(name) ?? "", /^<error/);
        else if (!/-106751991167300d/.test(text)) assert.equal(own.get(kind)?.get(name), text, `${name} of ${kind}`);
      }
  });
});
