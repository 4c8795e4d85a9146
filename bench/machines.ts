/**
 * Machines on the sim driver: how fast they are made and changed with every write on disk, how reading and
 * listing grow, what one costs in memory, how fast waiters wake. Everything over real HTTP with the durability
 * the platform ships with. `node bench/machines.ts [--large]` prints a table; `--peers` adds Docker and Podman.
 */
import { spawn } from "node:child_process";
import { mkdtempSync, readFileSync, rmSync } from "node:fs";
import { Agent, request } from "node:http";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { readSettings } from "#core/settings.ts";
import { startPlatform } from "../src/platform.ts";

export interface Figure {
  name: string;
  value: number;
  unit: string;
}

type Ask = (method: string, path: string, body?: unknown) => Promise<{ status: number; text: string }>;

const CLIENTS = 64;

function asker(base_url: string, token: string): Ask {
  const agent = new Agent({ keepAlive: true, maxSockets: 2000 });
  const { hostname, port } = new URL(base_url);
  return (method, path, body) =>
    new Promise((resolve, reject) => {
      const payload = body === undefined ? undefined : JSON.stringify(body);
      const headers = {
        authorization: `Bearer ${token}`,
        ...(payload ? { "content-type": "application/json", "content-length": Buffer.byteLength(payload) } : {}),
      };
      const sent = request({ agent, hostname, port, method, path, headers }, (response) => {
        const chunks: Buffer[] = [];
        response.on("data", (chunk: Buffer) => chunks.push(chunk));
        response.on("end", () => resolve({ status: response.statusCode ?? 0, text: Buffer.concat(chunks).toString() }));
      });
      sent.on("error", reject);
      sent.end(payload);
    });
}

/** Runs `work` `count` times with so many at once; answers milliseconds of each, and of all. */
async function load(
  count: number,
  clients: number,
  work: (i: number) => Promise<unknown>,
): Promise<{ each: number[]; all: number }> {
  const each: number[] = [];
  let next = 0;
  const began = performance.now();
  await Promise.all(
    Array.from({ length: clients }, async () => {
      for (let i = next++; i < count; i = next++) {
        const at = performance.now();
        await work(i);
        each.push(performance.now() - at);
      }
    }),
  );
  return { each: each.toSorted((a, b) => a - b), all: performance.now() - began };
}

const quantile = (sorted: readonly number[], q: number): number =>
  sorted[Math.min(sorted.length - 1, Math.floor(q * sorted.length))] ?? 0;
const round = (n: number): number => Math.round(n * 100) / 100;

export async function run(options: { large?: boolean } = {}): Promise<Figure[]> {
  const figures: Figure[] = [];
  const put = (name: string, value: number, unit: string): void =>
    void figures.push({ name, value: round(value), unit });
  const data_dir = mkdtempSync(join(tmpdir(), "hangar-bench-"));
  const platform = await startPlatform(
    readSettings([], { HANGAR_LISTEN: "127.0.0.1:0", HANGAR_LOG_LEVEL: "error", HANGAR_DATA_DIR: data_dir }),
  );
  try {
    const ask = asker(platform.base_url, readFileSync(platform.token_file, "utf8").trim());
    await ask("POST", "/v1/apps", { app_name: "bench" });
    const path = "/v1/apps/bench/machines";
    const ids: string[] = [];
    const create = async (i: number, skip_launch: boolean): Promise<void> => {
      const metadata = { n: String(i), group: i < 10 ? "few" : "many", hundred: String(i % 100) };
      const { text } = await ask("POST", path, {
        skip_launch,
        config: { image: "registry.example/web:1", metadata, env: { A: "1" } },
      });
      ids.push((JSON.parse(text) as { id: string }).id);
    };

    const cpu = process.cpuUsage();
    const made = await load(2010, CLIENTS, (i) => create(i, false));
    put(`create, ${CLIENTS} clients, booting`, 2010 / (made.all / 1000), "/s");
    put("create p99", quantile(made.each, 0.99), "ms");
    await ask("GET", `${path}/${ids.at(-1)}/wait?state=settled`);
    const spent = process.cpuUsage(cpu);
    put("create to started, CPU of platform and clients", (spent.user + spent.system) / 1000 / 2010, "ms each");
    const updated = await load(2000, CLIENTS, (i) =>
      ask("POST", `${path}/${ids[i + 10]}`, { config: { image: "registry.example/web:2" }, skip_launch: true }),
    );
    put(`update, ${CLIENTS} clients`, 2000 / (updated.all / 1000), "/s");

    await waiters(ask, path, put);
    const before = process.memoryUsage().rss;
    const had = ids.length;
    for (const total of options.large ? [1000, 10_000, 100_000] : [1000, 10_000]) {
      if (ids.length < total) await load(total - ids.length, CLIENTS, (i) => create(1_000_000 + ids.length + i, true));
      await reads(ask, path, ids, total, put);
    }
    if (ids.length > had)
      put(
        "memory of the process per resting machine",
        (process.memoryUsage().rss - before) / (ids.length - had),
        "bytes",
      );
  } finally {
    await platform.close();
    rmSync(data_dir, { recursive: true, force: true });
  }
  return figures;
}

