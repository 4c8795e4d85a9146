/** Evaluates a rule group as Prometheus does: states of alerts, samples to store, series that ended. */
import { messageOf } from "#core/assert.ts";
import { ALERT_LIMITS } from "../limits.ts";
import { Expander, type External } from "./texts.ts";
import type { Alert, AlertingRule, LabelMap, QueryFunction, RecordingRule, Rule, RuleGroup, Sample } from "./types.ts";

/** State of a rule between evaluations. */
export interface RuleState {
  /** By the key of their labels. */
  active: Map<string, Alert>;
  /** Series of the evaluation before; one that is missing from the next has ended. */
  series: Map<string, LabelMap>;
  error: string | undefined;
  evaluated_at_ms: number | undefined;
  duration_s: number;
}

/** Stores the samples of one rule, and the ends of series that it no longer returns. */
export type Append = (samples: readonly Sample[], ended: readonly LabelMap[], at_ms: number) => Promise<void>;

export interface GroupParts extends External {
  query: QueryFunction;
  append: Append;
  /** Milliseconds; measures how long an evaluation takes. */
  monotonic(): number;
}

export const newRuleState = (): RuleState => ({
  active: new Map(),
  series: new Map(),
  error: undefined,
  evaluated_at_ms: undefined,
  duration_s: 0,
});

export const keyOf = (labels: LabelMap): string =>
  JSON.stringify(Object.entries(labels).sort(([a], [b]) => (a < b ? -1 : 1)));

/** Rules are evaluated one after the other: each sees what the one before it recorded. */
export async function evaluateGroup(
  group: RuleGroup,
  states: readonly RuleState[],
  at_ms: number,
  parts: GroupParts,
): Promise<void> {
  for (const [at, rule] of group.rules.entries()) {
    const state = states[at];
    if (state) await evaluateRule(rule, state, at_ms, { ...parts, limit: group.limit });
  }
}

type RuleParts = GroupParts & { limit: number };

async function evaluateRule(rule: Rule, state: RuleState, at_ms: number, parts: RuleParts): Promise<void> {
  const started = parts.monotonic();
  state.evaluated_at_ms = at_ms;
  try {
    const result = await parts.query(rule.expr, at_ms);
    const samples =
      rule.kind === "recording" ? recorded(rule, result, parts) : await alerts(rule, state, result, at_ms, parts);
    const series = new Map(samples.map(({ labels }) => [keyOf(labels), labels]));
    const ended = [...state.series].filter(([key]) => !series.has(key)).map(([, labels]) => labels);
    await parts.append(samples, ended, at_ms);
    state.series = series;
    state.error = undefined;
  } catch (thrown) {
    state.error = messageOf(thrown);
  } finally {
    state.duration_s = (parts.monotonic() - started) / 1000;
  }
}

function recorded(rule: RecordingRule, result: readonly Sample[], { limit }: RuleParts): Sample[] {
  const samples = result.map(({ labels, value }) => ({
    labels: withLabels({ ...labels, __name__: rule.record }, rule.labels),
    value,
  }));
  if (new Set(samples.map(({ labels }) => keyOf(labels))).size < samples.length)
    throw new Error("vector contains metrics with the same labelset after applying rule labels");
  if (limit > 0 && samples.length > limit) throw new Error(`exceeded limit of ${limit} with ${samples.length} series`);
  return samples;
}

/** A label with an empty value is removed. */
function withLabels(labels: LabelMap, added: LabelMap): LabelMap {
  return Object.fromEntries(Object.entries({ ...labels, ...added }).filter(([, value]) => value !== ""));
}

async function alerts(
  rule: AlertingRule,
  state: RuleState,
  result: readonly Sample[],
  at_ms: number,
  parts: RuleParts,
): Promise<Sample[]> {
  const found = await foundAlerts(rule, result, at_ms, parts);
  for (const [key, alert] of found) {
    const known = state.active.get(key);
    if (known && known.state !== "inactive") {
      known.value = alert.value;
      known.annotations = alert.annotations;
    } else state.active.set(key, alert);
  }
  const samples: Sample[] = [];
  let count = 0;
  for (const [key, alert] of state.active) {
    if (!goesOn(rule, state, key, alert, found.has(key), at_ms)) continue;
    count++;
    if (alert.state === "pending" && at_ms - alert.active_at_ms >= rule.for_ms) {
      alert.state = "firing";
      alert.fired_at_ms = at_ms;
    }
    samples.push(
      { labels: { ...alert.labels, __name__: "ALERTS", alertstate: alert.state }, value: 1 },
      {
        labels: { ...alert.labels, __name__: "ALERTS_FOR_STATE" },
        value: Math.floor(alert.active_at_ms / 1000),
      },
    );
  }
  const limit = Math.min(parts.limit || ALERT_LIMITS.alerts_per_rule, ALERT_LIMITS.alerts_per_rule);
  if (count > limit) {
    state.active.clear();
    throw new Error(`exceeded limit of ${limit} with ${count} alerts`);
  }
  return samples;
}

/** The alerts of this result, with labels and annotations expanded. */
async function foundAlerts(
  rule: AlertingRule,
  result: readonly Sample[],
  at_ms: number,
  parts: RuleParts,
): Promise<Map<string, Alert>> {
  const most = ALERT_LIMITS.alerts_per_rule;
  if (result.length > most) throw new Error(`exceeded limit of ${most} with ${result.length} alerts`);
  const expander = new Expander(parts, parts.query, at_ms);
  const found = new Map<string, Alert>();
  for (const sample of result) {
    const { __name__: _, ...own } = sample.labels;
    const labels = withLabels(own, { ...(await expander.expand(rule.labels, sample)), alertname: rule.alert });
    const key = keyOf(labels);
    if (found.has(key)) throw new Error("vector contains metrics with the same labelset after applying alert labels");
    const annotations = await expander.expand(rule.annotations, sample);
    found.set(key, { labels, annotations, state: "pending", value: sample.value, active_at_ms: at_ms });
  }
  return found;
}

/** Whether an alert is still pending or firing; resolves it when its expression returns it no longer. */
function goesOn(
  rule: AlertingRule,
  { active }: RuleState,
  key: string,
  alert: Alert,
  isFound: boolean,
  at_ms: number,
): boolean {
  if (isFound) {
    delete alert.keep_firing_since_ms;
    return true;
  }
  if (alert.state === "firing" && rule.keep_firing_for_ms > 0) {
    alert.keep_firing_since_ms ??= at_ms;
    if (at_ms - alert.keep_firing_since_ms < rule.keep_firing_for_ms) return true;
  }
  const { resolved_at_ms } = alert;
  const isOver = resolved_at_ms !== undefined && at_ms - resolved_at_ms > ALERT_LIMITS.resolved_kept_ms;
  if (alert.state === "pending" || isOver) active.delete(key);
  else if (alert.state === "firing") {
    alert.state = "inactive";
    alert.resolved_at_ms = at_ms;
  }
  return false;
}
