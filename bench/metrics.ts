/**
 * The metrics engine next to its peers, on the same bytes in the same run:
 *
 *     npm run bench metrics
 *
 * The figure is processor time, which a busy machine disturbs least. 14.4 M samples (10,000 series of 1,440
 * points) come as remote write over two connections; then what is stored is brought into its final form and
 * asked. Debian's peers are older than the newest releases; a published comparison should say so.
 */
import { Agent, request } from "node:http";
import { setTimeout as sleep } from "node:timers/promises";
import { END_MS, POINTS, SERIES_PER_INSTANCE, START_MS } from "./metrics/data.ts";
import { ENGINES, type Engine, read, whyNot } from "./metrics/engines.ts";
import { requestFiles, requestsOf } from "./metrics/requests.ts";
import type { Report } from "./report.ts";

interface Loaded {
  samples: number;
  samples_per_cpu_s: number;
  samples_per_s: number;
  bytes_per_sample: number;
  rss_mib: number;
  /** Query → processor milliseconds; absent while the engine cannot answer it. */
  query_cpu_ms: Record<string, number>;
}

const INSTANCES = 200;
const GROWTH: [instances: number, points: number][] = [
  [20, POINTS],
  [200, POINTS],
  [2000, 120],
];
/** Enough for code that is compiled while it runs to be compiled; the same for everyone. */
const WARM_UPS = 6;
const REPEATS = 12;

const range = (query: string): string =>
  `/api/v1/query_range?query=${encodeURIComponent(query)}&start=${START_MS / 1000}&end=${END_MS / 1000}&step=60`;
const instant = (query: string): string => `/api/v1/query?query=${encodeURIComponent(query)}&time=${END_MS / 1000}`;
const SPAN = `start=${START_MS / 1000}&end=${END_MS / 1000}`;
const BUCKETS = "svc_app_http_response_time_seconds_bucket";

const QUERIES: Record<string, string> = {
  "q1 instant sum by app": instant("sum by (app) (svc_app_http_responses_count)"),
  "q2 range sum of rates": range("sum by (app, status) (rate(svc_app_http_responses_count[5m]))"),
  "q2b range sum of 10,000": range('sum by (region) ({app=~"app-.*"})'),
  "q2c range rate of one app": range('rate(svc_app_http_responses_count{app="app-007"}[5m])'),
  "q3 range quantile": range(`histogram_quantile(0.95, sum by (le, app) (rate(${BUCKETS}[5m])))`),
  "q3b instant quantile": instant(`histogram_quantile(0.95, sum by (le, app) (rate(${BUCKETS}[5m])))`),
  "q4 instant topk": instant("topk(10, rate(svc_instance_net_recv_bytes[5m]))"),
  "q4b range topk": range("topk(10, sum by (app) (rate(svc_instance_net_recv_bytes[5m])))"),
  "q5 label values": `/api/v1/label/instance/values?${SPAN}`,
  "q6 series": `/api/v1/series?match[]=svc_app_http_responses_count&${SPAN}`,
  "q7 range of 600 gauges": range("svc_instance_load_average"),
};

/** Where to be as good as the better peer is not enough: what ours may take when that one takes `best`. */
const TARGETS: Record<string, (best: number) => number> = {
  "q1 instant sum by app": (best) => Math.min(best, 10),
  "q2 range sum of rates": (best) => 0.7 * best,
  "q6 series": (best) => Math.min(best, 5),
};

async function load(engine: Engine, files: string[]): Promise<number> {
  const agent = new Agent({ keepAlive: true });
  const url = `${engine.base}/api/v1/write`;
  const headers = { "content-encoding": "snappy", "x-prometheus-remote-write-version": "0.1.0" };
  const post = (body: Buffer): Promise<void> =>
    new Promise((resolve, reject) => {
      const sent = request(url, { agent, method: "POST", headers }, (answer) => {
        answer.resume();
        answer.once("end", () => {
          if ((answer.statusCode ?? 500) < 300) resolve();
          else reject(new Error(`${engine.name} answered ${answer.statusCode} to a write`));
        });
      });
      sent.once("error", reject);
      sent.end(body);
    });
  const counts = files.map(async (file) => {
    let requests = 0;
    for (const body of requestsOf(file)) {
      await post(body);
      requests++;
    }
    return requests;
  });
  const sent = await Promise.all(counts);
  agent.destroy();
  return sent.reduce((sum, requests) => sum + requests, 0);
}

