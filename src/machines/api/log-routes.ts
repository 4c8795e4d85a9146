import { parseDuration } from "#core/durations.ts";
import { appOf } from "#http/access.ts";
import { type Row, route } from "#http/route.ts";
import type { StreamItem } from "#http/stream.ts";
import { type LogSource, Logs } from "../events/logs.ts";
import { bad, machineOf, type RouteParts } from "./routing.ts";
import * as schema from "./schema.ts";

const FOLLOW = "With `follow`, a server-sent event stream unless JSON is requested: each message is one line.";

interface Query {
  tail?: number;
  since?: string;
  follow?: boolean;
}

export function logRoutes(parts: RouteParts): Row[] {
  const logs = new Logs(parts);

  async function* items(
    sources: () => Promise<LogSource[]>,
    query: Query,
    signal: AbortSignal,
  ): AsyncGenerator<StreamItem[]> {
    for await (const lines of logs.follow(sources, wanted(parts, query), signal)) {
      yield lines.map((data) => ({ event: "line", data }));
    }
  }

  return [
    route("GET /v1/apps/:app_name/machines/:machine_id/logs", {
      summary: "The newest lines a machine wrote, oldest first",
      description: FOLLOW,
      part: "machines",
      access: "read machine",
      query: schema.LogsQuery,
      response: { status: 200, schema: schema.LogsResponse },
      async handle({ query, ...call }) {
        const { id, host_id } = await machineOf(parts, call);
        const { lines } = await parts.driver.logs(id, wanted(parts, query), host_id);
        return { lines };
      },
      stream: ({ query, signal, ...call }) =>
        query.follow ? items(async () => [await machineOf(parts, call)], query, signal) : undefined,
    }),
    route("GET /v1/apps/:app_name/logs", {
      summary: "The newest lines of all machines of an app, by time",
      description: FOLLOW,
      part: "machines",
      access: "read app",
      query: schema.LogsQuery,
      response: { status: 200, schema: schema.AppLogsResponse },
      handle: async ({ query, ...call }) => ({
        lines: await logs.newest(await logs.machinesOf(appOf(call).id), wanted(parts, query)),
      }),
      stream: ({ query, signal, ...call }) =>
        query.follow ? items(() => logs.machinesOf(appOf(call).id), query, signal) : undefined,
    }),
  ];
}

function wanted({ clock }: RouteParts, { tail, since }: Query): { tail: number; since?: number } {
  const from = { tail: tail ?? 100 };
  if (since === undefined || since === "") return from;
  const ago = parseDuration(since);
  const time = ago === undefined ? Date.parse(since) : clock.now() - ago;
  if (Number.isNaN(time)) bad("query.since", "is not a time", "2026-01-31T12:00:00Z, or how long ago, such as 15m");
  return { ...from, since: time };
}
