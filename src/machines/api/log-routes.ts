import { fail } from "#core/errors.ts";
import { appOf, orgOf } from "#http/access.ts";
import { type Row, route } from "#http/route.ts";
import type { StreamItem } from "#http/stream.ts";
import { MACHINE_LIMITS } from "../limits.ts";
import { type LogSource, Logs, type MergedLine } from "../logs/logs.ts";
import { writeCursor } from "../logs/search.ts";
import { LogSearches, type Search } from "../logs/searches.ts";
import { type LogQuery, readSearch, readTail } from "./log-query.ts";
import * as schema from "./log-schema.ts";
import { machineOf, type RouteParts } from "./routing.ts";

const FOLLOW =
  "With `follow`, a server-sent event stream unless JSON is requested: each message is one line. With any of `search`, `level`, `field`, `machine`, `until`, `order`, `limit` and `cursor` it is a search in all kept logs, in the order of `order`, in pages; with `follow` it goes on with new lines that match.";

export function logRoutes(parts: RouteParts): Row[] {
  const { clock } = parts;
  const logs = new Logs(parts);
  const searches = new LogSearches(parts);

  /** Lines of machines, then new ones. */
  async function* items(
    org_id: string,
    sources: () => Promise<LogSource[]>,
    query: LogQuery,
    signal: AbortSignal,
  ): AsyncGenerator<StreamItem[]> {
    const search = readSearch(query, clock.now());
    const found = search && searches.upToNow(org_id, await sources(), search, signal);
    let page = await found?.next();
    for (; found && page?.done === false; page = await found.next()) yield itemsOf(page.value);
    const live = page?.done ? page.value : undefined;
    for await (const lines of logs.follow(sources, readTail(query, clock.now()), signal, live)) yield itemsOf(lines);
  }

  async function searched(org_id: string, sources: LogSource[], search: Search, signal: AbortSignal) {
    const { lines, next, stopped, damaged, away } = await searches.page(org_id, sources, search, signal);
    return {
      lines,
      ...(next ? { cursor: writeCursor(next, search.order) } : {}),
      ...(stopped ? { stopped } : {}),
      ...(damaged.length > 0 ? { damaged } : {}),
      ...(away.length > 0 ? { away } : {}),
    };
  }

  async function sourcesOf(app_id: string, { machine }: LogQuery, most?: number) {
    const chosen = await logs.choose(app_id, machine, most);
    if (machine !== undefined && chosen.sources.length === 0) fail("not_found", `machine not found: ${machine}`);
    return chosen;
  }

  return [
    route("GET /v1/apps/:app_name/machines/:machine_id/logs", {
      summary: "The newest lines a machine wrote, oldest first; or a search",
      description: FOLLOW,
      part: "machines",
      access: "read machine",
      query: schema.LogsQuery,
      response: { status: 200, schema: schema.LogsResponse },
      async handle({ query, ...call }) {
        const machine = await machineOf(parts, call);
        const search = readSearch(query, clock.now());
        if (search) return await searched(orgOf(call).id, [machine], search, call.signal);
        const { lines } = await parts.driver.logs(machine.id, readTail(query, clock.now()), machine.host_id);
        return { lines };
      },
      stream: ({ query, signal, ...call }) =>
        query.follow ? items(orgOf(call).id, async () => [await machineOf(parts, call)], query, signal) : undefined,
    }),
    route("GET /v1/apps/:app_name/logs", {
      summary: "The newest lines of all machines of an app, by time; or a search",
      description: FOLLOW,
      part: "machines",
      access: "read app",
      query: schema.AppLogsQuery,
      response: { status: 200, schema: schema.AppLogsResponse },
      async handle({ query, ...call }) {
        const { id } = appOf(call);
        const search = readSearch(query, clock.now());
        if (!search) return { lines: await logs.newest(await logs.machinesOf(id), readTail(query, clock.now())) };
        const { sources, left_out } = await sourcesOf(id, query, MACHINE_LIMITS.logs_search_machines);
        const found = await searched(orgOf(call).id, sources, search, call.signal);
        return { ...found, ...(left_out > 0 ? { left_out } : {}) };
      },
      stream: ({ query, signal, ...call }) =>
        query.follow
          ? items(orgOf(call).id, async () => (await sourcesOf(appOf(call).id, query)).sources, query, signal)
          : undefined,
    }),
  ];
}

const itemsOf = (lines: readonly MergedLine[]): StreamItem[] => lines.map((data) => ({ event: "line", data }));