async function reads(
  ask: Ask,
  path: string,
  ids: readonly string[],
  total: number,
  put: (name: string, value: number, unit: string) => void,
): Promise<void> {
  const label = `at ${Math.max(ids.length, total)} machines`;
  const got = await load(2000, 8, (i) => ask("GET", `${path}/${ids[(i * 7919) % ids.length]}`));
  put(`get ${label}, p50`, quantile(got.each, 0.5), "ms");
  put(`get ${label}, p99`, quantile(got.each, 0.99), "ms");
  const few = await load(200, 1, () => ask("GET", `${path}?metadata.group=few`));
  put(`list 10 by metadata ${label}, p50`, quantile(few.each, 0.5), "ms");
  put(`list 10 by metadata ${label}, p99`, quantile(few.each, 0.99), "ms");
  const all = await load(3, 1, () => ask("GET", `${path}?summary=true`));
  put(`list all, summary, ${label}, p50`, quantile(all.each, 0.5), "ms");
}

async function waiters(
  ask: Ask,
  path: string,
  put: (name: string, value: number, unit: string) => void,
): Promise<void> {
  const { text } = await ask("POST", path, { skip_launch: true, config: { image: "x" } });
  const { id } = JSON.parse(text) as { id: string };
  const waiting = Array.from({ length: 1000 }, () => ask("GET", `${path}/${id}/wait?state=started&timeout=60`));
  await ask("GET", "/healthz");
  await new Promise((resolve) => setTimeout(resolve, 1000));
  const began = performance.now();
  await ask("POST", `${path}/${id}/start`);
  const answers = await Promise.all(waiting);
  put("1,000 waiters woken over HTTP", performance.now() - began, "ms");
  if (answers.some((answer) => answer.status !== 200)) throw new Error("a waiter was not woken");
}

/** Requests per second of CPU that the answering process spends. */
export async function perCpuSecond(
  cpuSeconds: () => number,
  ask: () => Promise<unknown>,
  count: number,
): Promise<number> {
  const before = cpuSeconds();
  await load(count, 4, ask);
  return count / Math.max(0.001, cpuSeconds() - before);
}

if (import.meta.main) {
  const figures = await run({ large: process.argv.includes("--large") });
  if (process.argv.includes("--peers")) {
    await new Promise((resolve) => {
      spawn(process.execPath, [join(import.meta.dirname, "machines-peers.ts")], { stdio: "inherit" }).on(
        "exit",
        resolve,
      );
    });
  }
  const width = Math.max(...figures.map(({ name }) => name.length));
  for (const { name, value, unit } of figures) process.stdout.write(`${name.padEnd(width)}  ${value} ${unit}\n`);
}
