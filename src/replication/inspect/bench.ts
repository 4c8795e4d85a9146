/**
 * `hangar db bench`: how fast the primary on this machine takes transactions, how long an acknowledgement takes, and how late
 * replicas are. Writes to a database of its own, which it deletes.
 */
import { once } from "node:events";
import { existsSync, rmSync } from "node:fs";
import { join } from "node:path";
import { Worker } from "node:worker_threads";
import { messageOf } from "#core/assert.ts";
import type { Clock } from "#core/clock.ts";
import { nodeIdIn } from "../node/identity.ts";
import { NodeClient } from "../node-client.ts";
import type { BenchWriting, BenchWritten } from "./bench-writer.ts";
import type { NodeInfo, Survey } from "./survey.ts";

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
  mustBeHere(primary);
  const path = join(primary.path, NAME);
  if (existsSync(path)) throw new Error(`${path} is there already: another bench, or one that was killed; delete it`);
  const replicas = nodes.flatMap(({ hostname, info }) => (info && info !== primary ? [hostname] : []));
  const samples = new Samples(primary.hostname, replicas, clock);
  const workerData: BenchWriting = { path, seconds, synchronous };
  const writer = new Worker(new URL("./bench-writer.ts", import.meta.url), { workerData });
  const ended = once(writer, "exit");
  try {
    await once(writer, "message");
    // The first one includes finding the database, and sending it whole.
    await samples.once();
    const written = await sampled(writer, samples, clock);
    return {
      synchronous,
      transactions: written.commit_ms.length,
      tx_per_s: Math.round((written.commit_ms.length * 1000) / written.took_ms),
      commit_ms: spread(written.commit_ms),
      acknowledged_ms: { mode: primary.ack?.mode ?? "none", ...spread(samples.acknowledged_ms) },
      lag_ms: Object.fromEntries([...samples.lag_ms].map(([hostname, ms]) => [hostname, spread(ms)])),
    };
  } catch (error) {
    throw new Error(`${messageOf(error)}; hangar db doctor may know why`, { cause: error });
  } finally {
    await writer.terminate();
    await ended;
    for (const end of ["", "-wal", "-shm"]) rmSync(path + end, { force: true });
  }
}

/** Another machine may have a folder of the same name, with a node of its own. */
function mustBeHere({ path, hostname, node }: NodeInfo): void {
  const id = nodeIdIn(path);
  if (id === node) return;
  const here = id === undefined ? `there is no such node in ${path} here` : `${path} here belongs to another node`;
  throw new Error(`the primary, ${hostname}, is on another machine (${here}): run hangar db bench there`);
}

/** Samples while the writer writes, and until all of them are answered. */
async function sampled(writer: Worker, samples: Samples, clock: Clock): Promise<BenchWritten> {
  const stop = new AbortController();
  const written = once(writer, "message").finally(() => stop.abort()) as Promise<[BenchWritten]>;
  writer.postMessage("start");
  const pending: Promise<void>[] = [];
  while (!stop.signal.aborted) {
    const sample = samples.take();
    pending.push(sample);
    // Awaited below, after the writer.
    sample.catch(() => undefined);
    await clock.sleep(SAMPLE_EVERY_MS, stop.signal).catch(() => undefined);
  }
  const [answer] = await written;
  await Promise.all(pending);
  return answer;
}

/** Times until everything committed is acknowledged, and until each replica has it. */
class Samples {
  readonly acknowledged_ms: number[] = [];
  readonly lag_ms: Map<string, number[]>;
  readonly #primary: NodeClient;
  readonly #replicas: readonly [client: NodeClient, ms: number[]][];
  readonly #clock: Clock;

  constructor(primary: string, replicas: readonly string[], clock: Clock) {
    const clientOf = (hostname: string): NodeClient => new NodeClient(`http://${hostname}`, clock);
    this.#clock = clock;
    this.#primary = clientOf(primary);
    this.lag_ms = new Map(replicas.map((hostname) => [hostname, []]));
    this.#replicas = [...this.lag_ms].map(([hostname, ms]) => [clientOf(hostname), ms]);
  }

  /** One that does not count. */
  async once(): Promise<void> {
    await this.take();
    for (const ms of [this.acknowledged_ms, ...this.lag_ms.values()]) ms.length = 0;
  }

  async take(): Promise<void> {
    const began_ms = this.#clock.monotonic();
    const { txid } = (await this.#primary.wait({ db: NAME, timeout: "60s" })) as { txid: string };
    this.acknowledged_ms.push(this.#clock.monotonic() - began_ms);
    const onReplica = async ([client, ms]: readonly [NodeClient, number[]]): Promise<void> => {
      await client.wait({ db: NAME, txid, timeout: "60s" });
      ms.push(this.#clock.monotonic() - began_ms);
    };
    await Promise.all(this.#replicas.map(onReplica));
  }
}

function spread(values: readonly number[]): { p50: number; p99: number; most: number } {
  const sorted = values.toSorted((a, b) => a - b);
  const at = (part: number): number => Number((sorted[Math.floor((sorted.length - 1) * part)] ?? 0).toFixed(2));
  return { p50: at(0.5), p99: at(0.99), most: at(1) };
}
