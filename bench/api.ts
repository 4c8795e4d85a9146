/** The HTTP API of the real platform: how fast, at what cost, next to servers that do nothing else. */
import { spawnSync } from "node:child_process";
import { mkdtempSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { setTimeout as delay } from "node:timers/promises";
import { postgresMissing, startPostgres } from "../test/postgres.ts";
import { type Load, load, Measured, SLOW_DISK } from "./load/measured.ts";
import { installed } from "./processes.ts";
import { type Figure, fsyncMs, median, type Report } from "./report.ts";

const WARM_UP_SECONDS = 3;
const SECONDS = 5;
const CONNECTIONS = 32;
/** Enough that no organization reaches its limit of apps while the benchmark creates some. */
const ORGS = 20;
const PEERS = [
  { name: "bare node:http", program: "bench/peers/node-http.ts" },
  { name: "bare fastify", program: "bench/peers/fastify.ts" },
];

interface Subject {
  server: Measured;
  token: string;
  name: string;
}

export async function run(report: Report): Promise<void> {
  const dir = mkdtempSync(join(tmpdir(), "hangar-bench-"));
  try {
    const platform = await startPlatform(join(dir, "sqlite"));
    try {
      const peers = await startPeers(dir, platform);
      try {
        await measureGet(report, [...peers, platform]);
        await measurePost(report, [...peers, platform]);
      } finally {
        await Promise.all(peers.map((peer) => peer.server.stop()));
      }
      await measureCreates(report, platform, "SQLite", fsyncMs());
    } finally {
      await platform.server.stop();
    }
    await measureSlowDisk(report, join(dir, "slow"));
    await measurePostgres(report, join(dir, "postgres"));
    await measureStart(report, join(dir, "start"));
  } finally {
    rmSync(dir, { recursive: true, force: true });
  }
}

const platformArgs = (data_dir: string): string[] => ["--data-dir", data_dir, "--listen", "127.0.0.1:0"];

async function startPlatform(
  data_dir: string,
  settings: readonly string[] = [],
  around: readonly string[] = [],
): Promise<Subject> {
  const server = await Measured.start("src/main.ts", [...platformArgs(data_dir), ...settings], /^ +API /, around);
  const token = readFileSync(join(data_dir, "token"), "utf8").trim();
  for (let i = 0; i < ORGS; i++) await post({ server, token }, "/v1/orgs", { name: `bench-${i}` });
  await post({ server, token }, "/v1/apps", { app_name: "measured", org_slug: "bench-0" });
  return { server, token, name: "hangar" };
}

async function post({ server, token }: Omit<Subject, "name">, path: string, body: object): Promise<void> {
  const headers = { authorization: `Bearer ${token}`, "content-type": "application/json" };
  const response = await fetch(`http://127.0.0.1:${server.port}${path}`, {
    method: "POST",
    headers,
    body: JSON.stringify(body),
  });
  if (!response.ok) throw new Error(`POST ${path}: ${await response.text()}`);
}

/** The peers answer with what the platform answers, to the byte. */
async function startPeers(dir: string, { server, token }: Subject): Promise<Subject[]> {
  const response = await fetch(`http://127.0.0.1:${server.port}/v1/apps/measured`, {
    headers: { authorization: `Bearer ${token}` },
  });
  const file = join(dir, "answer");
  writeFileSync(file, await response.text());
  return await Promise.all(
    PEERS.map(async ({ name, program }) => ({ name, token, server: await Measured.start(program, [file], /^ready/) })),
  );
}

async function measureGet(report: Report, subjects: readonly Subject[]): Promise<void> {
  report.section(`GET /v1/apps/{app} with a token, ${CONNECTIONS} connections, one core`);
  if (!installed("wrk")) return report.skip("GET", "there is no wrk (apt-get install wrk)");
  await compare(report, subjects, ({ server, token }, seconds) =>
    load("wrk", [
      "-t1",
      `-c${CONNECTIONS}`,
      `-d${seconds}s`,
      `-s${join(import.meta.dirname, "load/report.lua")}`,
      `-HAuthorization: Bearer ${token}`,
      `http://127.0.0.1:${server.port}/v1/apps/measured`,
    ]),
  );
}

async function measurePost(report: Report, subjects: readonly Subject[]): Promise<void> {
  report.section(`POST /v1/apps with a token, ${CONNECTIONS} connections, one core; only hangar's are durable`);
  await compare(report, subjects, (subject, seconds) => createApps(subject, CONNECTIONS, seconds));
}

let batch = 0;
const createApps = ({ server, token }: Subject, clients: number, seconds: number): Promise<Load> =>
  load(process.execPath, [
    join(import.meta.dirname, "api/creator.ts"),
    ...[server.port, token, clients, seconds, `b${++batch}`, ORGS].map(String),
  ]);

/** Each subject by itself, after a while that warms it up, with what it cost its process. */
async function compare(
  report: Report,
  subjects: readonly Subject[],
  measure: (subject: Subject, seconds: number) => Promise<Load>,
): Promise<void> {
  for (const subject of subjects) {
    const { name, server } = subject;
    await measure(subject, WARM_UP_SECONDS);
    const before = server.cpuSeconds();
    const { requests, seconds, p50_ms, p99_ms } = await measure(subject, SECONDS);
    const first = subjects[0]?.name ?? "";
    const to = (what: string) => (name === first ? {} : { to: `${first}: ${what}` });
    report.add({ what: `${name}: rate`, value: requests / seconds, unit: "req/s", ...to("rate") });
    const perCpu = requests / (server.cpuSeconds() - before);
    report.add({ what: `${name}: per CPU second`, value: perCpu, unit: "req", ...to("per CPU second") });
    report.add({ what: `${name}: p50`, value: p50_ms, unit: "ms" });
    report.add({ what: `${name}: p99`, value: p99_ms, unit: "ms" });
  }
}

/** What group commit gives: one client pays a whole fsync for each app, many share one. */
async function measureCreates(
  report: Report,
  subject: Subject,
  database: string,
  fsync_ms: number,
  goal: Pick<Figure, "at_least"> = {},
): Promise<void> {
  report.section(`Durable creates, ${database}; one fsync takes ${fsync_ms.toFixed(2)} ms`);
  const one = await createApps(subject, 1, SECONDS);
  const note = ({ p99_ms }: Load): string => `p99 ${p99_ms.toFixed(1)} ms`;
  report.add({ what: "1 client", value: one.requests / one.seconds, unit: "/s", note: note(one) });
  const many = await createApps(subject, 64, SECONDS);
  const value = many.requests / many.seconds;
  report.add({ what: "64 clients", value, unit: "/s", to: "1 client", note: note(many), ...goal });
}

/** A disk on which one fsync takes a millisecond or more, which is where sharing them counts. */
async function measureSlowDisk(report: Report, data_dir: string): Promise<void> {
  const program = [process.execPath, join(import.meta.dirname, "api/fsync.ts")];
  const probe = spawnSync("env", [...SLOW_DISK, ...program], { encoding: "utf8" });
  if (probe.status !== 0) return report.skip("creates with slow fsyncs", "strace cannot be used here");
  const subject = await startPlatform(data_dir, [], SLOW_DISK);
  try {
    await measureCreates(report, subject, "SQLite, slowed down", Number(probe.stdout), { at_least: 2000 });
  } finally {
    await subject.server.stop();
  }
}

async function measurePostgres(report: Report, data_dir: string): Promise<void> {
  const missing = postgresMissing();
  if (missing) return report.skip("creates with PostgreSQL", missing);
  const postgres = await startPostgres({ fsync: true });
  try {
    const subject = await startPlatform(data_dir, ["--database-url", await postgres.database()]);
    try {
      await measureCreates(report, subject, "PostgreSQL", fsyncMs());
    } finally {
      await subject.server.stop();
    }
  } finally {
    await postgres.stop();
  }
}

async function measureStart(report: Report, data_dir: string): Promise<void> {
  report.section("Start and idle memory");
  const starts: number[] = [];
  let resident = 0;
  for (let i = 0; i < 6; i++) {
    const server = await Measured.start("src/main.ts", platformArgs(data_dir), /^ +API /);
    starts.push(server.start_ms);
    if (i === 5) await delay(3000);
    resident = server.residentMb();
    await server.stop();
  }
  const [first = Number.NaN, ...later] = starts;
  report.add({ what: "first start on a data dir, to ready", value: first, unit: "ms" });
  report.add({ what: "later starts (median of 5)", value: median(later), unit: "ms" });
  report.add({ what: "resident memory after 3 s idle", value: resident, unit: "MB", at_most: 120 });
}
