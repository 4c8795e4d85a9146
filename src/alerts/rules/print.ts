/** Writes rule groups as a rule file. */
import { durationText } from "../yaml/duration.ts";
import type { Rule, RuleGroup } from "./types.ts";

export async function printRuleFile(groups: readonly RuleGroup[]): Promise<string> {
  const { stringify } = await import("yaml");
  return stringify({ groups: groups.map(groupFields) }, { lineWidth: 0 });
}

const groupFields = ({ name, interval_ms, limit, rules }: RuleGroup) => ({
  name,
  ...(interval_ms === undefined ? {} : { interval: durationText(interval_ms) }),
  ...(limit === 0 ? {} : { limit }),
  rules: rules.map(ruleFields),
});

function ruleFields(rule: Rule): object {
  const labels = filled("labels", rule.labels);
  if (rule.kind === "recording") return { record: rule.record, expr: rule.expr, ...labels };
  return {
    alert: rule.alert,
    expr: rule.expr,
    ...(rule.for_ms === 0 ? {} : { for: durationText(rule.for_ms) }),
    ...(rule.keep_firing_for_ms === 0 ? {} : { keep_firing_for: durationText(rule.keep_firing_for_ms) }),
    ...labels,
    ...filled("annotations", rule.annotations),
  };
}

const filled = (name: string, map: object): object => (Object.keys(map).length === 0 ? {} : { [name]: map });
