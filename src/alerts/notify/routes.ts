import { isoTime } from "#core/clock.ts";
import { fail } from "#core/errors.ts";
import { orgOf } from "#http/access.ts";
import { inPages } from "#http/list-page.ts";
import { type Row, route } from "#http/route.ts";
import { Type } from "#http/schema.ts";
import { ALERT_LIMITS } from "../limits.ts";
import { durationOf } from "../yaml/duration.ts";
import type { ConfigSummary, NotificationService } from "./service.ts";
import type { Notification, Silence } from "./types.ts";

const text = Type.String();
const Config = Type.Object({
  content: Type.String({ description: "YAML in Alertmanager's format; secrets are shown as `<secret>`." }),
  receivers: Type.Array(Type.Object({ name: text, integrations: Type.Array(text) })),
  updated_at: text,
});
const SilenceResponse = Type.Object({
  id: text,
  matchers: Type.Array(text),
  starts_at: text,
  ends_at: text,
  created_by: text,
  comment: text,
});
const NotificationResponse = Type.Object({
  id: text,
  receiver: text,
  integration: Type.String({ description: "Kind and place, such as `slack hooks.slack.com`." }),
  group: text,
  created_at: text,
  state: Type.Union([Type.Literal("waiting"), Type.Literal("delivered"), Type.Literal("failed")]),
  attempts: Type.Integer(),
  delivered_at: Type.Optional(text),
  next_attempt_at: Type.Optional(text),
  last_error: Type.Optional(text),
});

export function notificationRoutes(service: NotificationService, base_url: (slug: string) => string): Row[] {
  return [...receiverRoutes(service, base_url), ...silenceRoutes(service), deliveries(service)];
}

const configAnswer = ({ updated_at, ...rest }: ConfigSummary) => ({ ...rest, updated_at: isoTime(updated_at) });

function receiverRoutes(service: NotificationService, base_url: (slug: string) => string): Row[] {
  return [
    route("GET /v1/orgs/:org_slug/alerts/receivers", {
      summary: "Show receivers and routes; secrets are masked",
      part: "alerts",
      access: "read org",
      response: { status: 200, schema: Config },
      handle: async (call) => configAnswer(await service.config(orgOf(call).id)),
    }),
    route("PUT /v1/orgs/:org_slug/alerts/receivers", {
      summary: "Set receivers and routes, in Alertmanager's format",
      description:
        "Messages go to public addresses only, unless the token has full access or the setting `webhook_allow_private` allows another one. They stop when the token is revoked.",
      part: "alerts",
      access: "write org",
      credential: true,
      body: Type.Object({ content: Type.String({ maxLength: ALERT_LIMITS.receivers_bytes }) }),
      response: { status: 200, schema: Config },
      handle: async ({ body, caller, ...call }) =>
        configAnswer(await service.putConfig(orgOf(call).id, body.content, caller.token_id)),
    }),
    route("DELETE /v1/orgs/:org_slug/alerts/receivers", {
      summary: "Delete receivers and routes; no notifications are sent any more",
      part: "alerts",
      access: "delete org",
      response: { status: 204 },
      handle: async (call) => await service.deleteConfig(orgOf(call).id),
    }),
    route("POST /v1/orgs/:org_slug/alerts/receivers/:receiver/test", {
      summary: "Send a test alert to a receiver now",
      part: "alerts",
      access: "write org",
      response: {
        status: 200,
        schema: Type.Object({
          results: Type.Array(Type.Object({ integration: text, problem: Type.Union([text, Type.Null()]) })),
        }),
      },
      async handle({ params, ids, ...call }) {
        const { id, slug } = orgOf(call);
        const by = { ids, external_url: base_url(slug) };
        return { results: await service.test(id, params.receiver, by) };
      },
    }),
  ];
}

const silenceAnswer = ({ id, matchers, starts_at, ends_at, created_by, comment }: Silence) => ({
  id,
  matchers,
  starts_at: isoTime(starts_at),
  ends_at: isoTime(ends_at),
  created_by,
  comment,
});

