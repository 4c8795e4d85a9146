/** Rules and alerts in the format of Prometheus' API, which Grafana reads. */
import { createHash } from "node:crypto";
import { isoTime } from "#core/clock.ts";
import { fail } from "#core/errors.ts";
import { orgOf } from "#http/access.ts";
import { type Row, route } from "#http/route.ts";
import { Type } from "#http/schema.ts";
import { ALERT_LIMITS } from "./limits.ts";
import type { RunningGroup } from "./rule-runner.ts";
import type { RuleState } from "./rules/group.ts";
import type { Alert, Rule } from "./rules/types.ts";
import type { AlertService } from "./service.ts";
import { formatFloat } from "./template/values.ts";

const COMMON = { part: "metrics", access: "read org", scheme: "metrics", style: "prometheus" } as const;
const JSON_TEXT = { status: 200, type: "application/json" } as const;
const list = Type.Optional(Type.Array(Type.String()));

const RulesQuery = Type.Object({
  type: Type.Optional(Type.Union([Type.Literal("alert"), Type.Literal("record")])),
  "rule_name[]": list,
  "rule_group[]": list,
  "file[]": list,
  exclude_alerts: Type.Optional(Type.Boolean()),
  group_limit: Type.Optional(Type.Integer({ minimum: 1 })),
  group_next_token: Type.Optional(Type.String()),
});

export function prometheusAlertRoutes(alerts: AlertService): Row[] {
  return [
    route("GET /prometheus/:org_slug/api/v1/rules", {
      ...COMMON,
      summary: "Recording and alerting rules with their state",
      query: RulesQuery,
      response: JSON_TEXT,
      async handle({ query, ...call }) {
        const groups = (await alerts.groups(orgOf(call).id)).filter(
          ({ file, group }) => isAmong(group.name, query["rule_group[]"]) && isAmong(file, query["file[]"]),
        );
        const shown = groups.map((one) => groupResponse(one, query));
        // A filter by rule omits groups without a match.
        const filters = query.type !== undefined || query["rule_name[]"] !== undefined;
        return success(pageOf(filters ? shown.filter(({ rules }) => rules.length > 0) : shown, query));
      },
    }),
    route("GET /prometheus/:org_slug/api/v1/alerts", {
      ...COMMON,
      summary: "Pending and firing alerts",
      response: JSON_TEXT,
      async handle(call) {
        return success({ alerts: (await alerts.alerts(orgOf(call).id, { resolved: false })).map(alertResponse) });
      },
    }),
  ];
}

interface Page {
  group_limit?: number;
  group_next_token?: string;
}

/** A page of groups; the token names the first group of the next one, as in Prometheus. */
function pageOf<Group extends { file: string; name: string }>(
  groups: readonly Group[],
  { group_limit, group_next_token }: Page,
): { groups: readonly Group[]; groupNextToken?: string } {
  if (group_limit === undefined && group_next_token !== undefined)
    fail("invalid_request", "group_limit needs to be set in order to paginate over the groups");
  if (group_limit === undefined) return { groups };
  const from = group_next_token === undefined ? 0 : groups.findIndex((group) => tokenOf(group) === group_next_token);
  if (from < 0)
    fail("invalid_request", `invalid group_next_token ${JSON.stringify(group_next_token)}: were rule groups changed?`);
  const next = groups[from + group_limit];
  return { groups: groups.slice(from, from + group_limit), ...(next && { groupNextToken: tokenOf(next) }) };
}

const tokenOf = ({ file, name }: { file: string; name: string }): string =>
  createHash("sha1").update(`${file};${name}`).digest("hex");

const success = (data: object): string => JSON.stringify({ status: "success", data });
const isAmong = (name: string, wanted: readonly string[] | undefined): boolean =>
  wanted === undefined || wanted.includes(name);
const nameOf = (rule: Rule): string => (rule.kind === "recording" ? rule.record : rule.alert);

interface Filter {
  type?: "alert" | "record";
  "rule_name[]"?: string[];
  exclude_alerts?: boolean;
}

function groupResponse({ file, group, states }: RunningGroup, filter: Filter) {
  const rules = group.rules.flatMap((rule, at) => {
    const state = states[at];
    const isWanted = filter.type === undefined || (filter.type === "alert") === (rule.kind === "alerting");
    if (!state || !isWanted || !isAmong(nameOf(rule), filter["rule_name[]"])) return [];
    return [ruleResponse(rule, state, filter.exclude_alerts === true)];
  });
  const last_ms = Math.max(0, ...states.map(({ evaluated_at_ms = 0 }) => evaluated_at_ms));
  return {
    name: group.name,
    file,
    rules,
    interval: (group.interval_ms ?? ALERT_LIMITS.default_interval_ms) / 1000,
    limit: group.limit,
    evaluationTime: states.reduce((sum, { duration_s }) => sum + duration_s, 0),
    lastEvaluation: timeText(last_ms === 0 ? undefined : last_ms),
  };
}

/** Go's zero time stands for never. */
const timeText = (ms: number | undefined): string => (ms === undefined ? "0001-01-01T00:00:00Z" : isoTime(ms));

function ruleResponse(rule: Rule, state: RuleState, excludes: boolean) {
  const common = {
    name: nameOf(rule),
    query: rule.expr,
    // As in Prometheus: alerts have them, also when there are none.
    ...(rule.kind === "alerting" || Object.keys(rule.labels).length > 0 ? { labels: rule.labels } : {}),
    health: state.evaluated_at_ms === undefined ? "unknown" : state.error === undefined ? "ok" : "err",
    ...(state.error === undefined ? {} : { lastError: state.error }),
    evaluationTime: state.duration_s,
    lastEvaluation: timeText(state.evaluated_at_ms),
  };
  if (rule.kind === "recording") return { ...common, type: "recording" };
  const active = [...state.active.values()].filter((alert) => alert.state !== "inactive");
  return {
    ...common,
    type: "alerting",
    state: active.some((alert) => alert.state === "firing") ? "firing" : active.length > 0 ? "pending" : "inactive",
    duration: rule.for_ms / 1000,
    keepFiringFor: rule.keep_firing_for_ms / 1000,
    annotations: rule.annotations,
    alerts: excludes ? [] : active.map(alertResponse),
  };
}

const alertResponse = ({ labels, annotations, state, active_at_ms, keep_firing_since_ms, value }: Alert) => ({
  labels,
  annotations,
  state,
  activeAt: isoTime(active_at_ms),
  ...(keep_firing_since_ms === undefined ? {} : { keepFiringSince: isoTime(keep_firing_since_ms) }),
  value: exponential(value),
});

/** As Prometheus writes the values of alerts: `1.5e+00`. */
const exponential = (value: number): string =>
  formatFloat(value, "e", Number.isFinite(value) ? (/\.(\d+)e/.exec(value.toExponential())?.[1] ?? "").length : 0);
