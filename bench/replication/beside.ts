/**
 * The same writer on databases that LiteFS and Litestream replicate, in turns with ours: all of them run, and one is
 * written to at a time.
 */
import type { ChildProcess } from "node:child_process";
import { mkdirSync, mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { DatabaseSync } from "node:sqlite";
import { freePort } from "#proxy/fixtures.ts";
import { end, residentBytes } from "../processes.ts";
import { median, quantile, type Report } from "../report.ts";
import { cluster, cpuUs, info, lags, start, until, type Wrote, watch, write } from "./cluster.ts";
import { build } from "./go-program.ts";
import { PEERS, type RunningPeer, startPeer } from "./peers.ts";

const ROUNDS = 3;
const ROUND_SECONDS = 2;
const SNAPSHOT_MIB = 100;
/** What all of them can write, so that lag is compared at the same rate. */
const STEADY_RATE = 100;
const OURS = "our node, one replica";

interface Round {
  tx_per_s: number;
  /** With synchronous = NORMAL: an application that leaves durability to whoever replicates it. */
  normal_per_s: number;
  lag_p50_ms: number;
  lag_p99_ms: number;
  /** The same at a rate that is no effort for anybody. */
  steady_p50_ms: number;
  steady_p99_ms: number;
  /** From the begin of a COMMIT: who replicates within it has lag that nobody sees, and slow commits. */
  steady_whole_ms: number;
  primary_us: number;
  replica_us: number;
}

const txidOf = (position: string | undefined): number => Number(`0x${position?.slice(0, 16) ?? ""}`);

async function ours(): Promise<RunningPeer> {
  const base = mkdtempSync(join(tmpdir(), "hangar-bench-"));
  const { ports, nodes, path } = await cluster(base, 1);
  const [primary, replica] = nodes;
  const [port = 0, events_port = 0] = ports;
  if (!primary || !replica) throw new Error("a cluster has a primary");
  const at = async (node: number): Promise<number> => txidOf((await info(node))?.databases["db"]);
  return {
    name: OURS,
    path,
    primary,
    replica,
    events_port,
    positions: () => Promise.all(ports.map(at)),
    join: async () => {
      const listen = await freePort();
      const dir = join(base, "joined");
      mkdirSync(dir);
      const args = ["--dir", dir, "--listen", `127.0.0.1:${listen}`, "--join", `http://127.0.0.1:${port}`];
      nodes.push(start("src/replication/main.ts", ...args));
      await until(async () => (await at(listen)) === (await at(port)));
    },
    end: async () => {
      await Promise.all(nodes.map(end));
      rmSync(base, { recursive: true, force: true });
    },
  };
}

/** Waits until all nodes have the same, and the primary nothing more to capture. */
async function caughtUp({ positions }: RunningPeer): Promise<number> {
  if (!positions) return 0;
  let seen: number[] = [];
  await until(async () => {
    const before = seen;
    await new Promise((next) => setTimeout(next, 250));
    seen = await positions();
    return seen.every((txid) => txid > 0 && txid === before[0]);
  });
  return seen[0] ?? 0;
}

/** An application that writes while somebody follows the replica: what it wrote, and how late each transaction was there. */
async function follow(peer: RunningPeer, rate: number): Promise<{ wrote: Wrote; late: number[]; whole: number[] }> {
  const before = await caughtUp(peer);
  const watched = peer.events_port === undefined ? [] : [watch(peer.events_port)];
  const wrote = await write(peer.path, ROUND_SECONDS, rate, "full times");
  await caughtUp(peer);
  const [late, whole] = [lags(watched, wrote.committed_ms, before), lags(watched, wrote.began_ms, before)];
  for (const { stop } of watched) stop();
  return { wrote, late, whole };
}

async function measure(peer: RunningPeer): Promise<Round> {
  const steady = await follow(peer, STEADY_RATE);
  const spent = (child: ChildProcess | undefined): number => (child ? cpuUs(child) : Number.NaN);
  const [primary_us, replica_us] = [spent(peer.primary), spent(peer.replica)];
  const {
    wrote: { transactions, took_ms },
    late,
  } = await follow(peer, 0);
  const [primary_spent, replica_spent] = [spent(peer.primary) - primary_us, spent(peer.replica) - replica_us];
  const normal = await write(peer.path, ROUND_SECONDS, 0, "normal");
  return {
    tx_per_s: (transactions * 1000) / took_ms,
    normal_per_s: (normal.transactions * 1000) / normal.took_ms,
    lag_p50_ms: quantile(late, 0.5),
    lag_p99_ms: quantile(late, 0.99),
    steady_p50_ms: quantile(steady.late, 0.5),
    steady_p99_ms: quantile(steady.late, 0.99),
    steady_whole_ms: quantile(steady.whole, 0.5),
    primary_us: primary_spent / transactions,
    replica_us: replica_spent / transactions,
  };
}

/** How long a replica that has nothing takes to have a database of this size, from the start of its process. */
async function snapshot(peer: RunningPeer): Promise<number> {
  const db = new DatabaseSync(peer.path, { timeout: 60_000 });
  db.exec("CREATE TABLE large (bytes BLOB)");
  const insert = db.prepare("INSERT INTO large VALUES (randomblob(1048576))");
  for (let mib = 0; mib < SNAPSHOT_MIB; mib++) insert.run();
  db.close();
  await caughtUp(peer);
  const began_ms = performance.now();
  await peer.join?.();
  return performance.now() - began_ms;
}

const FIELDS: readonly [field: keyof Round, what: string, unit: string][] = [
  ["tx_per_s", "written", "tx/s"],
  ["normal_per_s", "written, synchronous=NORMAL", "tx/s"],
  ["lag_p50_ms", "lag p50", "ms"],
  ["lag_p99_ms", "lag p99", "ms"],
  ["steady_p50_ms", `${STEADY_RATE} tx/s: lag p50`, "ms"],
  ["steady_p99_ms", `${STEADY_RATE} tx/s: lag p99`, "ms"],
  ["steady_whole_ms", `${STEADY_RATE} tx/s: from COMMIT to the replica, p50`, "ms"],
  ["primary_us", "primary", "CPU µs/tx"],
  ["replica_us", "replica", "CPU µs/tx"],
];

export async function besideOthers(report: Report): Promise<void> {
  report.section(`beside others, synchronous=FULL, unlimited, medians of ${ROUNDS} rounds`);
  // Side by side, and before anything is measured.
  const built = await Promise.all(PEERS.map(({ source }) => build(source)));
  const running = [await ours()];
  try {
    for (const [i, peer] of PEERS.entries()) {
      const started = await startPeer(peer, built[i] ?? { reason: "it was not built" });
      if ("reason" in started) report.skip(peer.name, started.reason);
      else running.push(started);
    }
    await addRounds(report, running);
    for (const peer of running) {
      const add = (what: string, value: number, unit: string): void => addBeside(report, peer, { what, value, unit });
      add("primary, memory", residentBytes(peer.primary) / 2 ** 20, "MiB");
      if (peer.join) add(`a new replica has ${SNAPSHOT_MIB} MiB`, await snapshot(peer), "ms");
    }
    report.skip(
      "failover of LiteFS and Litestream",
      "a static lease has none, and Litestream has no replica to take over",
    );
  } finally {
    for (const peer of running) await peer.end();
  }
}

async function addRounds(report: Report, running: readonly RunningPeer[]): Promise<void> {
  const taken = new Map(running.map((peer) => [peer, [] as Round[]]));
  // The first time schemas are made and code is compiled.
  for (const peer of running) await write(peer.path, ROUND_SECONDS, 0);
  for (let round = 0; round < ROUNDS; round++) {
    for (const [peer, rounds] of taken) rounds.push(await measure(peer));
  }
  for (const [field, what, unit] of FIELDS) {
    for (const [peer, rounds] of taken) {
      const value = Number(median(rounds.map((round) => round[field])).toFixed(1));
      addBeside(report, peer, { what, value, unit });
    }
  }
}

/** As a multiple of ours; what somebody does not have is left out. */
function addBeside(
  report: Report,
  { name }: RunningPeer,
  { what, value, unit }: { what: string; value: number; unit: string },
): void {
  if (Number.isNaN(value)) return;
  const compared = name === OURS ? {} : { to: `${OURS}: ${what}` };
  report.add({ what: `${name}: ${what}`, value, unit, ...compared });
}
