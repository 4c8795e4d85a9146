/**
 * How fast and how late replication is. Writers commit with synchronous = FULL. Lag is from the moment a commit returns
 * to the application to the moment a reader of the replica's event stream has heard of it; all clocks are one machine's.
 * Processor time per transaction is that of each node's process, from /proc.
 */
import { type ChildProcess, spawn } from "node:child_process";
import { once } from "node:events";
import { mkdirSync, mkdtempSync, rmSync } from "node:fs";
import { get } from "node:http";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { DatabaseSync } from "node:sqlite";
import { freePort } from "#proxy/fixtures.ts";
import { cpuSeconds, end } from "./processes.ts";
import { PEERS, withPeer } from "./replication/peers.ts";
import { median, quantile, type Report } from "./report.ts";

const root = join(import.meta.dirname, "..");

interface Round {
  tx_per_s: number;
  lag_p50_ms: number;
  lag_p99_ms: number;
  /** Of the processor, per transaction; of the replicas their mean. */
  primary_us: number;
  replica_us: number;
}

/** What the writer says at its end. */
interface Wrote {
  transactions: number;
  took_ms: number;
  committed_ms: number[];
}

const cpuUs = (child: ChildProcess): number => cpuSeconds(child) * 1e6;

function start(script: string, ...args: string[]): ChildProcess {
  return spawn(process.execPath, [script, ...args], { cwd: root, stdio: ["ignore", "pipe", "inherit"] });
}

interface Info {
  databases: Record<string, string>;
  replicas: unknown[];
}

async function info(at: number): Promise<Info | undefined> {
  const answer = await fetch(`http://127.0.0.1:${at}/info`).catch(() => undefined);
  return answer && ((await answer.json()) as Info);
}

/** A primary looks at a database that is written to far more often. */
const STILL_MS = 250;

async function until(done: () => Promise<boolean>): Promise<void> {
  while (!(await done())) await new Promise((next) => setTimeout(next, 20));
}

interface Watch {
  /** When each transaction was heard of, by txid. */
  heard_ms: Map<number, number>;
  stop(): void;
}

/** Follows a replica's events. */
function watch(at: number): Watch {
  const heard_ms = new Map<number, number>();
  let rest = "";
  const request = get(`http://127.0.0.1:${at}/events`, (response) => {
    response.setEncoding("utf8").on("data", (text: string) => {
      const now_ms = performance.timeOrigin + performance.now();
      const lines = (rest + text).split("\n");
      rest = lines.pop() ?? "";
      for (const line of lines) {
        const { type, data } = JSON.parse(line) as { type: string; data: { txID: string } };
        if (type === "tx") heard_ms.set(Number(`0x${data.txID}`), now_ms);
      }
    });
  });
  request.on("error", () => undefined);
  return { heard_ms, stop: () => request.destroy() };
}

/** How late each of the writer's transactions was, which are those after `before`, in order. */
function lags(watched: readonly Watch[], committed_ms: readonly number[], before: number): number[] {
  const found = watched.flatMap(({ heard_ms }) =>
    committed_ms.map((at_ms, i) => (heard_ms.get(before + i + 1) ?? Number.NaN) - at_ms),
  );
  return found.filter((ms) => !Number.isNaN(ms));
}

/** A primary and its replicas, with a database that all of them have. */
async function cluster(base: string, replicas: number) {
  const ports: number[] = [];
  for (let i = 0; i <= replicas; i++) ports.push(await freePort());
  const nodes: ChildProcess[] = [];
  for (const [i, listen] of ports.entries()) {
    const dir = join(base, String(i));
    mkdirSync(dir);
    const role = i === 0 ? ["--primary"] : ["--join", `http://127.0.0.1:${ports[0]}`];
    nodes.push(start("src/replication/main.ts", "--dir", dir, "--listen", `127.0.0.1:${listen}`, ...role));
    await until(async () => (await info(listen)) !== undefined);
  }
  await once(start("test/system/replication-writer.ts", join(base, "0", "db"), "0.5", "100", "full"), "close");
  const at = async (port: number): Promise<string | undefined> => (await info(port))?.databases["db"];
  // The primary has found all that was written when it stands still, and then the replicas must be where it is.
  const caughtUp = (): Promise<void> =>
    until(async () => {
      const first = await at(ports[0] ?? 0);
      await new Promise((next) => setTimeout(next, STILL_MS));
      const now = await Promise.all(ports.map(at));
      return first !== undefined && now.every((position) => position === first);
    });
  await caughtUp();
  return { ports, nodes, caughtUp, path: join(base, "0", "db") };
}

type Cluster = Awaited<ReturnType<typeof cluster>>;

