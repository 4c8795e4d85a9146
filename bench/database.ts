/**
 * What one PostgreSQL carries: the processor time, transactions and log that hosts, machines and notifications cost it,
 * on the sim driver. What an operation takes of a processor depends little on what else the box does, so that it says at
 * which size a core is used up. Sizes by flag:
 *
 *   npm run bench database -- --hosts 4 --machines 200 --seconds 20
 */
import assert from "node:assert/strict";
import { readdirSync, readFileSync } from "node:fs";
import { join } from "node:path";
import { setTimeout as delay } from "node:timers/promises";
import { parseArgs } from "node:util";
import pg from "pg";
import { systemClock } from "#core/clock.ts";
import { silentLog } from "#core/log.ts";
import { openPostgresNotifier } from "#stores/postgres/notifier.ts";
import { postgresMissing, startPostgres } from "../test/postgres.ts";
import { type Cluster, insist, startCluster } from "../test/system/hosts-support.ts";
import type { Report } from "./report.ts";

const LEASE_S = 15;
const CALLERS = 8;
const WORDS = 400;
const LISTENERS = [1, 32, 128];
const PATH = "/v1/apps/web/machines";

interface Sizes {
  hosts: number;
  machines: number;
  seconds: number;
}

export async function run(report: Report): Promise<void> {
  const missing = postgresMissing();
  if (missing) return report.skip("what one PostgreSQL carries", missing);
  const sizes = { hosts: { type: "string" }, machines: { type: "string" }, seconds: { type: "string" } } as const;
  const { values } = parseArgs({ options: sizes, allowPositionals: true, strict: false });
  const number = (value: unknown, otherwise: number): number => Number(value ?? otherwise);
  await measureDatabase(report, {
    hosts: number(values.hosts, 4),
    machines: number(values.machines, 200),
    seconds: number(values.seconds, 20),
  });
}

export async function measureDatabase(report: Report, sizes: Sizes): Promise<void> {
  const heard_ms = await notifications(report);
  const idle = [await inCluster(1, sizes, idleCost), await inCluster(sizes.hosts, sizes, idleCost)] as const;
  hosts(report, sizes, idle);
  await inCluster(1, sizes, (cluster, postgres) => machines(report, sizes, { cluster, postgres, heard_ms }));
}

/** Use of the server and of one database since it was created. */
interface Used {
  cpu_ms: number;
  commits: number;
  wal_bytes: number;
  sessions: number;
}

class Postgres {
  readonly #client: pg.Client;
  readonly #pid: number;

  constructor(client: pg.Client, folder: string) {
    this.#client = client;
    this.#pid = Number(readFileSync(join(folder, "data/postmaster.pid"), "utf8").split("\n")[0]);
  }

  async used(): Promise<Used> {
    const { rows } = await this.#client.query(
      `SELECT xact_commit::int AS commits, pg_wal_lsn_diff(pg_current_wal_lsn(), '0/0')::float8 AS wal_bytes,
         (SELECT count(*)::int FROM pg_stat_activity WHERE application_name LIKE 'hangar%') AS sessions
       FROM pg_stat_database WHERE datname = current_database()`,
    );
    return { ...(rows[0] as Omit<Used, "cpu_ms">), cpu_ms: this.#cpuMs() };
  }

