/** Prometheus and VictoriaMetrics as packaged by the distribution, on loopback, for as long as a test runs. */
import { execFileSync, spawn } from "node:child_process";
import { mkdirSync, writeFileSync } from "node:fs";
import { createServer } from "node:net";
import { join } from "node:path";
import type { TestContext } from "node:test";
import type { MemorySeries } from "#metrics/promql/memory-source.ts";

export interface Peer {
  url: string;
}

/** Points by series and time, or the error. */
export type PeerAnswer = { points: Map<string, number> } | { error: string };

export function installed(command: string): boolean {
  try {
    execFileSync("sh", ["-c", `command -v ${command}`], { stdio: "ignore" });
    return true;
  } catch {
    return false;
  }
}

async function freePort(): Promise<number> {
  const server = createServer();
  await new Promise<void>((resolve) => server.listen(0, "127.0.0.1", resolve));
  const address = server.address();
  await new Promise((resolve) => server.close(resolve));
  return typeof address === "object" && address ? address.port : 0;
}

/** Starts a program that ends with the test, and waits until it answers. */
async function start(t: TestContext, command: string, args: string[], url: string): Promise<void> {
  const child = spawn(command, args, { stdio: "ignore" });
  t.after(async () => {
    const ended = new Promise((resolve) => child.once("exit", resolve));
    if (child.kill()) await ended;
  });
  for (let tries = 0; tries < 200; tries++) {
    const answer = await fetch(url).catch(() => undefined);
    if (answer?.ok) return;
    await new Promise((resolve) => setTimeout(resolve, 50));
  }
  throw new Error(`${command} does not answer at ${url}`);
}

function labelsOf({ labels }: MemorySeries): [string, string][] {
  return Array.from({ length: labels.length / 2 }, (_, i) => [labels[2 * i] ?? "", labels[2 * i + 1] ?? ""]);
}

/** The samples as OpenMetrics text, made into blocks before Prometheus starts. */
export async function startPrometheus(t: TestContext, dir: string, data: MemorySeries[]): Promise<Peer> {
  const blocks = join(dir, "prometheus");
  mkdirSync(blocks, { recursive: true });
  const families = Map.groupBy(data, (series) => labelsOf(series).find(([name]) => name === "__name__")?.[1] ?? "");
  const text = [...families].map(
    ([name, family]) => `# TYPE ${name} unknown\n${family.map((one) => exposition(name, one)).join("")}`,
  );
  writeFileSync(join(dir, "data.om"), `${text.join("")}# EOF\n`);
  execFileSync("promtool", ["tsdb", "create-blocks-from", "openmetrics", join(dir, "data.om"), blocks], {
    stdio: "ignore",
  });
  writeFileSync(join(dir, "prometheus.yml"), "global: {}\n");
  const port = await freePort();
  const url = `http://127.0.0.1:${port}`;
  const flags = [
    `--config.file=${dir}/prometheus.yml`,
    `--storage.tsdb.path=${blocks}`,
    "--storage.tsdb.retention.time=100y",
  ];
  await start(t, "prometheus", [...flags, `--web.listen-address=127.0.0.1:${port}`], `${url}/-/ready`);
  return { url };
}

function exposition(name: string, series: MemorySeries): string {
  const labels = labelsOf(series).filter(([key]) => key !== "__name__");
  const braces =
    labels.length === 0 ? "" : `{${labels.map(([key, value]) => `${key}=${JSON.stringify(value)}`).join(",")}}`;
  return Array.from(series.timestamps, (time, i) => `${name}${braces} ${series.values[i]} ${time / 1000}\n`).join("");
}

export async function startVictoriaMetrics(t: TestContext, dir: string, data: MemorySeries[]): Promise<Peer> {
  const port = await freePort();
  const url = `http://127.0.0.1:${port}`;
  const flags = [
    `-storageDataPath=${dir}/victoria`,
    "-retentionPeriod=100y",
    "-search.latencyOffset=0s",
    "-search.disableCache",
  ];
  await start(t, "victoria-metrics", [...flags, `-httpListenAddr=127.0.0.1:${port}`], `${url}/health`);
  const lines = data.map((series) => {
    const keep = Array.from(series.values, (value, i) => (Number.isNaN(value) ? -1 : i)).filter((i) => i >= 0);
    const pick = (list: ArrayLike<number>): number[] => keep.map((i) => list[i] as number);
    return JSON.stringify({
      metric: Object.fromEntries(labelsOf(series)),
      values: pick(series.values),
      timestamps: pick(series.timestamps),
    });
  });
  const loaded = await fetch(`${url}/api/v1/import`, { method: "POST", body: lines.join("\n") });
  if (!loaded.ok) throw new Error(`VictoriaMetrics refused the data: ${loaded.status}`);
  await fetch(`${url}/internal/force_flush`);
  return { url };
}

export interface Asked {
  query: string;
  instant: boolean;
  start_ms: number;
  end_ms: number;
  step_ms: number;
}

interface Body {
  status: string;
  error?: string;
  data?: { resultType: string; result: unknown };
}

interface WireSeries {
  metric: Record<string, string>;
  values?: [number, string][];
  value?: [number, string];
}

export async function ask({ url }: Peer, { query, instant, start_ms, end_ms, step_ms }: Asked): Promise<PeerAnswer> {
  const seconds = (ms: number): string => (ms / 1000).toFixed(3);
  const range = { query, start: seconds(start_ms), end: seconds(end_ms), step: seconds(step_ms), nocache: "1" };
  const form = new URLSearchParams(instant ? { query, time: seconds(start_ms), nocache: "1" } : range);
  const answer = await fetch(`${url}/api/v1/${instant ? "query" : "query_range"}`, { method: "POST", body: form });
  const body = (await answer.json()) as Body;
  if (body.status !== "success" || !body.data) return { error: body.error ?? "no reason given" };
  return { points: pointsOf(body.data) };
}

function pointsOf({ resultType, result }: NonNullable<Body["data"]>): Map<string, number> {
  if (resultType === "scalar") return new Map([["scalar", number((result as [number, string])[1])]]);
  const points = (result as WireSeries[]).flatMap(({ metric, values, value }) => {
    const key = seriesKey(Object.entries(metric));
    const list = values ?? (value ? [value] : []);
    return list.map(([time, text]): [string, number] => [`${key}@${Math.round(time * 1000)}`, number(text)]);
  });
  return new Map(points);
}

/** Labels in one order, as text. */
export function seriesKey(pairs: [string, string][]): string {
  return JSON.stringify(pairs.sort(([a], [b]) => (a < b ? -1 : 1)));
}

function number(text: string): number {
  return text.endsWith("Inf") ? Number(text.replace("Inf", "Infinity")) : Number(text);
}
