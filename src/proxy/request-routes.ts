/** The failed and slow requests of an app. */
import Type, { type Static } from "typebox";
import { isoTime } from "#core/clock.ts";
import { appOf } from "#http/access.ts";
import { type Row, route } from "#http/route.ts";
import { PROXY_LIMITS } from "./limits.ts";
import type { RecentRequests } from "./recent-requests.ts";
import type { RecentRequest } from "./table.ts";

const text = Type.String();

const RequestResponse = Type.Object({
  at: Type.String({ description: "When it arrived." }),
  method: text,
  path: Type.String({ description: "Without the query, which may hold secrets." }),
  status: Type.Integer({ description: "0 when the client disconnected before a response." }),
  duration_ms: Type.Number({ description: "From its arrival to the end of the response." }),
  machine_id: Type.Union([text, Type.Null()], { description: "The machine that it was last sent to." }),
  request_id: Type.String({ description: "The machine saw it as `svc-request-id`, and the client, too." }),
  trace_id: Type.Union([text, Type.Null()], { description: "Of its W3C trace context, if any." }),
  reason: Type.Union([text, Type.Null()], { description: "Why the proxy refused it, or why the response broke off." }),
});

export function requestRoutes(recent: RecentRequests): Row[] {
  return [
    route("GET /v1/apps/:app_name/requests", {
      summary: "List an app's recent failed and slow requests, newest first",
      part: "apps",
      access: "read app",
      description:
        `Requests answered with a status of 500 or more, broken off, or without a response head within ` +
        `${PROXY_LIMITS.slow_request_ms} ms. Kept in the memory of the process: the newest ${PROXY_LIMITS.requests_kept}.`,
      response: { status: 200, schema: Type.Object({ requests: Type.Array(RequestResponse) }) },
      handle: async (call) => ({ requests: recent.of(appOf(call).id).map(shown) }),
    }),
  ];
}

const shown = ({ at_ms, duration_ms, ...request }: RecentRequest): Static<typeof RequestResponse> => ({
  at: isoTime(at_ms),
  duration_ms: Math.round(duration_ms * 10) / 10,
  ...request,
});