/** An application that writes for so long, at this rate or as fast as it can. */
async function write(path: string, seconds: number, rate: number, flags = "full"): Promise<Wrote> {
  const writer = start("test/system/replication-writer.ts", path, String(seconds), String(rate), flags);
  let output = "";
  writer.stdout?.on("data", (bytes: Buffer) => {
    output += bytes.toString("utf8");
  });
  await once(writer, "close");
  return JSON.parse(output.trimEnd().split("\n").at(-1) ?? "") as Wrote;
}

async function measure({ ports, nodes, caughtUp, path }: Cluster, rate: number): Promise<Round> {
  const watched = ports.slice(1).map(watch);
  const position = (await info(ports[0] ?? 0))?.databases["db"] ?? "";
  const before = nodes.map(cpuUs);
  const { transactions, took_ms, committed_ms } = await write(path, ROUND_SECONDS, rate, "full times");
  await caughtUp();
  const [primary = 0, ...replicas] = nodes.map((node, i) => cpuUs(node) - (before[i] ?? 0));
  const all = lags(watched, committed_ms, Number(`0x${position.slice(0, 16)}`));
  for (const { stop } of watched) stop();
  return {
    tx_per_s: (transactions * 1000) / took_ms,
    lag_p50_ms: quantile(all, 0.5),
    lag_p99_ms: quantile(all, 0.99),
    primary_us: primary / transactions,
    replica_us: replicas.reduce((sum, spent) => sum + spent, 0) / replicas.length / transactions,
  };
}

/** Every rate in turn, several times, since a box that others use has bad moments; SQLite without a node among them. */
async function rounds(replicas: number): Promise<{ alone: number[]; taken: Round[][] }> {
  const base = mkdtempSync(join(tmpdir(), "hangar-bench-"));
  const bare = join(base, "bare.db");
  const nodes = await cluster(base, replicas);
  const alone: number[] = [];
  const taken: Round[][] = RATES.map(() => []);
  try {
    // As nodes that have run for a while: their code compiled, their logs and buffers there.
    await write(nodes.path, WARM_SECONDS, 0);
    await nodes.caughtUp();
    for (let round = 0; round < ROUNDS; round++) {
      const { transactions, took_ms } = await write(bare, ROUND_SECONDS, 0);
      alone.push((transactions * 1000) / took_ms);
      for (const [i, { rate }] of RATES.entries()) taken[i]?.push(await measure(nodes, rate));
    }
  } finally {
    await Promise.all(nodes.nodes.map(end));
    rmSync(base, { recursive: true, force: true });
  }
  return { alone, taken };
}

/** Events to many readers: how many a second arrive in all, and what one costs the node. */
async function readers(count: number, seconds: number): Promise<Record<string, number>> {
  const base = mkdtempSync(join(tmpdir(), "hangar-bench-"));
  const { ports, nodes, path } = await cluster(base, 0);
  try {
    let received = 0;
    const requests = Array.from({ length: count }, () =>
      get(`http://127.0.0.1:${ports[0]}/events`, (response) => {
        response.on("data", (bytes: Buffer) => {
          for (const byte of bytes) if (byte === 10) received++;
        });
      }).on("error", () => undefined),
    );
    await until(async () => received >= count || (await info(ports[0] ?? 0)) === undefined);
    received = 0;
    const [node] = nodes;
    const before = node ? cpuUs(node) : 0;
    await once(start("test/system/replication-writer.ts", path, String(seconds), "50", "full"), "close");
    await new Promise((done) => setTimeout(done, 1000));
    const spent = (node ? cpuUs(node) : 0) - before;
    for (const request of requests) request.destroy();
    return {
      readers: count,
      events_per_s: Math.round(received / seconds),
      us_per_event: Number((spent / received).toFixed(2)),
    };
  } finally {
    await Promise.all(nodes.map(end));
    rmSync(base, { recursive: true, force: true });
  }
}

const SECONDS = 8;
const WARM_SECONDS = 8;
const ROUNDS = 5;
const ROUND_SECONDS = 3;
const ALONE = "the same writer without a node";
/** LiteFS built from source and run with the same writer (synchronous = NORMAL, one replica), on a box like this. */
const LITEFS = "LiteFS: 210 to 257 tx/s, about 1,900 µs on its primary and 1,200 on its replica";

/** What each rate must reach. A look, a sync and a packet cost as much for one transaction as for ten, so few cost more each. */
const RATES: { rate: number; name: string; tx_per_s?: number; lag_ms?: number; cpu_us?: number }[] = [
  { rate: 200, name: "200 tx/s" },
  { rate: 1000, name: "1000 tx/s", lag_ms: 50, cpu_us: 150 },
  { rate: 0, name: "unlimited", tx_per_s: 1500, cpu_us: 150 },
];

