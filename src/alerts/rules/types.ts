/** Parsed rule groups in Prometheus' format. All durations are milliseconds. */

export type LabelMap = Readonly<Record<string, string>>;

interface RuleBase {
  expr: string;
  labels: LabelMap;
}

/** Stores the result of its expression as a series of this name. */
export interface RecordingRule extends RuleBase {
  kind: "recording";
  record: string;
}

/** Fires for each series that its expression returns, after `for_ms`. */
export interface AlertingRule extends RuleBase {
  kind: "alerting";
  alert: string;
  for_ms: number;
  keep_firing_for_ms: number;
  annotations: LabelMap;
}

export type Rule = RecordingRule | AlertingRule;

export interface RuleGroup {
  name: string;
  /** The default interval when absent. */
  interval_ms?: number;
  /** Maximum number of alerts or series of each rule; 0 is no limit. */
  limit: number;
  rules: readonly Rule[];
}

/** An alert that is pending, firing, or recently resolved. */
export interface Alert {
  labels: LabelMap;
  annotations: LabelMap;
  state: "pending" | "firing" | "inactive";
  value: number;
  active_at_ms: number;
  fired_at_ms?: number;
  resolved_at_ms?: number;
  keep_firing_since_ms?: number;
}

/** A sample that a rule returns. */
export interface Sample {
  labels: LabelMap;
  value: number;
}

/** Runs an instant query. A scalar is one sample without labels. */
export type QueryFunction = (expr: string, at_ms: number) => Promise<Sample[]>;
