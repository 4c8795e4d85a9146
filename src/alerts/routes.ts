import { isoTime } from "#core/clock.ts";
import { appOf, orgOf } from "#http/access.ts";
import { inPages } from "#http/list-page.ts";
import { type Row, route } from "#http/route.ts";
import { Type } from "#http/schema.ts";
import { ALERT_LIMITS } from "./limits.ts";
import type { NotificationService } from "./notify/service.ts";
import { prometheusAlertRoutes } from "./prometheus-routes.ts";
import { type ActiveAlert, type AlertService, appFileName, type RuleFileSummary } from "./service.ts";

const text = Type.String();
const labels = Type.Record(Type.String(), Type.String());
const dialect = Type.Union([Type.Literal("promql"), Type.Literal("metricsql")], {
  description: "Query language of its expressions: `promql` (default) is strict Prometheus 3.",
});
const summaryFields = {
  name: text,
  app_name: Type.Optional(Type.String({ description: "The app whose series its rules see." })),
  dialect,
  built_in: Type.Boolean({ description: "The rules that come with the platform." }),
  groups: Type.Integer(),
  rules: Type.Integer(),
  updated_at: Type.Optional(text),
};
const RuleFile = Type.Object(summaryFields);
const RuleFileWithContent = Type.Object({ ...summaryFields, content: text });
const RuleFileInput = Type.Object({
  content: Type.String({
    maxLength: ALERT_LIMITS.rule_file_bytes,
    description: "YAML in Prometheus' format: `groups` of `rules`.",
  }),
  dialect: Type.Optional(dialect),
});
const AlertResponse = Type.Object({
  labels,
  annotations: labels,
  state: Type.Union([Type.Literal("pending"), Type.Literal("firing"), Type.Literal("resolved")]),
  value: Type.String({ description: "Of the rule's expression; text, because it may be NaN or an infinity." }),
  active_at: text,
  fired_at: Type.Optional(text),
  resolved_at: Type.Optional(text),
  rule_file: text,
  group: text,
  silenced_by: Type.Array(text, { description: "Ids of silences that keep its receivers quiet." }),
});

const BODY_LIMIT = { name: "rule_file_bytes", bytes: 2 * ALERT_LIMITS.rule_file_bytes } as const;

export function alertRoutes(alerts: AlertService, notifications: Pick<NotificationService, "silencing">): Row[] {
  return [
    ...ruleFileRoutes(alerts),
    ...appRoutes(alerts),
    ...stateRoutes(alerts, notifications),
    ...prometheusAlertRoutes(alerts),
  ];
}

const answer = ({ app_name, updated_at, ...file }: RuleFileSummary) => ({
  ...file,
  ...(app_name === null ? {} : { app_name }),
  ...(updated_at === 0 ? {} : { updated_at: isoTime(updated_at) }),
});

function ruleFileRoutes(alerts: AlertService): Row[] {
  return [
    route("GET /v1/orgs/:org_slug/alerts/rules", {
      summary: "List rule files; `default` comes with the platform until one of that name replaces it",
      part: "alerts",
      access: "read org",
      pages: inPages("rule_files", ["text"]),
      response: { status: 200, schema: Type.Object({ rule_files: Type.Array(RuleFile) }) },
      async handle({ page, ...call }) {
        const files = page.of(await alerts.list(orgOf(call).id), ({ name }) => [name]);
        return { rule_files: files.map(answer) };
      },
    }),
    route("GET /v1/orgs/:org_slug/alerts/rules/:rule_file", {
      summary: "Show a rule file",
      part: "alerts",
      access: "read org",
      response: { status: 200, schema: RuleFileWithContent },
      async handle({ params, ...call }) {
        const { content, ...file } = await alerts.get(orgOf(call).id, params.rule_file);
        return { ...answer(file), content };
      },
    }),
    route("PUT /v1/orgs/:org_slug/alerts/rules/:rule_file", {
      summary: "Create or replace a rule file; its rules are evaluated from now on",
      description:
        "Alerts of rules that stay keep their state. A rule file named `default` replaces the built-in rules; one without groups switches them off.",
      part: "alerts",
      access: "write org",
      body: RuleFileInput,
      body_limit: BODY_LIMIT,
      response: { status: 200, schema: RuleFile },
      errors: ["limit_reached"],
      async handle({ params, body, ...call }) {
        const { content, dialect: wanted = "promql" } = body;
        const input = { name: params.rule_file, content, dialect: wanted, app_id: null };
        return answer(await alerts.put(orgOf(call).id, input));
      },
    }),
    route("DELETE /v1/orgs/:org_slug/alerts/rules/:rule_file", {
      summary: "Delete a rule file; its alerts end",
      part: "alerts",
      access: "delete org",
      response: { status: 204 },
      handle: async ({ params, ...call }) => await alerts.delete(orgOf(call).id, params.rule_file),
    }),
  ];
}

