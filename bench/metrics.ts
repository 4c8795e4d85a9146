/**
 * The metrics engine next to its peers, on the same bytes in the same run:
 *
 *     npm run bench metrics
 *
 * The figure is processor time, which a busy machine disturbs least. 14.4 M samples (10,000 series of 1,440
 * points) come as remote write over two connections; then what is stored is brought into its final form and
 * asked. Which versions the peers are of stands beside their figures, see peer-programs.ts.
 */
import { setTimeout as sleep } from "node:timers/promises";
import { END_MS, POINTS, SERIES_PER_INSTANCE, START_MS } from "./metrics/data.ts";
import { ENGINES, type Engine, read, startEngine } from "./metrics/engines.ts";
import { load } from "./metrics/load.ts";
import { requestFiles } from "./metrics/requests.ts";
import { measureRestart, type Restart } from "./metrics/restart.ts";
import type { Report } from "./report.ts";

interface Loaded {
  samples: number;
  samples_per_cpu_s: number;
  /** With the work of bringing it into its final form. */
  settled_per_cpu_s: number;
  samples_per_s: number;
  bytes_per_sample: number;
  rss_mib: number;
  /** After all queries. */
  asked_rss_mib?: number;
  restart?: Restart;
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
  "restart after kill -9": (best) => 2 * best,
};

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
  const settled_cpu_s = engine.cpu() - cpu;
  const samples = instances * SERIES_PER_INSTANCE * points;
  return {
    samples,
    samples_per_cpu_s: Math.round(samples / cpu_s),
    settled_per_cpu_s: Math.round(samples / settled_cpu_s),
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
  for (const [engine, loaded] of engines) loaded.asked_rss_mib = engine.rss_mib();
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
  ["ingest and compaction", "samples/CPU s", (loaded) => loaded.settled_per_cpu_s, "more"],
  ["disk with index", "B/sample", (loaded) => loaded.bytes_per_sample, "less"],
  ["memory after load", "MiB", (loaded) => loaded.rss_mib, "less"],
  ["memory after queries", "MiB", (loaded) => loaded.asked_rss_mib, "less"],
  ["samples kept after kill -9", "%", (loaded) => loaded.restart?.kept_percent, "more"],
  ["restart after kill -9", "CPU ms", (loaded) => loaded.restart?.cpu_ms, "less"],
  ...Object.keys(QUERIES).map((query): [string, string, (loaded: Loaded) => number | undefined, "less"] => [
    query,
    "CPU ms",
    (loaded) => loaded.query_cpu_ms[query],
    "less",
  ]),
];

/** Ours comes last, when the page cache is as full for us as it was for the others. */
const NAMES = ["victoria-metrics", "prometheus", "hangar"] as const;

/** What `npm run bench metrics` calls. */
export async function run(report: Report): Promise<void> {
  const measured = new Map<Engine, Loaded>();
  const versions = new Map<string, string>();
  try {
    for (const name of NAMES) {
      const started = await startEngine(name);
      if ("reason" in started) {
        report.skip(name, started.reason);
        continue;
      }
      const { engine, version } = started;
      versions.set(name, version);
      measured.set(engine, await fill(engine, INSTANCES, POINTS));
    }
    await ask(measured);
  } finally {
    for (const engine of measured.keys()) await engine.stop();
  }
  for (const [{ name }, loaded] of measured) loaded.restart = await restartOf(name);
  for (const figure of FIGURES) compare(report, { measured, versions }, figure);
  await growth(report);
}

async function restartOf(name: Engine["name"]): Promise<Restart> {
  const started = await startEngine(name);
  if ("reason" in started) throw new Error(started.reason);
  try {
    return await measureRestart(started.engine);
  } finally {
    await started.engine.stop();
  }
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
  { measured, versions }: { measured: ReadonlyMap<Engine, Loaded>; versions: ReadonlyMap<string, string> },
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
  for (const { name, value } of peers) report.add({ what: name, value, unit, note: versions.get(name) ?? "" });
  const [best] = peers;
  const ours = values.find(({ name }) => name === "hangar");
  if (!ours) return;
  const goal = best && (TARGETS[what]?.(best.value) ?? best.value);
  const bound = best ? { to: best.name, ...(better === "less" ? { at_most: goal } : { at_least: goal }) } : {};
  report.add({ what: "hangar", value: ours.value, unit, ...bound });
}
