/**
 * `hangar db bench`: how fast the primary on this machine takes transactions, how long an acknowledgement takes, and how late
 * replicas are. Writes to a database of its own, which it deletes.
 */
import { existsSync, rmSync } from "node:fs";
import { join } from "node:path";
import { DatabaseSync } from "node:sqlite";
import type { Clock } from "#core/clock.ts";
import { NodeClient } from "../node-client.ts";
import type { Survey } from "./survey.ts";

const NAME = "hangar-bench.db";
const SAMPLE_EVERY_MS = 100;

export interface BenchOptions {
  seconds: number;
  clock: Clock;
  /** The application's synchronous mode. */
  synchronous: "FULL" | "NORMAL";
}

export async function bench(
  { nodes, primary }: Survey,
  { seconds, clock, synchronous }: BenchOptions,
): Promise<object> {
  if (!primary) throw new Error("no node is primary");
  const path = join(primary.path, NAME);
  if (!existsSync(primary.path)) {
    throw new Error(`${primary.path} is not on this machine: run this where the primary, ${primary.hostname}, is`);
  }
  if (existsSync(path)) throw new Error(`${path} is there already: another bench, or one that was killed; delete it`);
  const replicas = nodes.filter(({ info }) => info && info !== primary);
  const samples = { commit_ms: [] as number[], acknowledged_ms: [] as number[] };
  const lag_ms = new Map(replicas.map(({ hostname }) => [hostname, [] as number[]]));
  const db = new DatabaseSync(path, { timeout: 10_000 });
  try {
    db.exec(
      `PRAGMA journal_mode = WAL; PRAGMA synchronous = ${synchronous}; CREATE TABLE bench (n INTEGER PRIMARY KEY, pad TEXT)`,
    );
    const insert = db.prepare("INSERT INTO bench (pad) VALUES (?)");
    const began_ms = clock.monotonic();
    const until_ms = began_ms + seconds * 1000;
    let [written, sampled_ms] = [0, 0];
    const pending: Promise<unknown>[] = [];
    while (clock.monotonic() < until_ms) {
      const before_ms = clock.monotonic();
      insert.run("x".repeat(200));
      written++;
      samples.commit_ms.push(clock.monotonic() - before_ms);
      if (clock.monotonic() - sampled_ms < SAMPLE_EVERY_MS) continue;
      sampled_ms = clock.monotonic();
      pending.push(sample(primary.hostname, lag_ms, samples.acknowledged_ms, clock));
      // Lets this process's event loop run.
      await new Promise<void>((turn) => setImmediate(turn));
    }
    const took_ms = clock.monotonic() - began_ms;
    await Promise.all(pending);
    return {
      synchronous,
      transactions: written,
      tx_per_s: Math.round((written * 1000) / took_ms),
      commit_ms: spread(samples.commit_ms),
      acknowledged_ms: { mode: primary.ack?.mode ?? "none", ...spread(samples.acknowledged_ms) },
      lag_ms: Object.fromEntries([...lag_ms].map(([hostname, ms]) => [hostname, spread(ms)])),
    };
  } finally {
    db.close();
    for (const end of ["", "-wal", "-shm"]) rmSync(path + end, { force: true });
  }
}

/** Time until a commit is acknowledged, and until each replica has it. */
async function sample(
  hostname: string,
  lag_ms: Map<string, number[]>,
  acknowledged_ms: number[],
  clock: Clock,
): Promise<void> {
  const began_ms = clock.monotonic();
  const on = (host: string): NodeClient => new NodeClient(`http://${host}`, clock);
  const { txid } = (await on(hostname).wait({ db: NAME, timeout: "60s" })) as { txid: string };
  acknowledged_ms.push(clock.monotonic() - began_ms);
  await Promise.all(
    [...lag_ms].map(async ([replica, ms]) => {
      await on(replica).wait({ db: NAME, txid, timeout: "60s" });
      ms.push(clock.monotonic() - began_ms);
    }),
  );
}

function spread(values: readonly number[]): { p50: number; p99: number; most: number } {
  const sorted = values.toSorted((a, b) => a - b);
  const at = (part: number): number => Number((sorted[Math.floor((sorted.length - 1) * part)] ?? 0).toFixed(2));
  return { p50: at(0.5), p99: at(0.99), most: at(1) };
}
