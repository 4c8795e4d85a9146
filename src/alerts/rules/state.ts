/** The stored state of a group, which must survive a restart. */
import { keyOf, newRuleState, type RuleState } from "./group.ts";
import type { Alert, RuleGroup } from "./types.ts";

interface StoredRule {
  /** Identity of the rule: another rule at its index does not take over its alerts. */
  rule: string;
  error?: string;
  evaluated_at_ms?: number;
  duration_s: number;
  active: Alert[];
}

const nameOf = ({ rules }: RuleGroup, at: number): string => {
  const rule = rules[at];
  return rule?.kind === "recording" ? `record ${rule.record}` : `alert ${rule?.alert}`;
};

export function storedState(group: RuleGroup, states: readonly RuleState[]): string {
  const rules = states.map(
    ({ error, evaluated_at_ms, duration_s, active }, at): StoredRule => ({
      rule: nameOf(group, at),
      ...(error === undefined ? {} : { error }),
      ...(evaluated_at_ms === undefined ? {} : { evaluated_at_ms }),
      duration_s,
      active: [...active.values()],
    }),
  );
  return JSON.stringify(rules);
}

/** Only changes of these are stored at once; values and times of evaluations wait for the next renewal. */
export function transitionsOf(states: readonly RuleState[]): string {
  return JSON.stringify(
    states.map(({ error, active }) => [
      error ?? "",
      Array.from(active, ([key, { state, active_at_ms, resolved_at_ms = 0, keep_firing_since_ms = 0 }]) => [
        key,
        state,
        active_at_ms,
        resolved_at_ms,
        keep_firing_since_ms,
      ]),
    ]),
  );
}

/** The states of a group's rules, restored where they were stored. */
export function restoredStates(group: RuleGroup, stored: string | undefined): RuleState[] {
  const left = stored === undefined ? [] : (JSON.parse(stored) as StoredRule[]);
  return group.rules.map((_, at) => {
    const place = left.findIndex(({ rule }) => rule === nameOf(group, at));
    const [found] = place < 0 ? [] : left.splice(place, 1);
    return found ? restored(found) : newRuleState();
  });
}

function restored({ error, evaluated_at_ms, duration_s, active }: StoredRule): RuleState {
  const state = newRuleState();
  for (const alert of active) state.active.set(keyOf(alert.labels), alert);
  // The series that this rule wrote last, so that they are marked stale when the next evaluation does not return them.
  for (const { labels, state: alertstate } of active.filter((alert) => alert.state !== "inactive"))
    for (const series of [
      { ...labels, __name__: "ALERTS", alertstate },
      { ...labels, __name__: "ALERTS_FOR_STATE" },
    ])
      state.series.set(keyOf(series), series);
  return { ...state, error, evaluated_at_ms, duration_s };
}

/** Time without evaluations does not count for `for`: pending alerts wait that much longer. */
export function leaveOut(states: readonly RuleState[], gap_ms: number): void {
  for (const { active } of states)
    for (const alert of active.values()) if (alert.state === "pending") alert.active_at_ms += gap_ms;
}