/** An app's own rules, as its app file has them under [[alerts]]. They see and write series of that app only. */
function appRoutes(alerts: AlertService): Row[] {
  return [
    route("GET /v1/apps/:app_name/alerts/rules", {
      summary: "Show an app's own rules",
      part: "alerts",
      access: "read app",
      response: { status: 200, schema: RuleFileWithContent },
      async handle(call) {
        const { content, ...file } = await alerts.get(orgOf(call).id, appFileName(appOf(call).name));
        return { ...answer(file), content };
      },
    }),
    route("PUT /v1/apps/:app_name/alerts/rules", {
      summary: "Set an app's own rules; they see and write the series of this app only",
      part: "alerts",
      access: "write app",
      body: RuleFileInput,
      body_limit: BODY_LIMIT,
      response: { status: 200, schema: RuleFile },
      errors: ["limit_reached"],
      async handle({ body, ...call }) {
        const { content, dialect: wanted = "promql" } = body;
        const { id: app_id, name } = appOf(call);
        const input = { name: appFileName(name), content, dialect: wanted, app_id };
        return answer({ ...(await alerts.put(orgOf(call).id, input)), app_name: name });
      },
    }),
    route("DELETE /v1/apps/:app_name/alerts/rules", {
      summary: "Delete an app's own rules",
      part: "alerts",
      access: "delete app",
      response: { status: 204 },
      handle: async (call) => await alerts.delete(orgOf(call).id, appFileName(appOf(call).name)),
    }),
  ];
}

function stateRoutes(alerts: AlertService, notifications: Pick<NotificationService, "silencing">): Row[] {
  return [
    route("GET /v1/orgs/:org_slug/alerts", {
      summary: "List alerts that are pending or firing",
      part: "alerts",
      access: "read org",
      query: Type.Object({
        resolved: Type.Optional(Type.Boolean({ description: "Also those that ended in the last 15 minutes." })),
        app_name: Type.Optional(Type.String({ description: "Only alerts with this label `app`." })),
      }),
      pages: inPages("alerts", ["text"]),
      response: { status: 200, schema: Type.Object({ alerts: Type.Array(AlertResponse) }) },
      async handle({ query, page, ...call }) {
        const all = await alerts.alerts(orgOf(call).id, { resolved: query.resolved === true });
        const wanted = query.app_name === undefined ? all : all.filter(({ labels: { app } }) => app === query.app_name);
        const keyed = wanted.map((alert) => ({ alert, key: keyOf(alert) })).sort((a, b) => (a.key < b.key ? -1 : 1));
        const silencing = await notifications.silencing(orgOf(call).id);
        const shown = page.of(keyed, ({ key }) => [key]).map(({ alert }) => alert);
        return { alerts: shown.map((alert) => ({ ...alertAnswer(alert), silenced_by: silencing(alert.labels) })) };
      },
    }),
  ];
}

const keyOf = ({ file, group, labels: own }: ActiveAlert): string =>
  `${own["alertname"]} ${file} ${group} ${JSON.stringify(Object.entries(own).sort(([a], [b]) => (a < b ? -1 : 1)))}`;

const alertAnswer = ({
  state,
  value,
  active_at_ms,
  fired_at_ms,
  resolved_at_ms,
  file,
  group,
  ...alert
}: ActiveAlert) => ({
  labels: alert.labels,
  annotations: alert.annotations,
  state: state === "inactive" ? ("resolved" as const) : state,
  value: String(value),
  active_at: isoTime(active_at_ms),
  ...(fired_at_ms === undefined ? {} : { fired_at: isoTime(fired_at_ms) }),
  ...(resolved_at_ms === undefined ? {} : { resolved_at: isoTime(resolved_at_ms) }),
  rule_file: file,
  group,
});
