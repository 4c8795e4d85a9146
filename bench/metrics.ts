/**
 * The metrics engine next to its peers, on the same bytes in the same run:
 *
 *     node bench/metrics.ts [--growth]
 *
 * The figure is processor time, which a busy machine disturbs least. 14.4 M samples (10,000 series of 1,440
 * points) come as remote write over two connections; then what is stored is brought into its final form and
 * asked. Debian's peers are older than the newest releases; a published comparison should say so.
 */
import { Agent, request } from "node:http";
import { setTimeout as sleep } from "node:timers/promises";
import { END_MS, POINTS, SERIES_PER_INSTANCE, START_MS } from "./metrics-data.ts";
import { ENGINES, type Engine, type EngineName, read, whyNot } from "./metrics-engines.ts";
import { requestFiles, requestsOf } from "./metrics-requests.ts";

export interface Loaded {
  samples: number;
  samples_per_cpu_s: number;
  samples_per_s: number;
  bytes_per_sample: number;
  rss_mib: number;
  /** Query → processor milliseconds; absent while the engine cannot answer it. */
  query_cpu_ms: Record<string, number>;
}

export type Report = Partial<Record<EngineName, Loaded>> & { skipped: string[]; growth: Record<string, Loaded> };

const INSTANCES = 200;
const GROWTH: [instances: number, points: number][] = [
  [20, POINTS],
  [200, POINTS],
  [2000, 120],
];
/** Enough for code that is compiled while it runs to be compiled; the same for everyone. */
const WARM_UPS = 6;
const REPEATS = 10;

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

async function measure(name: EngineName, instances: number, points: number, queries: typeof QUERIES): Promise<Loaded> {
  const files = requestFiles(instances, points);
  const engine = await ENGINES[name]();
  try {
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
      query_cpu_ms: await ask(engine, queries),
    };
  } finally {
    await engine.stop();
  }
}

async function ask(engine: Engine, queries: typeof QUERIES): Promise<Record<string, number>> {
  const cpu_ms: Record<string, number> = {};
  for (const [name, path] of Object.entries(queries)) {
    const url = engine.base + path + engine.query_suffix;
    try {
      for (let run = 0; run < WARM_UPS; run++) await read(url);
      const cpu = engine.cpu();
      for (let run = 0; run < REPEATS; run++) await read(url);
      cpu_ms[name] = Math.round(((engine.cpu() - cpu) / REPEATS) * 10_000) / 10;
    } catch (thrown) {
      if (engine.name !== "hangar") throw thrown;
      process.stderr.write(`${name}: ${String(thrown)}\n`);
    }
  }
  return cpu_ms;
}

/** What `npm run bench metrics` calls. */
export async function run(options: { growth?: boolean } = {}): Promise<Report> {
  const report: Report = { skipped: [], growth: {} };
  for (const name of Object.keys(ENGINES) as EngineName[]) {
    const why = whyNot(name);
    if (why === undefined) report[name] = await measure(name, INSTANCES, POINTS, QUERIES);
    else report.skipped.push(why);
  }
  if (options.growth) {
    for (const [instances, points] of GROWTH) {
      const series = instances * SERIES_PER_INSTANCE;
      report.growth[`${series} series`] = await measure("hangar", instances, points, {});
    }
  }
  return report;
}

/** One line per figure, ours first, with the ratio to the better peer. */
export function table(report: Report): string {
  const names = (Object.keys(ENGINES) as EngineName[]).filter((name) => report[name]);
  const rows: [string, (loaded: Loaded) => number | undefined][] = [
    ["ingest, samples per CPU second", (loaded) => loaded.samples_per_cpu_s],
    ["ingest, samples per second", (loaded) => loaded.samples_per_s],
    ["disk with index, bytes per sample", (loaded) => loaded.bytes_per_sample],
    ["memory after load, MiB", (loaded) => loaded.rss_mib],
    ...Object.keys(QUERIES).map((query): [string, (loaded: Loaded) => number | undefined] => [
      `${query}, CPU ms`,
      (loaded) => loaded.query_cpu_ms[query],
    ]),
  ];
  const line = (cells: (string | number | undefined)[]): string =>
    `${String(cells[0]).padEnd(36)}${cells
      .slice(1)
      .map((cell) => String(cell ?? "-").padStart(18))
      .join("")}\n`;
  let text = line(["", ...names]);
  for (const [title, pick] of rows) {
    text += line([title, ...names.map((name) => report[name] && pick(report[name]))]);
  }
  for (const [size, loaded] of Object.entries(report.growth)) {
    const { samples_per_cpu_s, bytes_per_sample, rss_mib } = loaded;
    text += `hangar, ${size}: ${samples_per_cpu_s} samples per CPU second, ${bytes_per_sample} bytes, ${rss_mib} MiB\n`;
  }
  return text + report.skipped.map((why) => `skipped: ${why}\n`).join("");
}

if (import.meta.main) {
  const report = await run({ growth: process.argv.includes("--growth") });
  process.stdout.write(table(report));
}
