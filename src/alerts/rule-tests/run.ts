/** Runs unit tests of rules as promtool does: all groups at every evaluation interval, from time 0. */
import { messageOf } from "#core/assert.ts";
import type { Dialect } from "#metrics/promql/ast.ts";
import { evaluateGroup, keyOf, newRuleState, type RuleState } from "../rules/group.ts";
import type { Alert, LabelMap, RuleGroup } from "../rules/types.ts";
import { durationText } from "../yaml/duration.ts";
import { MemoryDatabase } from "./memory-database.ts";
import type { AlertCase, ExprCase, RuleTest, TestFile } from "./test-file.ts";

interface RunningGroup {
  group: RuleGroup;
  states: RuleState[];
}

/** Evaluations of one test; more would seem to hang. */
const MOST_EVALUATIONS = 1_000_000;

/** Failures of the test; empty when it passes. */
export async function runRuleTest(
  { evaluation_interval_ms, group_eval_order }: TestFile,
  test: RuleTest,
  groups: readonly RuleGroup[],
  dialect: Dialect,
): Promise<string[]> {
  const database = filled(test, dialect);
  const running = ordered(groups, group_eval_order).map(
    (group): RunningGroup => ({ group, states: group.rules.map(newRuleState) }),
  );
  const { external_labels, external_url } = test;
  const { query, append } = database;
  const parts = { query, append, external_labels, external_url, monotonic: () => 0 };
  const failures: string[] = [];
  const cases = test.alerts.toSorted((a, b) => a.eval_time_ms - b.eval_time_ms);
  const last_ms = Math.max(0, ...[...test.alerts, ...test.exprs].map(({ eval_time_ms }) => eval_time_ms));
  if (last_ms / evaluation_interval_ms > MOST_EVALUATIONS)
    return [`the test needs more than ${MOST_EVALUATIONS} evaluations; choose a longer evaluation_interval`];
  let next = 0;
  for (let at_ms = 0; at_ms <= last_ms; at_ms += evaluation_interval_ms) {
    for (const { group, states } of running) await evaluateGroup(group, states, at_ms, parts);
    const errors = ruleErrors(running, at_ms);
    if (errors.length > 0) return [...failures, ...errors];
    for (; next < cases.length && (cases[next] as AlertCase).eval_time_ms < at_ms + evaluation_interval_ms; next++)
      failures.push(...alertFailures(cases[next] as AlertCase, running));
  }
  for (const one of test.exprs) failures.push(...(await exprFailures(one, database)));
  return failures;
}

function filled({ input, interval_ms }: RuleTest, dialect: Dialect): MemoryDatabase {
  const database = new MemoryDatabase(dialect);
  for (const { labels, values } of input)
    for (const [at, value] of values.entries()) if (value !== undefined) database.add(labels, at * interval_ms, value);
  return database;
}

/** Sorts groups by the given order; groups that are not in it come first, in file order. */
function ordered(groups: readonly RuleGroup[], order: readonly string[]): RuleGroup[] {
  return groups.toSorted((a, b) => order.indexOf(a.name) - order.indexOf(b.name));
}

function ruleErrors(running: readonly RunningGroup[], at_ms: number): string[] {
  return running.flatMap(({ group, states }) =>
    states.flatMap(({ error }, at) => {
      const rule = group.rules[at];
      const name = rule?.kind === "recording" ? rule.record : rule?.alert;
      return error === undefined ? [] : [`rule ${name} at ${durationText(at_ms)}: ${error}`];
    }),
  );
}

function alertFailures({ eval_time_ms, alertname, expected }: AlertCase, running: readonly RunningGroup[]): string[] {
  const firing = running.flatMap(({ group, states }) =>
    states.flatMap(({ active }, at) => {
      const rule = group.rules[at];
      return rule?.kind === "alerting" && rule.alert === alertname ? [...active.values()].filter(isFiring) : [];
    }),
  );
  const got = firing.map(shown).sort();
  const wanted = expected.map(shown).sort();
  if (got.join("\n") === wanted.join("\n")) return [];
  return [`${alertname} at ${durationText(eval_time_ms)}:\n${difference(wanted, got)}`];
}

const isFiring = ({ state }: Alert): boolean => state === "firing";

const shown = ({ labels, annotations }: { labels: LabelMap; annotations: LabelMap }): string =>
  `labels ${labelText(labels)} annotations ${labelText(annotations)}`;

const labelText = (labels: LabelMap): string =>
  `{${Object.entries(labels)
    .filter(([, value]) => value !== "")
    .sort(([a], [b]) => (a < b ? -1 : 1))
    .map(([name, value]) => `${name}=${JSON.stringify(value)}`)
    .join(", ")}}`;

const difference = (wanted: readonly string[], got: readonly string[]): string =>
  [
    "    expected:",
    ...(wanted.length === 0 ? ["      nothing"] : wanted.map((one) => `      ${one}`)),
    "    got:",
    ...(got.length === 0 ? ["      nothing"] : got.map((one) => `      ${one}`)),
  ].join("\n");

async function exprFailures({ expr, eval_time_ms, expected }: ExprCase, database: MemoryDatabase): Promise<string[]> {
  const where = `${expr} at ${durationText(eval_time_ms)}`;
  try {
    const got = (await database.query(expr, eval_time_ms)).toSorted(byLabels);
    const wanted = expected.toSorted(byLabels);
    const isSame =
      got.length === wanted.length &&
      got.every(({ labels, value }, at) => {
        const other = wanted[at];
        return other !== undefined && keyOf(labels) === keyOf(other.labels) && Object.is(value + 0, other.value + 0);
      });
    const text = ({ labels, value }: { labels: LabelMap; value: number }): string => `${labelText(labels)} ${value}`;
    return isSame ? [] : [`${where}:\n${difference(wanted.map(text), got.map(text))}`];
  } catch (thrown) {
    return [`${where}: ${messageOf(thrown)}`];
  }
}

const byLabels = (a: { labels: LabelMap }, b: { labels: LabelMap }): number =>
  keyOf(a.labels) < keyOf(b.labels) ? -1 : 1;