  /** Of the server and all its processes, also those that have ended. */
  #cpuMs(): number {
    const processes = readdirSync("/proc").filter((name) => /^\d+$/.test(name));
    const times = processes.map((name) => statOf(Number(name)));
    const own = statOf(this.#pid);
    const sessions = times.filter((one) => one?.parent === this.#pid);
    return (own?.all_ms ?? 0) + sessions.reduce((sum, one) => sum + (one?.own_ms ?? 0), 0);
  }
}

/** Processor time of a process: its own, and with that of its children that have ended. */
function statOf(pid: number): { parent: number; own_ms: number; all_ms: number } | undefined {
  let stat: string;
  try {
    stat = readFileSync(`/proc/${pid}/stat`, "utf8");
  } catch {
    return undefined;
  }
  const fields = stat
    .slice(stat.lastIndexOf(")") + 2)
    .split(" ")
    .map(Number);
  const [own = 0, children = 0] = [11, 13].map((at) => ((fields[at] ?? 0) + (fields[at + 1] ?? 0)) * 10);
  return { parent: fields[1] ?? 0, own_ms: own, all_ms: own + children };
}

async function openServer(url: string): Promise<{ client: pg.Client; postgres: Postgres }> {
  const client = new pg.Client(url);
  await client.connect();
  const folder = new URL(url.replace("@/", "@localhost/")).searchParams.get("host") ?? "";
  return { client, postgres: new Postgres(client, folder) };
}

/** One control process and so many hosts, gone afterwards. */
async function inCluster<Found>(
  count: number,
  sizes: Sizes,
  work: (cluster: Cluster, postgres: Postgres, sizes: Sizes) => Promise<Found>,
): Promise<Found> {
  await using made = new AsyncDisposableStack();
  const after = (end: () => Promise<void>): void => made.defer(async () => await end());
  const t = { after, diagnostic: () => {} } as unknown as Parameters<typeof startCluster>[0];
  const cluster = await startCluster(t, { controls: 1, hosts: count, lease_s: LEASE_S });
  const { client, postgres } = await openServer(cluster.flags[1] ?? "");
  made.defer(() => client.end());
  return await work(cluster, postgres, sizes);
}

async function idleCost(_: Cluster, postgres: Postgres, { seconds }: Sizes): Promise<Used> {
  const before = await postgres.used();
  await delay(seconds * 1000);
  const after = await postgres.used();
  const each = (name: keyof Used): number => (after[name] - before[name]) / seconds;
  const { sessions } = after;
  return { cpu_ms: each("cpu_ms"), commits: each("commits"), wal_bytes: each("wal_bytes"), sessions };
}

function hosts(report: Report, sizes: Sizes, [one, many]: readonly [Used, Used]): void {
  report.section(`a host that has nothing to do (lease of ${LEASE_S} s)`);
  const each = (name: keyof Used): number => (many[name] - one[name]) / (sizes.hosts - 1);
  report.add({ what: "sessions of a host", value: each("sessions"), unit: "sessions" });
  report.add({ what: "transactions of a host", value: each("commits"), unit: "/s" });
  report.add({ what: "log of a host", value: each("wal_bytes") / 1024, unit: "KiB/s" });
  const cpu_ms = each("cpu_ms");
  report.add({ what: "processor time of PostgreSQL for a host", value: cpu_ms, unit: "ms/s" });
  report.add({ what: "hosts whose idling takes one core of PostgreSQL", value: 1000 / cpu_ms, unit: "hosts" });
}

interface Parts {
  cluster: Cluster;
  postgres: Postgres;
  heard_ms: number;
}

async function machines(report: Report, sizes: Sizes, { cluster, postgres, heard_ms }: Parts): Promise<void> {
  report.section("a machine: created, started, stopped, destroyed, through one control process and one host");
  const [control] = cluster.controls;
  const [host] = cluster.hosts;
  assert.ok(control && host);
  await insist(control, "POST", "/v1/apps", { app_name: "web", org_slug: "personal" });
  const life = async (): Promise<void> => {
    const { id } = (await insist(control, "POST", PATH, { config: { image: "web:1" } })) as { id: string };
    await insist(control, "GET", `${PATH}/${id}/wait?state=started&timeout=60`);
    await insist(control, "POST", `${PATH}/${id}/stop`);
    await insist(control, "GET", `${PATH}/${id}/wait?state=settled&timeout=60`);
    await insist(control, "DELETE", `${PATH}/${id}`);
  };
  const lives = async (all: number): Promise<void> => {
    let left = all;
    const caller = async (): Promise<void> => {
      while (left-- > 0) await life();
    };
    await Promise.all(Array.from({ length: CALLERS }, caller));
  };
  await lives(CALLERS * 2);
  let sent = 0;
  const listener = new pg.Client(cluster.flags[1] ?? "");
  await listener.connect();
  listener.on("notification", () => sent++);
  await listener.query("LISTEN hangar");
  const cpu = () => [control, host].map(({ child }) => statOf(child.pid)?.own_ms ?? 0);
  const [before, [control_before = 0, host_before = 0], began] = [await postgres.used(), cpu(), performance.now()];
  await lives(sizes.machines);
  const seconds = (performance.now() - began) / 1000;
  const [after, [control_after = 0, host_after = 0]] = [await postgres.used(), cpu()];
  await listener.end();
  const each = (name: keyof Used): number => (after[name] - before[name]) / sizes.machines;
  const cpu_ms = each("cpu_ms");
  report.add({ what: "lives a second, as the box was", value: sizes.machines / seconds, unit: "/s" });
  report.add({ what: "transactions of a life", value: each("commits"), unit: "" });
  report.add({ what: "log of a life", value: each("wal_bytes") / 1024, unit: "KiB" });
  report.add({ what: "notifications of a life", value: sent / sizes.machines, unit: "" });
  report.add({ what: "processor time of PostgreSQL for a life", value: cpu_ms, unit: "ms" });
  const of_control = (control_after - control_before) / sizes.machines;
  report.add({ what: "processor time of the control process for a life", value: of_control, unit: "ms" });
  report.add({
    what: "processor time of the host for a life",
    value: (host_after - host_before) / sizes.machines,
    unit: "ms",
  });
  report.add({ what: "lives a second that take one core of PostgreSQL", value: 1000 / cpu_ms, unit: "/s" });
  const control_lives = 1000 / of_control;
  report.add({ what: "lives a second that take the one core of a control process", value: control_lives, unit: "/s" });
  const processes = cpu_ms / ((sent / sizes.machines) * heard_ms);
  const what = "processes with which notifications cost PostgreSQL as much as the writes";
  report.add({ what, value: processes, unit: "processes" });
}

/** Answers what one more process that listens costs the server for each notification. */
async function notifications(report: Report): Promise<number> {
  report.section("a notification that every process reads");
  const server = await startPostgres({ max_connections: 300 });
  const url = await server.database();
  const { client, postgres } = await openServer(url);
  const parts = { clock: systemClock, log: silentLog };
  const costs: number[] = [];
  for (const count of LISTENERS) {
    const all = await Promise.all(Array.from({ length: count }, () => openPostgresNotifier(url, parts)));
    const sender = await openPostgresNotifier(url, parts);
    const before = { server: await postgres.used(), own: process.cpuUsage() };
    const began = performance.now();
    for (let word = 0; word < WORDS; word++) await heardByAll(all, () => sender.send("machines", String(word)));
    const seconds = (performance.now() - began) / 1000;
    const own = process.cpuUsage(before.own);
    const cpu_ms = ((await postgres.used()).cpu_ms - before.server.cpu_ms) / WORDS;
    costs.push(cpu_ms);
    report.add({ what: `processor time of PostgreSQL, ${count} processes`, value: cpu_ms, unit: "ms" });
    const heard = (own.user + own.system) / 1000 / WORDS / count;
    report.add({ what: `processor time of a process that hears it, ${count} processes`, value: heard, unit: "ms" });
    report.add({
      what: `notifications a second, one after the other, ${count} processes`,
      value: WORDS / seconds,
      unit: "/s",
    });
    await Promise.all([sender, ...all].map((one) => one.close()));
  }
  await client.end();
  await server.stop();
  const [least = 0, most = 0] = [costs[0], costs.at(-1)];
  const each = (most - least) / ((LISTENERS.at(-1) ?? 0) - (LISTENERS[0] ?? 0));
  report.add({ what: "processor time of PostgreSQL for one more process", value: each, unit: "ms" });
  return each;
}

async function heardByAll(
  all: readonly Awaited<ReturnType<typeof openPostgresNotifier>>[],
  send: () => void,
): Promise<void> {
  const heard = all.map(
    (one) =>
      new Promise<void>((resolve) => {
        const end = one.listen("machines", () => {
          end();
          resolve();
        });
      }),
  );
  send();
  await Promise.all(heard);
}
