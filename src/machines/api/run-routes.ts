import { fail } from "#core/errors.ts";
import { appOf } from "#http/access.ts";
import { inPages } from "#http/list-page.ts";
import { type Row, route } from "#http/route.ts";
import type { StreamItem } from "#http/stream.ts";
import { MACHINE_LIMITS } from "../limits.ts";
import { LOG_BEGIN } from "../runtime/driver.ts";
import { LogLines } from "./log-schema.ts";
import type { RouteParts } from "./routing.ts";
import * as schema from "./run-schema.ts";

const PATH = "/v1/apps/:app_name/runs" as const;

/** One-off tasks, scheduled runs and release commands, with how they ended and what they wrote. */
export function runRoutes({ store, driver, clock }: RouteParts): Row[] {
  const find = async (app_id: string, id: string) =>
    (await store.run(app_id, id)) ?? fail("not_found", `run not found: ${id}`);

  /** Lines as they come, until the run has ended; the last message is the run. */
  async function* follow(app_id: string, id: string, signal: AbortSignal): AsyncGenerator<StreamItem[]> {
    for (let cursor = LOG_BEGIN; !signal.aborted; ) {
      // The run is read before its lines: what was written before its end is read after it.
      const { run, next_at, host_id } = await find(app_id, id);
      const page = await driver.logs(run.machine_id, { cursor }, host_id);
      const is_new = page.cursor !== cursor;
      ({ cursor } = page);
      const lines = page.lines.filter(
        ({ timestamp }) => timestamp >= run.started_at && (next_at === null || timestamp < next_at),
      );
      if (lines.length > 0) yield lines.map((data) => ({ event: "line", data }));
      // A page may hold only lines of other runs.
      else if (is_new && page.lines.length > 0) continue;
      else if (run.state !== "running") {
        yield [{ event: "end", data: { run: schema.runResponse(run) } }];
        return;
      } else await clock.sleep(MACHINE_LIMITS.run_look_ms, signal).catch(() => {});
    }
  }

  return [
    route(`GET ${PATH}`, {
      summary: "List an app's runs of one-off tasks, schedules and release commands, the newest first",
      description: `The newest ${MACHINE_LIMITS.runs_per_app} are kept, also of machines that were destroyed.`,
      part: "machines",
      access: "read app",
      query: schema.RunsQuery,
      pages: inPages("runs", ["number", "text"], { size: 20 }),
      response: { status: 200, schema: schema.RunList },
      async handle({ query: { machine_id, state }, page, ...admitted }) {
        const found = await store.runs(appOf(admitted).id, {
          ...(machine_id === undefined ? {} : { machine_id }),
          ...(state === undefined ? {} : { states: [state] }),
          page: page.request,
        });
        return { runs: page.take(found, ({ started_at, id }) => [started_at, id]).map(schema.runResponse) };
      },
    }),
    route(`GET ${PATH}/:run_id`, {
      summary: "Get a run",
      part: "machines",
      access: "read app",
      response: { status: 200, schema: schema.RunResponse },
      handle: async ({ params, ...admitted }) =>
        schema.runResponse((await find(appOf(admitted).id, params.run_id)).run),
    }),
    route(`GET ${PATH}/:run_id/logs`, {
      summary: "What a run wrote, oldest first",
      description:
        "With `follow`, a server-sent event stream unless JSON is requested: each line as it comes, then the `run` that has ended.",
      part: "machines",
      access: "read app",
      query: schema.RunLogsQuery,
      response: { status: 200, schema: LogLines },
      async handle({ params, query, ...admitted }) {
        const { run, next_at, host_id } = await find(appOf(admitted).id, params.run_id);
        const until = next_at === null ? {} : { until: next_at };
        const from = { tail: query.tail ?? MACHINE_LIMITS.logs_page, since: run.started_at, ...until };
        const { lines } = await driver.logs(run.machine_id, from, host_id);
        return { lines };
      },
      stream: ({ query, params, signal, ...call }) =>
        query.follow ? follow(appOf(call).id, params.run_id, signal) : undefined,
    }),
  ];
}