const atLeast = (value: number | undefined): { at_least?: number } => (value === undefined ? {} : { at_least: value });
const atMost = (value: number | undefined): { at_most?: number } => (value === undefined ? {} : { at_most: value });

function addRate(
  report: Report,
  { rate, name, tx_per_s, lag_ms, cpu_us }: (typeof RATES)[number],
  taken: Round[],
): void {
  const of = (field: keyof Round): number => Number(median(taken.map((round) => round[field])).toFixed(1));
  const compared = rate === 0 ? { to: ALONE, note: LITEFS } : {};
  report.add({ what: `${name}: written`, value: of("tx_per_s"), unit: "tx/s", ...atLeast(tx_per_s), ...compared });
  report.add({ what: `${name}: lag p50`, value: of("lag_p50_ms"), unit: "ms" });
  report.add({ what: `${name}: lag p99`, value: of("lag_p99_ms"), unit: "ms", ...atMost(lag_ms) });
  report.add({ what: `${name}: primary`, value: of("primary_us"), unit: "CPU µs/tx", ...atMost(cpu_us) });
  report.add({ what: `${name}: replica`, value: of("replica_us"), unit: "CPU µs/tx", ...atMost(cpu_us) });
}

const OURS = "our node, one replica";

/** The same writer on databases that others replicate, in turns with ours. */
async function besideOthers(report: Report): Promise<void> {
  report.section("beside others, synchronous=FULL, unlimited");
  const speed = async (path: string): Promise<number> => {
    const { transactions, took_ms } = await write(path, ROUND_SECONDS, 0);
    return (transactions * 1000) / took_ms;
  };
  const base = mkdtempSync(join(tmpdir(), "hangar-bench-"));
  const ours = await cluster(base, 1);
  try {
    report.add({ what: OURS, value: await speed(ours.path), unit: "tx/s" });
    for (const peer of PEERS) {
      const reason = await withPeer(peer, async (path) => {
        report.add({ what: peer.name, value: await speed(path), unit: "tx/s", to: OURS });
      });
      if (reason !== undefined) report.skip(peer.name, reason);
    }
  } finally {
    await Promise.all(ours.nodes.map(end));
    rmSync(base, { recursive: true, force: true });
  }
}

/** What it costs to wait until a replica has a commit: one after the other, and many at once. */
async function acknowledged(report: Report): Promise<void> {
  const base = mkdtempSync(join(tmpdir(), "hangar-bench-"));
  const { ports, nodes, path } = await cluster(base, 1);
  try {
    report.section("commits that wait for one replica (GET /wait?ack=one)");
    for (const at_once of [1, 16]) {
      const ms = await acknowledgedCommits(path, ports[0] ?? 0, at_once);
      report.add({ what: `${at_once} at once: p50`, value: quantile(ms, 0.5), unit: "ms" });
      report.add({ what: `${at_once} at once: p99`, value: quantile(ms, 0.99), unit: "ms" });
      report.add({ what: `${at_once} at once`, value: (ms.length * 1000) / (ROUND_SECONDS * 1000), unit: "commits/s" });
    }
  } finally {
    await Promise.all(nodes.map(end));
    rmSync(base, { recursive: true, force: true });
  }
}

async function acknowledgedCommits(path: string, at: number, at_once: number): Promise<number[]> {
  const db = new DatabaseSync(path, { timeout: 10_000 });
  db.exec("PRAGMA synchronous = FULL; CREATE TABLE IF NOT EXISTS waited (n INTEGER PRIMARY KEY, pad TEXT)");
  const insert = db.prepare("INSERT INTO waited (pad) VALUES (?)");
  const taken: number[] = [];
  const until_ms = performance.now() + ROUND_SECONDS * 1000;
  const client = async (): Promise<void> => {
    while (performance.now() < until_ms) {
      const began_ms = performance.now();
      insert.run("x".repeat(200));
      const answer = await fetch(`http://127.0.0.1:${at}/wait?db=db&ack=one&timeout=30s`);
      await answer.arrayBuffer();
      if (answer.status === 200) taken.push(performance.now() - began_ms);
    }
  };
  await Promise.all(Array.from({ length: at_once }, client));
  db.close();
  return taken;
}

export async function run(report: Report): Promise<void> {
  await besideOthers(report);
  await acknowledged(report);
  for (const replicas of [1, 3]) {
    const { alone, taken } = await rounds(replicas);
    report.section(`synchronous=FULL, replicas: ${replicas}, medians of ${ROUNDS} rounds`);
    report.add({ what: ALONE, value: median(alone), unit: "tx/s" });
    for (const [i, rate] of RATES.entries()) addRate(report, rate, taken[i] ?? []);
  }
  report.section("1,000 readers of /events");
  for (const [what, value] of Object.entries(await readers(1000, SECONDS))) report.add({ what, value, unit: "" });
}
