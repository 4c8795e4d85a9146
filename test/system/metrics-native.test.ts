/**
 * Native histograms of foreign programs: client_golang exposes them, Debian's Prometheus scrapes and pushes them, and
 * both answer the same queries over the same samples.
 */
import assert from "node:assert/strict";
import { spawnSync } from "node:child_process";
import { existsSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { suite, type TestContext, test } from "node:test";
import { systemClock } from "#core/clock.ts";
import { openMetricsEngine } from "#metrics/engine/engine.ts";
import { Budget } from "#metrics/scrape/budget.ts";
import { KeepAliveConnection } from "#metrics/scrape/fetch.ts";
import { freePort } from "#proxy/fixtures.ts";
import { startProgram } from "../foreign-program.ts";
import { testPlatform } from "../platform.ts";
import { tempDir, until } from "../support.ts";

type Bucket = [boundaries: number, lower: string, upper: string, count: string];
type Point = [time: number, histogram: { count: string; sum: string; buckets?: Bucket[] }];

interface Series {
  metric: Record<string, string>;
  histogram?: Point;
  histograms?: Point[];
  value?: [number, string];
}

const source = join(import.meta.dirname, "../native-histograms-go");

function built(t: TestContext): string | undefined {
  const program = join(tempDir(), "observe");
  const made = spawnSync("go", ["build", "-o", program, "."], { cwd: source, encoding: "utf8" });
  if (made.status === 0) return program;
  t.skip(`no Go toolchain, or its modules cannot be had: ${made.error?.message ?? made.stderr.slice(0, 200)}`);
  return undefined;
}

async function ask(base: string, query: string, time: number, token?: string): Promise<Series[]> {
  const text = `${base}/api/v1/query?dialect=promql&time=${time}&query=${encodeURIComponent(query)}`;
  const headers = token ? { authorization: `Bearer ${token}` } : {};
  const answer = await fetch(text, { headers }).catch(() => undefined);
  if (!answer?.ok) return [];
  return ((await answer.json()) as { data: { result: Series[] } }).data.result;
}

/** Numbers of a result, in an order that does not depend on the engine. */
function numbersOf(series: readonly Series[]): [string, number[]][] {
  const flat = ([time, { count, sum, buckets = [] }]: Point): number[] => [
    time,
    Number(count),
    Number(sum),
    ...buckets.flat().map(Number),
  ];
  return series
    .map(({ metric, histogram, histograms = [], value }): [string, number[]] => [
      Object.values(metric).sort().join(" "),
      [...(histogram ? [histogram] : []), ...histograms].flatMap(flat).concat(value?.map(Number) ?? []),
    ])
    .sort(([a], [b]) => (a < b ? -1 : 1));
}

/** Equal to twelve digits: bounds are powers that both compute. */
function assertSame(ours: readonly Series[], theirs: readonly Series[], query: string): void {
  const [a, b] = [numbersOf(ours), numbersOf(theirs)];
  assert.deepEqual(
    a.map(([name, { length }]) => [name, length]),
    b.map(([name, { length }]) => [name, length]),
    query,
  );
  for (const [i, [name, numbers]] of a.entries()) {
    for (const [k, number] of numbers.entries()) {
      const other = b[i]?.[1][k] as number;
      const isClose = Object.is(number, other) || Math.abs(number - other) <= 1e-12 * Math.abs(other);
      assert.ok(isClose, `${query}: ${name}: number ${k} is ${number}, not ${other}`);
    }
  }
}

const QUERIES = [
  "latency_seconds",
  "histogram_count(latency_seconds)",
  "histogram_sum(latency_seconds)",
  "rate(latency_seconds[10s])",
  "increase(latency_seconds[7s])",
  "sum(rate(latency_seconds[10s]))",
  "sum without (route) (latency_seconds)",
  'histogram_count(rate(latency_seconds{route="signed"}[10s]))',
];

suite("native histograms of foreign senders", () => {
  test("client_golang's are scraped in protobuf, and its classic ones in the same response", async (t) => {
    const program = built(t);
    if (program === undefined) return;
    const port = await freePort();
    startProgram(t, program, [`-listen=127.0.0.1:${port}`]);
    const engine = openMetricsEngine({ dir: tempDir(), clock: systemClock });
    t.after(() => engine.close());
    const settings = { path: "/metrics", native_histograms: true };
    const connection = new KeepAliveConnection({ host: "127.0.0.1", port }, settings);
    t.after(() => connection.close(new Error("the test is over")));
    const fetched = await until(
      "the program answers",
      async () => await connection.fetch(new Budget().open("org")).catch(() => undefined),
      { every_ms: 100 },
    );
    const timestamp_ms = systemClock.now();
    const options = { format: fetched.format, timestamp_ms, labels: ["app", "web"] };
    const result = await engine.importText("org", Uint8Array.from(fetched.bytes), options);
    fetched.release();
    assert.deepEqual([fetched.format, result.problems], ["protobuf", []]);
    const numbers = async (query: string): Promise<Record<string, number>> => {
      const request = { query, start_ms: timestamp_ms, end_ms: timestamp_ms, dialect: "promql" } as const;
      const { data } = JSON.parse(Buffer.from(await engine.query("org", request)).toString()) as {
        data: { result: Series[] };
      };
      return Object.fromEntries(data.result.map(({ metric, value }) => [String(metric["route"]), Number(value?.[1])]));
    };
    assert.deepEqual(await numbers("histogram_count(latency_seconds)"), { signed: 50, wide: 50, zeros: 50 });
    assert.deepEqual(await numbers('histogram_sum(latency_seconds{app="web", route="zeros"})'), { zeros: 25 });
    assert.deepEqual(await numbers('histogram_fraction(-1, 0.5, latency_seconds{route="zeros"})'), { zeros: 0.5 });
    assert.deepEqual(await numbers('size_bytes_bucket{le="1024.0"}'), { wide: 1 });
    assert.deepEqual(await numbers("size_bytes_sum"), { wide: 512 });
    assert.deepEqual(await numbers("scrapes_total"), { undefined: 1 });
  });

  test("client_golang's, pushed by Prometheus, give its answers", {
    skip: !existsSync("/usr/bin/prometheus") && "needs prometheus",
  }, async (t) => {
    const program = built(t);
    if (program === undefined) return;
    const platform = await testPlatform(t);
    const { body } = await platform.ask("POST /v1/orgs/personal/tokens", { body: { kind: "org" } });
    const [dir, port, target] = [tempDir(), await freePort(), await freePort()];
    startProgram(t, program, [`-listen=127.0.0.1:${target}`]);
    const write = `${platform.base_url}/prometheus/personal/api/v1/write`;
    writeFileSync(
      join(dir, "p.yml"),
      `global: {scrape_interval: 1s}
scrape_configs: [{job_name: go, static_configs: [{targets: ["127.0.0.1:${target}"]}]}]
remote_write:
- url: "${write}"
  send_native_histograms: true
  authorization: {credentials: "${body.token as string}"}
  queue_config: {batch_send_deadline: 1s}
`,
    );
    startProgram(t, "/usr/bin/prometheus", [
      `--config.file=${dir}/p.yml`,
      `--storage.tsdb.path=${dir}/data`,
      `--web.listen-address=127.0.0.1:${port}`,
      "--enable-feature=native-histograms",
    ]);
    const theirs = (query: string, time: number): Promise<Series[]> => ask(`http://127.0.0.1:${port}`, query, time);
    const mine = `${platform.base_url}/prometheus/personal`;
    const ours = (query: string, time: number): Promise<Series[]> => ask(mine, query, time, platform.token);
    const now = (): number => systemClock.now() / 1000;
    const isThere = async (): Promise<boolean> =>
      ((await theirs("latency_seconds[1m]", now()))[0]?.histograms?.length ?? 0) >= 12;
    await until("Prometheus has scraped twelve times", isThere, { every_ms: 500 });
    const newest = (await theirs("latency_seconds", now()))[0]?.histogram?.[0] ?? 0;
    // Between two scrapes: Prometheus 2 has windows closed at their beginning, and we have them open.
    const time = Math.floor(newest * 1000 - 450) / 1000;
    const samples = await theirs("latency_seconds[1m]", time);
    await until(
      "all of them have arrived",
      async () => {
        const found = await ours("latency_seconds[1m]", time);
        return numbersOf(found).flat(2).length >= numbersOf(samples).flat(2).length;
      },
      { every_ms: 500 },
    );
    assertSame(await ours("latency_seconds[1m]", time), samples, "latency_seconds[1m]");
    for (const query of QUERIES) assertSame(await ours(query, time), await theirs(query, time), query);
    const points = samples.reduce((sum, { histograms = [] }) => sum + histograms.length, 0);
    const buckets = samples.flatMap(({ histograms = [] }) => histograms.flatMap(([, { buckets = [] }]) => buckets));
    t.diagnostic(`${points} histograms with ${buckets.length} buckets, ${QUERIES.length} queries, all the same`);
    assert.ok(points >= 30 && buckets.length > 500);
  });
});
