/**
 * Machines on the sim driver: how fast they are made and changed with every write on disk, how reading and
 * listing grow, what one costs in memory, how fast waiters wake. Everything over real HTTP with the durability
 * the platform ships with. Docker Engine and Podman answer the same questions beside it.
 */
import { mkdtempSync, readFileSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { readSettings } from "#core/settings.ts";
import { aMachine } from "#machines/fixtures.ts";
import { sqlMachineStore } from "#stores/sql/machines.ts";
import { openSqlite } from "#stores/sqlite/database.ts";
import { startPlatform } from "../src/platform.ts";
import { type Ask, asker } from "./load/ask.ts";
import { FLOORS, OURS, type PeerFigure, peers } from "./machines/peers.ts";
import { quantile, type Report } from "./report.ts";

const CLIENTS = 64;

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
  return { each, all: performance.now() - began };
}

const round = (n: number): number => Math.round(n * 100) / 100;

type Put = (name: string, value: number, unit: string) => void;

export async function run(report: Report): Promise<void> {
  const put: Put = (what, value, unit) => report.add({ what, value: round(value), unit });
  report.section("sim driver, every write on disk, platform and clients in one process");
  await inDir(async (data_dir) => {
    await withPlatform(data_dir, (ask) => writes(ask, put));
  });
  for (const total of [1000, 10_000, 100_000]) {
    report.section(`${total} machines`);
    await inDir(async (data_dir) => {
      await withPlatform(data_dir, async (ask) => void (await ask("POST", "/v1/apps", { app_name: "bench" })));
      const ids = await fill(data_dir, total);
      await withPlatform(data_dir, (ask) => reads(ask, ids, put));
    });
  }
  compare(report, await peers());
}

/** Next to the engines; the floor stands beside them to be seen, not to be beaten. */
function compare(report: Report, found: readonly PeerFigure[]): void {
  for (const [what, pick] of [
    ["inspect", ({ inspect_per_cpu_s }: PeerFigure) => inspect_per_cpu_s],
    ["list of 200", ({ list_per_cpu_s }: PeerFigure) => list_per_cpu_s],
  ] as const) {
    report.section(`${what}, requests per CPU second`);
    const row = (what: string, figure: PeerFigure) => ({ what, value: pick(figure), unit: "/CPU s" });
    const engines = found.filter(({ name }) => name !== OURS && !(name in FLOORS));
    for (const engine of engines) report.add(row(engine.name, engine));
    for (const least of found.filter(({ name }) => name in FLOORS))
      report.add({ ...row(least.name, least), note: "the same bytes from a server that does nothing else" });
    const ours = found.find(({ name }) => name === OURS);
    const best = engines.toSorted((x, y) => pick(y) - pick(x))[0];
    if (ours) report.add({ ...row("hangar", ours), ...(best ? { to: best.name, at_least: 5 * pick(best) } : {}) });
  }
}

async function inDir(work: (data_dir: string) => Promise<void>): Promise<void> {
  const data_dir = mkdtempSync(join(tmpdir(), "hangar-bench-"));
  try {
    await work(data_dir);
  } finally {
    rmSync(data_dir, { recursive: true, force: true });
  }
}

async function withPlatform(data_dir: string, work: (ask: Ask) => Promise<void>): Promise<void> {
  const quiet = { HANGAR_LISTEN: "127.0.0.1:0", HANGAR_LOG_LEVEL: "error", HANGAR_DRIVER: "sim" };
  const env = { ...quiet, HANGAR_DATA_DIR: data_dir };
  const platform = await startPlatform(readSettings([], env));
  try {
    const port = Number(new URL(platform.base_url).port);
    await work(asker({ port }, readFileSync(platform.token_file, "utf8").trim()));
  } finally {
    await platform.close();
  }
}

const path = "/v1/apps/bench/machines";