/** Loads one engine while the others rest. */
async function fill(engine: Engine, instances: number, points: number): Promise<Loaded> {
  const files = requestFiles(instances, points);
  const cpu = engine.cpu();
  const started = performance.now();
  await load(engine, files);
  const wall_s = (performance.now() - started) / 1000;
  const cpu_s = engine.cpu() - cpu;
  // A moment for what was begun to end; the same for everyone.
  await sleep(2000);
  const rss_mib = engine.rss_mib();
  const bytes = await engine.settle();
  const samples = instances * SERIES_PER_INSTANCE * points;
  return {
    samples,
    samples_per_cpu_s: Math.round(samples / cpu_s),
    samples_per_s: Math.round(samples / wall_s),
    bytes_per_sample: Math.round((bytes / samples) * 1000) / 1000,
    rss_mib,
    query_cpu_ms: {},
  };
}

/** One after the other, query by query and run by run: whoever else uses this machine disturbs all engines alike. */
async function ask(engines: ReadonlyMap<Engine, Loaded>): Promise<void> {
  for (const [name, path] of Object.entries(QUERIES)) {
    for (const engine of engines.keys())
      for (let run = 0; run < WARM_UPS; run++) await read(engine.base + path + engine.query_suffix);
    const runs = new Map([...engines.keys()].map((engine) => [engine, [] as number[]]));
    for (let run = 0; run < REPEATS; run++) {
      for (const [engine, cpu_s] of runs) {
        const before = engine.cpu();
        await read(engine.base + path + engine.query_suffix);
        cpu_s.push(engine.cpu() - before);
      }
    }
    for (const [engine, loaded] of engines) loaded.query_cpu_ms[name] = middle(runs.get(engine) ?? []) * 1000;
  }
}

/** The mean of the middle half: a run that a collection of garbage fell into neither counts fully nor not at all. */
function middle(values: readonly number[]): number {
  const cut = Math.floor(values.length / 4);
  const kept = values.toSorted((a, b) => a - b).slice(cut, values.length - cut);
  return kept.reduce((sum, value) => sum + value, 0) / kept.length;
}

/** What is printed of each engine; ours is held against the better peer where there is a target. */
const FIGURES: [what: string, unit: string, pick: (loaded: Loaded) => number | undefined, better: "more" | "less"][] = [
  ["ingest", "samples/CPU s", (loaded) => loaded.samples_per_cpu_s, "more"],
  ["disk with index", "B/sample", (loaded) => loaded.bytes_per_sample, "less"],
  ["memory after load", "MiB", (loaded) => loaded.rss_mib, "less"],
  ...Object.keys(QUERIES).map((query): [string, string, (loaded: Loaded) => number | undefined, "less"] => [
    query,
    "CPU ms",
    (loaded) => loaded.query_cpu_ms[query],
    "less",
  ]),
];

/** What `npm run bench metrics` calls. */
export async function run(report: Report): Promise<void> {
  const measured = new Map<Engine, Loaded>();
  try {
    // Ours comes last, when the page cache is as full for us as it was for the others.
    for (const name of ["victoria-metrics", "prometheus", "hangar"] as const) {
      const why = whyNot(name);
      if (why !== undefined) {
        report.skip(name, why);
        continue;
      }
      const engine = await ENGINES[name]();
      measured.set(engine, await fill(engine, INSTANCES, POINTS));
    }
    await ask(measured);
  } finally {
    for (const engine of measured.keys()) await engine.stop();
  }
  for (const figure of FIGURES) compare(report, measured, figure);
  await growth(report);
}

async function growth(report: Report): Promise<void> {
  report.section("growth: hangar alone");
  for (const [instances, points] of GROWTH) {
    const engine = await ENGINES.hangar();
    try {
      const loaded = await fill(engine, instances, points);
      const size = `${instances * SERIES_PER_INSTANCE} series × ${points}`;
      report.add({ what: `ingest, ${size}`, value: loaded.samples_per_cpu_s, unit: "samples/CPU s" });
      report.add({ what: `disk, ${size}`, value: loaded.bytes_per_sample, unit: "B/sample" });
      report.add({ what: `memory, ${size}`, value: loaded.rss_mib, unit: "MiB" });
    } finally {
      await engine.stop();
    }
  }
}

function compare(
  report: Report,
  measured: ReadonlyMap<Engine, Loaded>,
  [what, unit, pick, better]: (typeof FIGURES)[number],
): void {
  const values = [...measured].flatMap(([{ name }, loaded]) => {
    const value = pick(loaded);
    return value === undefined ? [] : [{ name, value: Math.round(value * 1000) / 1000 }];
  });
  report.section(what);
  const peers = values
    .filter(({ name }) => name !== "hangar")
    .toSorted((a, b) => (better === "less" ? a.value - b.value : b.value - a.value));
  for (const { name, value } of peers) report.add({ what: name, value, unit });
  const [best] = peers;
  const ours = values.find(({ name }) => name === "hangar");
  if (!ours) return;
  const goal = best && (TARGETS[what]?.(best.value) ?? best.value);
  const bound = best ? { to: best.name, ...(better === "less" ? { at_most: goal } : { at_least: goal }) } : {};
  report.add({ what: "hangar", value: ours.value, unit, ...bound });
}
