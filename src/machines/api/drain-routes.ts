/** Routes of log drains. */

import type { AppService } from "#apps/service.ts";
import type { Clock } from "#core/clock.ts";
import { isoTime } from "#core/clock.ts";
import { parseDuration } from "#core/durations.ts";
import { orgOf } from "#http/access.ts";
import { inPages } from "#http/list-page.ts";
import { type Row, route } from "#http/route.ts";
import { Type } from "#http/schema.ts";
import type { DrainService } from "../logs/drains/service.ts";
import { DRAIN_KINDS, type Drain, type DrainState } from "../logs/drains/types.ts";
import { bad } from "./routing.ts";

const text = Type.String();
const PEM = (what: string) => Type.Optional(Type.String({ maxLength: 64 * 1024, description: `${what}, PEM.` }));

const DrainBody = Type.Object({
  kind: Type.Union(
    DRAIN_KINDS.map((kind) => Type.Literal(kind)),
    { description: "`syslog` is RFC 5424 over TLS, framed by octet counting (RFC 5425)." },
  ),
  url: Type.String({
    maxLength: 2048,
    description:
      "`https://host`, with the path if it is not the usual one (`/loki/api/v1/push`, `/insert/jsonline`, `/v1/logs`); `syslog+tls://host:6514`.",
  }),
  app_name: Type.Optional(Type.String({ description: "Only lines of this app." })),
  since: Type.Optional(
    Type.String({
      description: "Kept lines from this time on are sent too: a time, or how long ago, such as `2d`. Default: none.",
    }),
  ),
  headers: Type.Optional(
    Type.Record(Type.String(), Type.String({ maxLength: 8192 }), {
      maxProperties: 20,
      description: "HTTP headers, such as `Authorization` or `X-Scope-OrgID`. Stored encrypted and never shown.",
    }),
  ),
  ca: PEM("Authorities that a syslog server's certificate may be from, instead of the system's"),
  cert: PEM("Our certificate for a syslog server"),
  key: PEM("Its key"),
});

const HostState = Type.Object({
  host_id: text,
  sent: Type.Integer({ description: "Lines that the receiver took." }),
  refused: Type.Integer({ description: "Lines that it refused for good; `last_error` says why." }),
  lost_gaps: Type.Integer({
    description:
      "Times at which lines were lost: kept logs were deleted before they could be sent, or a machine wrote faster than its log could be archived.",
  }),
  lost_bytes: Type.Integer({ description: "Text in them, as far as it is known." }),
  lag_s: Type.Number({ description: "Age of the oldest line that is still to be sent." }),
  failures: Type.Integer({ description: "Consecutive failed requests." }),
  last_success_at: Type.Optional(text),
  last_error: Type.Optional(text),
  updated_at: text,
});

const DrainResponse = Type.Object({
  id: text,
  kind: text,
  address: Type.String({ description: "Scheme and host; the rest of the address may be secret." }),
  app_name: Type.Optional(text),
  since: text,
  created_at: text,
  hosts: Type.Array(HostState, { description: "How far each host has got; empty before one has sent anything." }),
});

interface Parts {
  apps: Pick<AppService, "getIn" | "list">;
  clock: Clock;
}

export function drainRoutes({ apps, clock }: Parts, drains: DrainService): Row[] {
  const answer = (drain: Drain & { states?: DrainState[] }, names: ReadonlyMap<string, string>) => ({
    id: drain.id,
    kind: drain.kind,
    address: drain.address,
    ...(drain.app_id === null ? {} : { app_name: names.get(drain.app_id) ?? drain.app_id }),
    since: isoTime(drain.since),
    created_at: isoTime(drain.created_at),
    hosts: (drain.states ?? []).map((state) => hostState(state, clock.now())),
  });
  return [
    route("POST /v1/orgs/:org_slug/log-drains", {
      summary: "Create a log drain: lines are sent to Loki, VictoriaLogs, OTLP or syslog",
      description:
        "Every line arrives at least once and in the order of its machine, also when the platform or the receiver is down meanwhile, for as long as logs are kept. Sent to public addresses only, unless the token has full access or the setting `webhook_allow_private` allows another one; it stops when the token is revoked.",
      part: "machines",
      access: "create org",
      credential: true,
      body: DrainBody,
      response: { status: 201, schema: DrainResponse },
      errors: ["limit_reached"],
      async handle({ body, ids, ...call }) {
        const { id: org_id } = orgOf(call);
        const { app_name, since, ...input } = body;
        const app = app_name ? await apps.getIn(org_id, app_name) : undefined;
        const from = since === undefined ? {} : { since: timeOf(since, clock.now()) };
        const owner = { org_id, app_id: app?.id ?? null, token_id: call.caller.token_id };
        const drain = await drains.create({ ...input, ...owner, ...from }, ids);
        return answer(drain, new Map(app ? [[app.id, app.name]] : []));
      },
    }),
    route("GET /v1/orgs/:org_slug/log-drains", {
      summary: "An organization's log drains and how far they have got",
      part: "machines",
      access: "read org",
      pages: inPages("log_drains", ["text"]),
      response: { status: 200, schema: Type.Object({ log_drains: Type.Array(DrainResponse) }) },
      async handle({ page, ...call }) {
        const { id } = orgOf(call);
        const [all, own] = await Promise.all([drains.list(id), apps.list(id)]);
        const names = new Map(own.map((app) => [app.id, app.name]));
        return { log_drains: page.of(all, (drain) => [drain.id]).map((drain) => answer(drain, names)) };
      },
    }),
    route("DELETE /v1/orgs/:org_slug/log-drains/:drain_id", {
      summary: "Delete a log drain",
      description: "Other hosts may send for another ten seconds (limit `drain_list_ms`).",
      part: "machines",
      access: "delete org",
      response: { status: 204 },
      handle: async ({ params, ...call }) => await drains.delete(orgOf(call).id, params.drain_id),
    }),
    route("POST /v1/orgs/:org_slug/log-drains/:drain_id/test", {
      summary: "Send a test line to a log drain now",
      part: "machines",
      access: "create org",
      response: {
        status: 200,
        schema: Type.Object({ delivered: Type.Boolean(), error: Type.Optional(text), took_ms: Type.Integer() }),
      },
      async handle({ params, ...call }) {
        const began = clock.now();
        const error = await drains.test(orgOf(call).id, params.drain_id);
        const took_ms = Math.round(clock.now() - began);
        return { delivered: error === undefined, ...(error === undefined ? {} : { error }), took_ms };
      },
    }),
  ];
}

function hostState(state: DrainState, now: number) {
  const { drain_id: _, oldest_at, last_success_at, last_error, updated_at, ...numbers } = state;
  return {
    ...numbers,
    lag_s: oldest_at === null ? 0 : Math.max(0, (now - oldest_at) / 1000),
    ...(last_success_at === null ? {} : { last_success_at: isoTime(last_success_at) }),
    ...(last_error === null ? {} : { last_error }),
    updated_at: isoTime(updated_at),
  };
}

function timeOf(since: string, now: number): number {
  const ago = parseDuration(since);
  const time = ago === undefined ? Date.parse(since) : now - ago;
  return Number.isNaN(time) ? bad("body.since", "is not a time", "2026-01-31T12:00:00Z, or how long ago: 2d") : time;
}