async function writes(ask: Ask, put: Put): Promise<void> {
  await ask("POST", "/v1/apps", { app_name: "bench" });
  const ids: string[] = [];
  const total = 2000;
  const cpu = process.cpuUsage();
  const made = await load(total, CLIENTS, async (i) => {
    const config = { image: "registry.example/web:1", metadata: { n: String(i) }, env: { A: "1" } };
    ids.push((JSON.parse(await ask("POST", path, { config })) as { id: string }).id);
  });
  put(`create, ${CLIENTS} clients, booting, every write on disk`, total / (made.all / 1000), "/s");
  put("create p50", quantile(made.each, 0.5), "ms");
  await ask("GET", `${path}/${ids.at(-1)}/wait?state=settled`);
  const spent = process.cpuUsage(cpu);
  put("create until started, CPU of platform and clients", (spent.user + spent.system) / 1000 / total, "ms each");
  const body = { config: { image: "registry.example/web:2" } };
  const updated = await load(total, CLIENTS, (i) => ask("POST", `${path}/${ids[i]}`, body));
  put(`update, ${CLIENTS} clients, restarting`, total / (updated.all / 1000), "/s");
  await waiters(ask, put);
}

/** Writes machines straight into the store: what is measured is reading. */
async function fill(data_dir: string, total: number): Promise<string[]> {
  const database = await openSqlite(join(data_dir, "hangar.db"), { synchronous: "OFF" });
  const store = sqlMachineStore(database);
  const [app] = await database.read<{ id: string; org_id: string }>("SELECT id, org_id FROM apps");
  const ids: string[] = [];
  const insert = async (i: number): Promise<void> => {
    const id = (i + 1).toString(16).padStart(14, "0");
    const config = {
      image: "registry.example/web:1",
      env: { A: "1" },
      metadata: { n: String(i), group: i < 10 ? "few" : "many" },
    };
    const event = { id: `e${i}`, type: "launch", status: "created", source: "user" as const, timestamp: 1 };
    const machine = aMachine({
      id,
      name: `m-${i}`,
      config,
      org_id: app?.org_id ?? "",
      app_id: app?.id ?? "",
      app_name: "bench",
      events: [event],
    });
    const nothing = { add_operations: [], put_operations: [], remove_operations: [], new_metadata: false };
    await store.insert({ machine, events: [event], new_version: true, ...nothing }, total + 1);
    ids.push(id);
  };
  await load(total, 512, insert);
  await database.close();
  return ids;
}

async function reads(ask: Ask, ids: readonly string[], put: Put): Promise<void> {
  const label = `at ${ids.length} machines`;
  const before = process.memoryUsage();
  await ask("GET", `${path}?metadata.group=few`);
  const got = await load(2000, 1, (i) => ask("GET", `${path}/${ids[(i * 7919) % ids.length]}`));
  put(`get ${label}, p50`, quantile(got.each, 0.5), "ms");
  put(`get ${label}, p99`, quantile(got.each, 0.99), "ms");
  const few = await load(200, 1, () => ask("GET", `${path}?metadata.group=few`));
  put(`list 10 by metadata ${label}, p50`, quantile(few.each, 0.5), "ms");
  put(`list 10 by metadata ${label}, p99`, quantile(few.each, 0.99), "ms");
  const all = await load(3, 1, () => ask("GET", `${path}?summary=true`));
  put(`list all, summary, ${label}, p50`, quantile(all.each, 0.5), "ms");
  put(`resident memory of platform and client ${label}`, before.rss / 2 ** 20, "MiB");
}

const QUICK_MS = 5;
const QUICK_IN_A_ROW = 50;

/** What was asked for before is done when short questions are answered at once again. */
async function untilQuiet(ask: Ask): Promise<void> {
  for (let quick = 0; quick < QUICK_IN_A_ROW; ) {
    const began = performance.now();
    await ask("GET", "/healthz");
    quick = performance.now() - began < QUICK_MS ? quick + 1 : 0;
  }
}

async function waiters(ask: Ask, put: Put): Promise<void> {
  const made = await ask("POST", path, { skip_launch: true, config: { image: "x" } });
  const { id } = JSON.parse(made) as { id: string };
  const waiting = Array.from({ length: 1000 }, () => ask("GET", `${path}/${id}/wait?state=started&timeout=60`));
  await untilQuiet(ask);
  const began = performance.now();
  await ask("POST", `${path}/${id}/start`);
  await Promise.all(waiting);
  put("1,000 waiters woken over HTTP", performance.now() - began, "ms");
}
