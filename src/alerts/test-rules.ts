/**
 * Unit tests of rules, in promtool's format: `test-rules.ts [--json] [--dialect promql|metricsql] FILES…`. Needs no
 * platform. Exits with 1 when a test fails, with 2 when a file cannot be read.
 */
import { globSync, readFileSync } from "node:fs";
import { dirname, resolve } from "node:path";
import { parseArgs } from "node:util";
import { messageOf } from "#core/assert.ts";
import type { Dialect } from "#metrics/promql/ast.ts";
import { runRuleTest } from "./rule-tests/run.ts";
import { parseTestFile } from "./rule-tests/test-file.ts";
import { parseRuleFile } from "./rules/rule-file.ts";
import type { RuleGroup } from "./rules/types.ts";

interface FileResult {
  file: string;
  passed: number;
  failures: { test: string; text: string }[];
  /** Why the file could not be run. */
  problems: string[];
}

async function runFile(file: string, dialect: Dialect): Promise<FileResult> {
  const result: FileResult = { file, passed: 0, failures: [], problems: [] };
  try {
    const tests = await parseTestFile(readFileSync(file, "utf8"));
    const groups: RuleGroup[] = [];
    result.problems.push(...tests.problems);
    for (const path of tests.rule_files.flatMap((pattern) => filesOf(resolve(dirname(file), pattern)))) {
      const rules = await parseRuleFile(readFileSync(path, "utf8"), dialect);
      groups.push(...rules.groups);
      result.problems.push(...rules.problems.map((problem) => `${path}: ${problem}`));
    }
    if (result.problems.length > 0) return result;
    for (const [at, test] of tests.tests.entries()) {
      const failures = await runRuleTest(tests, test, groups, dialect);
      if (failures.length === 0) result.passed++;
      result.failures.push(...failures.map((text) => ({ test: test.name || `test ${at + 1}`, text })));
    }
  } catch (thrown) {
    result.problems.push(messageOf(thrown));
  }
  return result;
}

/** A pattern may match several files; a plain path must exist. */
const filesOf = (pattern: string): string[] => (/[*?[]/.test(pattern) ? globSync(pattern).sort() : [pattern]);

function report({ file, passed, failures, problems }: FileResult): string {
  const lines = [
    ...problems.map((problem) => `  ${problem}`),
    ...failures.map(({ test, text }) => `  ${test}: ${text}`),
  ];
  const isGood = lines.length === 0;
  return [`${file}: ${isGood ? `passed (${passed})` : "FAILED"}`, ...lines].join("\n");
}

async function main(): Promise<void> {
  const { values, positionals } = parseArgs({
    options: { json: { type: "boolean" }, dialect: { type: "string", default: "promql" } },
    allowPositionals: true,
  });
  const dialect = values.dialect === "metricsql" ? "metricsql" : "promql";
  const results: FileResult[] = [];
  for (const file of positionals) results.push(await runFile(file, dialect));
  process.stdout.write(
    values.json ? `${JSON.stringify(results, undefined, 2)}\n` : `${results.map(report).join("\n")}\n`,
  );
  if (results.some(({ problems }) => problems.length > 0)) process.exitCode = 2;
  else if (results.some(({ failures }) => failures.length > 0)) process.exitCode = 1;
}

await main();
