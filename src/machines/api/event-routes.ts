import { appOf, orgOf } from "#http/access.ts";
import { inPages, type ListPage } from "#http/list-page.ts";
import { type Row, route } from "#http/route.ts";
import { type StreamItem, together } from "#http/stream.ts";
import type { EventScope } from "../events/events.ts";
import { MACHINE_LIMITS } from "../limits.ts";
import { eventResponse, logResponse } from "./responses.ts";
import { type EventRouteParts, machineOf } from "./routing.ts";
import * as schema from "./schema.ts";

const STREAM =
  "A server-sent stream, each message one event with its cursor as `id`; it resumes after `cursor` or `Last-Event-ID`, otherwise it begins `tail` events before now, or now. With `Accept: application/json` a page, oldest first, from `cursor`, the newest `tail`, or the beginning.";

const LOG_PAGES = inPages("events", ["number"], { size: 100, numbered: true });

interface Place {
  cursor?: number;
  tail?: number;
}

export function eventRoutes(parts: EventRouteParts): Row[] {
  const { events, ongoing } = parts;

  /** The log position that the request names, if any. */
  const begin = async (scope: EventScope, { cursor, tail }: Place): Promise<number | undefined> =>
    cursor ?? (tail === undefined ? undefined : await events.tail(scope, tail));

  const list = async (scope: EventScope, query: Place, page: ListPage<readonly [seq: number]>) => {
    const from = (await begin(scope, query)) ?? 0;
    const found = page.take(await events.page(scope, from, page.request.limit), ({ seq }) => [seq]);
    return { events: found.map(logResponse), cursor: found.at(-1)?.seq ?? from };
  };

  async function* follow(
    scope: EventScope,
    query: Place,
    call: { header(name: string): string | undefined; signal: AbortSignal },
  ): AsyncGenerator<StreamItem[]> {
    const header = Number(call.header("last-event-id"));
    const last = Number.isSafeInteger(header) && header > 0 ? header : undefined;
    const from = query.cursor ?? last ?? (await begin(scope, query)) ?? (await events.end(scope.org_id));
    for await (const found of events.follow(scope, from, call.signal)) {
      yield found.map((event) => ({ id: String(event.seq), event: `machine.${event.type}`, data: logResponse(event) }));
    }
  }

  async function* ongoingOf(org_id: string, signal: AbortSignal): AsyncGenerator<StreamItem[]> {
    for await (const data of ongoing(org_id, signal)) yield [{ event: "ongoing", data }];
  }

  return [
    route("GET /v1/apps/:app_name/machines/:machine_id/events", {
      summary: "A machine's events, newest first",
      part: "machines",
      access: "read machine",
      query: schema.MachineEventsQuery,
      pages: inPages("", ["number"], { size: MACHINE_LIMITS.events_shown }),
      response: { status: 200, schema: schema.MachineEvents },
      async handle({ query, page, ...call }) {
        const { id } = await machineOf(parts, call);
        const found = await events.list(id, { ...page.request, from_event_id: query.from_event_id });
        return page.take(found, ({ seq }) => [seq]).map(eventResponse);
      },
    }),
    route("GET /v1/apps/:app_name/events", {
      summary: "Stream the events of an app's machines",
      description: STREAM,
      part: "machines",
      access: "read app",
      query: schema.LogQuery,
      pages: LOG_PAGES,
      response: { status: 200, schema: schema.LogPage },
      handle: async ({ query, page, ...call }) =>
        await list({ org_id: orgOf(call).id, app_id: appOf(call).id }, query, page),
      stream: (call) => follow({ org_id: orgOf(call).id, app_id: appOf(call).id }, call.query, call),
    }),
    route("GET /v1/orgs/:org_slug/events", {
      summary: "Stream the events of an organization's machines",
      description: STREAM,
      part: "machines",
      access: "read org",
      query: schema.OrgLogQuery,
      pages: LOG_PAGES,
      response: { status: 200, schema: schema.LogPage },
      handle: async ({ query, page, ...call }) => await list({ org_id: orgOf(call).id }, query, page),
      stream({ query, signal, ...call }) {
        const org_id = orgOf(call).id;
        const machines = (ending: AbortSignal) => follow({ org_id }, query, { ...call, signal: ending });
        if (!query.ongoing) return machines(signal);
        return together([machines, (ending) => ongoingOf(org_id, ending)], signal);
      },
    }),
  ];
}
