import { systemClock } from "#core/clock.ts";
import { table } from "../output.ts";
import { firstArgument, textOption, type Verb } from "../verb.ts";
import { askMetrics, durationOption, type Found, instant, ORG, range, seriesText } from "./ask.ts";
import { plot, shortNumber, sparkline } from "./plot.ts";

const QUERY: readonly [string, string] = ["<query>", "MetricsQL or PromQL"];
/** Height of plots, and the highest number of series that stay readable. */
const PLOT_ROWS = 12;
const PLOT_LINES = 20;

const columns = (): number => Math.max(40, Math.min(160, (process.stdout.columns ?? 100) - 14));
const numbers = ({ values = [] }: Found): [number, number][] =>
  values.map(([seconds, text]) => [seconds, text === "+Inf" ? Number.POSITIVE_INFINITY : Number(text)]);

export const metricsQuery: Verb = {
  words: "metrics query",
  summary: "Run an instant query",
  arguments: [QUERY],
  options: [ORG, ["--time <time>", "the moment: seconds since 1970 or RFC 3339 (default: now)"]],
  examples: ["hangar metrics query 'sum by (app) (svc_instance_up)'"],
  async run(context, input) {
    const found = await instant(context, input, firstArgument(input), textOption(input, "time"));
    const rows = found.map(({ metric, value }) => [seriesText(metric), value?.[1] ?? ""]);
    return { data: found, text: rows.length === 0 ? "nothing matches" : table(["series", "value"], rows) };
  },
};

export const metricsRange: Verb = {
  words: "metrics range",
  summary: "Run a range query and plot it",
  arguments: [QUERY],
  options: [
    ORG,
    ["--last <time>", "how far back, such as 30m or 6h (default: 1h)"],
    ["--step <time>", "step between points (default: fits the width of the plot)"],
  ],
  examples: ["hangar metrics range 'sum(rate(svc_edge_http_responses_count))' --last 30m"],
  async run(context, input) {
    const last = durationOption(input, "last", "1h");
    const end = Math.floor(systemClock.now() / 1000);
    // Two points per column, but not below the scrape interval.
    const step = durationOption(input, "step", `${Math.max(15, Math.ceil(last / (columns() * 2)))}s`);
    const found = await range(context, input, firstArgument(input), { start: end - last, end, step });
    if (found.length === 0) return { data: found, text: "nothing matches" };
    const lines = found.map((one) => ({ name: seriesText(one.metric), points: numbers(one) }));
    const drawn = plot(lines.slice(0, PLOT_LINES), { columns: columns(), rows: PLOT_ROWS });
    const rows = lines.map(({ name, points }) => [
      name,
      shortNumber(points.at(-1)?.[1] ?? Number.NaN),
      sparkline(
        points.map(([, value]) => value),
        30,
      ),
    ]);
    return { data: found, text: `${drawn}\n\n${table(["series", "now", ""], rows)}` };
  },
};

export const metricsSeries: Verb = {
  words: "metrics series",
  summary: "List series: those that match, or the names of all metrics",
  arguments: [["[selector]", 'such as svc_instance_cpu{app="web"}']],
  options: [ORG],
  examples: ["hangar metrics series", "hangar metrics series 'svc_instance_up'"],
  async run(context, input) {
    const [selector] = input.args;
    if (selector === undefined) {
      const { data } = await askMetrics<{ data: string[] }>(
        context,
        input,
        "GET /prometheus/:org_slug/api/v1/label/:label_name/values",
        { params: { label_name: "__name__" }, query: {} },
      );
      return { data, text: data.join("\n") || "no metrics yet; running machines have some within 15 seconds" };
    }
    const { data } = await askMetrics<{ data: Record<string, string>[] }>(
      context,
      input,
      "GET /prometheus/:org_slug/api/v1/series",
      { query: { "match[]": [selector] } },
    );
    return { data, text: data.map(seriesText).join("\n") || "nothing matches" };
  },
};

/** Columns of `metrics top`, each a query whose series are identified by `app` and `instance`. */
const TOP: readonly [head: string, query: string][] = [
  ["cpu", 'sum by (app, instance) (rate(svc_instance_cpu{mode=~"user|system"}[1m])) / 100'],
  ["memory", "sum by (app, instance) (svc_instance_memory_mem_total - svc_instance_memory_mem_available)"],
  ["net in/s", 'sum by (app, instance) (rate(svc_instance_net_recv_bytes{device="eth0"}[1m]))'],
  ["net out/s", 'sum by (app, instance) (rate(svc_instance_net_sent_bytes{device="eth0"}[1m]))'],
  ["disk/s", "sum by (app, instance) (rate(svc_instance_disk_sectors_written[1m])) * 512"],
  ["load", 'sum by (app, instance) (svc_instance_load_average{minutes="1"})'],
];

export const metricsTop: Verb = {
  words: "metrics top",
  summary: "Show CPU and memory use of machines, busiest first",
  options: [ORG],
  examples: ["hangar metrics top"],
  async run(context, input) {
    const answers = await Promise.all(TOP.map(([, query]) => instant(context, input, query)));
    const machines = new Map<string, { app: string; instance: string; used: number[] }>();
    for (const [place, found] of answers.entries()) {
      for (const { metric, value } of found) {
        const { app = "", instance = "" } = metric;
        const known = machines.get(instance) ?? { app, instance, used: [] };
        machines.set(instance, known);
        known.used[place] = Number(value?.[1]);
      }
    }
    const busiest = [...machines.values()].toSorted((a, b) => (b.used[0] ?? 0) - (a.used[0] ?? 0));
    const rows = busiest.map(({ app, instance, used }) => [
      app,
      instance,
      ...TOP.map((_, place) => (used[place] === undefined ? "-" : shortNumber(used[place]))),
    ]);
    const heads = ["app", "instance", ...TOP.map(([head]) => head)];
    const data = busiest.map(({ app, instance, used }) => ({
      app,
      instance,
      ...Object.fromEntries(TOP.map(([head], place) => [head.replaceAll(/\W/g, "_"), used[place] ?? null])),
    }));
    return { data, text: rows.length === 0 ? "no machine has been scraped yet" : table(heads, rows) };
  },
};