function timeOf(name: string, value: string | undefined): number | undefined {
  if (value === undefined) return undefined;
  const ms = Date.parse(value);
  if (Number.isNaN(ms)) fail("invalid_request", `body.${name} is no time such as 2026-01-02T03:04:05Z`);
  return ms;
}

function silenceRoutes(service: NotificationService): Row[] {
  return [
    route("GET /v1/orgs/:org_slug/alerts/silences", {
      summary: "List silences that have not ended",
      part: "alerts",
      access: "read org",
      pages: inPages("silences", ["text"]),
      response: { status: 200, schema: Type.Object({ silences: Type.Array(SilenceResponse) }) },
      async handle({ page, ...call }) {
        const silences = (await service.silences(orgOf(call).id)).toSorted((a, b) => (a.id < b.id ? -1 : 1));
        return { silences: page.of(silences, ({ id }) => [id]).map(silenceAnswer) };
      },
    }),
    route("POST /v1/orgs/:org_slug/alerts/silences", {
      summary: "Silence alerts whose labels match: no notifications are sent for them until it ends",
      part: "alerts",
      access: "create org",
      body: Type.Object({
        matchers: Type.Array(Type.String({ maxLength: 500 }), {
          minItems: 1,
          maxItems: 50,
          description: 'Such as `app="web"`.',
        }),
        starts_at: Type.Optional(text),
        ends_at: Type.Optional(text),
        duration: Type.Optional(Type.String({ description: "Instead of `ends_at`: such as `2h`." })),
        comment: Type.Optional(Type.String({ maxLength: 1000 })),
      }),
      response: { status: 201, schema: SilenceResponse },
      errors: ["limit_reached"],
      async handle({ body, ids, caller, ...call }) {
        const { matchers, comment = "", duration } = body;
        const duration_ms = duration === undefined ? undefined : durationOf(duration);
        if (duration !== undefined && duration_ms === undefined)
          fail("invalid_request", "body.duration is no duration such as 30m or 2h");
        const [starts_at, ends_at] = [timeOf("starts_at", body.starts_at), timeOf("ends_at", body.ends_at)];
        const input = { matchers, comment, created_by: caller.name, starts_at, ends_at, duration_ms };
        return silenceAnswer(await service.silence(orgOf(call).id, input, ids));
      },
    }),
    route("DELETE /v1/orgs/:org_slug/alerts/silences/:silence_id", {
      summary: "End a silence now",
      part: "alerts",
      access: "delete org",
      response: { status: 204 },
      handle: async ({ params, ...call }) => await service.expire(orgOf(call).id, params.silence_id),
    }),
  ];
}

function deliveries(service: NotificationService): Row {
  return route("GET /v1/orgs/:org_slug/alerts/notifications", {
    summary: "List notifications and their delivery, newest first",
    part: "alerts",
    access: "read org",
    query: Type.Object({ limit: Type.Optional(Type.Integer({ minimum: 1, maximum: 1000 })) }),
    response: { status: 200, schema: Type.Object({ notifications: Type.Array(NotificationResponse) }) },
    async handle({ query, ...call }) {
      const found = await service.notifications(orgOf(call).id, query.limit ?? 100);
      return { notifications: found.map(notificationAnswer) };
    },
  });
}

function stateOf({ delivered_at, retry_at }: Notification): "waiting" | "delivered" | "failed" {
  if (delivered_at !== null) return "delivered";
  return retry_at === null ? "failed" : "waiting";
}

const notificationAnswer = (one: Notification & { place: string }) => ({
  id: one.id,
  receiver: one.receiver,
  integration: one.place,
  group: one.group_key,
  created_at: isoTime(one.created_at),
  state: stateOf(one),
  attempts: one.attempts,
  ...(one.delivered_at === null ? {} : { delivered_at: isoTime(one.delivered_at) }),
  ...(one.retry_at === null ? {} : { next_attempt_at: isoTime(one.retry_at) }),
  ...(one.last_error === null ? {} : { last_error: one.last_error }),
});
