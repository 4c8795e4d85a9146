/** All machines on one page: their state, usage, events and last log lines. */
import { systemClock } from "#core/clock.ts";
import { count } from "#core/words.ts";
import { type Found, range } from "../metrics/ask.ts";
import { sparkline } from "../metrics/plot.ts";
import { ago, bytesText, table } from "../output.ts";
import { styled } from "../terminal-text.ts";
import { type Context, type Input, textOption, type Verb } from "../verb.ts";

const MINUTES = 15;
const STEP_S = 30;
const SPARK_COLUMNS = 12;
const EVENTS = 8;
const LINES = 8;
/** Number of apps whose logs are read, busiest first: limits the requests of each refresh. */
const LOGGED_APPS = 5;
/** Number of machines on the page, busiest first; the others are counted. */
const SHOWN = 200;

const CPU = 'sum by (instance) (rate(svc_instance_cpu{mode=~"user|system"}[1m])) / 100';
const MEMORY = "sum by (instance) (svc_instance_memory_mem_total - svc_instance_memory_mem_available)";

export const top: Verb = {
  words: "top",
  summary: "Show an organization's machines, their usage and events, live",
  options: [["--org <slug>", "the organization (default: personal)"]],
  examples: ["hangar top --once", "hangar top --json"],
  live: true,
  async run(context, input) {
    const now = systemClock.now();
    const [{ machines }, cpu, memory, events] = await Promise.all([
      readMachines(context, input),
      used(context, input, CPU, now),
      used(context, input, MEMORY, now),
      readEvents(context, input),
    ]);
    const data = machines
      .map(({ id, name, app_name, state, version, updated_at }) => {
        const [busy, held] = [cpu.get(version) ?? [], memory.get(version) ?? []];
        // The usage of a machine before it stopped is not current.
        const [cpu_now, memory_now] = state === "started" ? [busy.at(-1), held.at(-1)] : [];
        return {
          id,
          name,
          app_name,
          state,
          updated_at,
          cpu: cpu_now ?? null,
          memory_bytes: memory_now ?? null,
          cpu_history: busy,
        };
      })
      .sort((a, b) => (b.cpu ?? -1) - (a.cpu ?? -1) || a.name.localeCompare(b.name));
    const rows = data
      .slice(0, SHOWN)
      .map((machine) => [
        machine.id,
        machine.name,
        machine.app_name,
        machine.state,
        machine.cpu === null ? "-" : `${(machine.cpu * 100).toFixed(1)} %`,
        sparkline(machine.cpu_history, SPARK_COLUMNS),
        machine.memory_bytes === null ? "-" : bytesText(machine.memory_bytes),
        ago(machine.updated_at, now),
      ]);
    const lines = await readLogs(context, [...new Set(data.map(({ app_name }) => app_name))].slice(0, LOGGED_APPS));
    const heads = ["id", "name", "app", "state", "cpu", `${MINUTES} min`, "memory", "changed"];
    const parts = [[headline(data, now)], [table(heads, rows)], events, lines].filter(({ length }) => length > 0);
    const text = parts.map((part) => part.join("\n")).join("\n\n");
    return { data: { machines: data, events, logs: lines }, text };
  },
};

function headline(machines: readonly { state: string }[], now_ms: number): string {
  const states = Object.entries(Object.groupBy(machines, ({ state }) => state)).map(
    ([state, list]) => `${list?.length ?? 0} ${state}`,
  );
  return styled("bold", `${count(machines.length, "machine")}: ${states.join(", ") || "none"}  (${timeOf(now_ms)})`);
}

const readMachines = ({ client }: Context, input: Input) =>
  client.call("GET /v1/orgs/:org_slug/machines", { params: orgOf(input), query: { limit: 1000 } });

const orgOf = (input: Input): { org_slug: string } => ({ org_slug: textOption(input, "org") ?? "personal" });

/** The last minutes of a query by instance; empty where metrics are unavailable. */
async function used(context: Context, input: Input, query: string, now_ms: number): Promise<Map<string, number[]>> {
  const end = Math.floor(now_ms / 1000);
  const last = { start: end - MINUTES * 60, end, step: STEP_S };
  const found: Found[] = await range(context, input, query, last).catch(() => []);
  return new Map(
    found.map(({ metric, values = [] }) => [metric["instance"] ?? "", values.map(([, value]) => Number(value))]),
  );
}

async function readEvents({ client }: Context, input: Input): Promise<string[]> {
  const { events } = await client.call("GET /v1/orgs/:org_slug/events", {
    params: orgOf(input),
    query: { tail: EVENTS },
    headers: { accept: "application/json" },
  });
  return events.map(
    ({ timestamp, app_name, machine_name, type, status, source }) =>
      `${timeOf(timestamp)}  ${app_name}/${machine_name}  ${type} ${status} by ${source}`,
  );
}

/** The newest log lines of these apps, by time. An app that was just deleted has none. */
async function readLogs({ client }: Context, apps: readonly string[]): Promise<string[]> {
  const found = await Promise.all(
    apps.map(async (app_name) => {
      const request = { params: { app_name }, query: { tail: LINES }, headers: { accept: "application/json" } };
      const { lines } = await client.call("GET /v1/apps/:app_name/logs", request).catch(() => ({ lines: [] }));
      return lines.map((line) => ({ ...line, app_name }));
    }),
  );
  return found
    .flat()
    .sort((a, b) => a.timestamp - b.timestamp)
    .slice(-LINES)
    .map(({ timestamp, app_name, machine_name, message }) =>
      styled("dim", `${timeOf(timestamp)}  ${app_name}/${machine_name}  ${message}`),
    );
}

const timeOf = (at_ms: number): string => new Date(at_ms).toISOString().slice(11, 19);
