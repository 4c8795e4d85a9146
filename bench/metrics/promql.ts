/**
 * How much CPU the evaluator takes over series that cost nothing to read: `node bench/metrics/promql.ts`. Counters at 15 s for
 * six hours, asked every 60 s, as in the query table of the metrics benchmark; reading from disk comes on top.
 */
import { range } from "#metrics/promql/engine.ts";
import { writeResult } from "#metrics/promql/json.ts";
import { type MemorySeries, memorySource } from "#metrics/promql/memory-source.ts";

const POINTS = 1440;
const SCRAPE_MS = 15_000;
const LES = ["0.005", "0.01", "0.025", "0.05", "0.1", "0.25", "0.5", "1", "2.5", "5", "10", "+Inf"];

interface Timing {
  name: string;
  /** CPU milliseconds of the best of the rounds. */
  cpu_ms: number;
  samples: number;
}

function counters(count: number): MemorySeries[] {
  const timestamps = Float64Array.from({ length: POINTS }, (_, i) => i * SCRAPE_MS);
  return Array.from({ length: count }, (_, n) => ({
    labels:
      `__name__ http_requests_total app app-${n % 100} instance i${n} region r${n % 5} status ${200 + (n % 4)}`.split(
        " ",
      ),
    timestamps,
    values: Float64Array.from({ length: POINTS }, (_, i) => (i * (n % 17) + ((i * 7919 + n) % 13)) % 50_000),
  }));
}

function histograms(count: number): MemorySeries[] {
  const timestamps = Float64Array.from({ length: POINTS }, (_, i) => i * SCRAPE_MS);
  return Array.from({ length: count }, (_, n) =>
    LES.map((le, b) => ({
      labels: ["__name__", "latency_bucket", "app", `app-${n % 20}`, "instance", `i${n}`, "le", le],
      timestamps,
      values: Float64Array.from({ length: POINTS }, (_, i) => i * (b + 1) * (1 + (n % 3))),
    })),
  ).flat();
}

function time(name: string, rounds: number, run: () => number): Timing {
  let best = Number.POSITIVE_INFINITY;
  let samples = 0;
  for (let i = 0; i < rounds; i++) {
    const before = process.cpuUsage();
    samples = run();
    const used = process.cpuUsage(before);
    best = Math.min(best, (used.user + used.system) / 1000);
  }
  return { name, cpu_ms: best, samples };
}

export function benchPromql(rounds = 5): Timing[] {
  const grid = { start_ms: 0, end_ms: (POINTS - 1) * SCRAPE_MS, step_ms: 60_000 };
  const many = memorySource(counters(10_000));
  const some = memorySource(counters(2_000));
  const buckets = memorySource(histograms(200));
  const answer = range({ query: "rate(http_requests_total[5m])", source: memorySource(counters(1_000)), ...grid });
  const ask = (source: typeof many, query: string) => (): number => range({ query, source, ...grid }).samples;
  return [
    time(
      "sum by (app, status) (rate[5m]), 2,000 series",
      rounds,
      ask(some, "sum by (app, status) (rate(http_requests_total[5m]))"),
    ),
    time(
      "sum by (region) (rate[5m]), 10,000 series",
      rounds,
      ask(many, "sum by (region) (rate(http_requests_total[5m]))"),
    ),
    time("sum by (region) (metric), 10,000 series", rounds, ask(many, "sum by (region) (http_requests_total)")),
    time("max_over_time[5m], 2,000 series", rounds, ask(some, "max(max_over_time(http_requests_total[5m]))")),
    time(
      "histogram_quantile(0.95, sum by (le, app) (rate[5m])), 2,400 series",
      rounds,
      ask(buckets, "histogram_quantile(0.95, sum by (le, app) (rate(latency_bucket[5m])))"),
    ),
    time(
      "topk(10, sum by (app) (rate[5m])), 2,000 series",
      rounds,
      ask(some, "topk(10, sum by (app) (rate(http_requests_total[5m])))"),
    ),
    time("rate[5m] of 1,000 series as JSON, the writing alone", rounds, () => {
      writeResult(answer);
      return answer.data.type === "matrix"
        ? answer.data.series.length * (answer.data.series[0]?.values.length ?? 0)
        : 0;
    }),
  ];
}

if (import.meta.main) {
  for (const { name, cpu_ms, samples } of benchPromql()) {
    const rate = `${(samples / cpu_ms / 1000).toFixed(0)} M samples/s`;
    process.stdout.write(`${name.padEnd(72)} ${cpu_ms.toFixed(0).padStart(6)} ms CPU  ${rate}\n`);
  }
}
