/**
 * How fast and how late replication is. Writers commit with synchronous = FULL. Lag is from the moment a commit returns
 * to the application to the moment a reader of the replica's event stream has heard of it; all clocks are one machine's.
 * Processor time per transaction is that of each node's process, from /proc.
 */
import { once } from "node:events";
import { mkdtempSync, rmSync } from "node:fs";
import { get } from "node:http";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { end } from "./processes.ts";
import { acknowledged } from "./replication/acks.ts";
import { besideOthers } from "./replication/beside.ts";
import { type Cluster, cluster, cpuUs, info, lags, start, until, watch, write } from "./replication/cluster.ts";
import { median, quantile, type Report } from "./report.ts";

interface Round {
  tx_per_s: number;
  lag_p50_ms: number;
  lag_p99_ms: number;
  /** Of the processor, per transaction; of the replicas their mean. */
  primary_us: number;
  replica_us: number;
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

const SECONDS = 5;
const WARM_SECONDS = 4;
const ROUNDS = 3;
const ROUND_SECONDS = 2;
const ALONE = "the same writer without a node";

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
  const compared = rate === 0 ? { to: ALONE } : {};
  report.add({ what: `${name}: written`, value: of("tx_per_s"), unit: "tx/s", ...atLeast(tx_per_s), ...compared });
  report.add({ what: `${name}: lag p50`, value: of("lag_p50_ms"), unit: "ms" });
  report.add({ what: `${name}: lag p99`, value: of("lag_p99_ms"), unit: "ms", ...atMost(lag_ms) });
  report.add({ what: `${name}: primary`, value: of("primary_us"), unit: "CPU µs/tx", ...atMost(cpu_us) });
  report.add({ what: `${name}: replica`, value: of("replica_us"), unit: "CPU µs/tx", ...atMost(cpu_us) });
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
