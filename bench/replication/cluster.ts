/** What all measurements of replication share: nodes, a writer, and readers of events. */
import { type ChildProcess, spawn } from "node:child_process";
import { once } from "node:events";
import { mkdirSync } from "node:fs";
import { get } from "node:http";
import { join } from "node:path";
import { nodeFlags, programEnvironment } from "#cli/program-environment.ts";
import { freePort } from "#proxy/fixtures.ts";
import { cpuSeconds } from "../processes.ts";

const root = join(import.meta.dirname, "..", "..");

/** What the writer says at its end. */
export interface Wrote {
  transactions: number;
  took_ms: number;
  /** When each COMMIT began, and when it returned. */
  began_ms: number[];
  committed_ms: number[];
}

export const cpuUs = (child: ChildProcess): number => cpuSeconds(child) * 1e6;

/** A program of ours; a node as `hangar db node` starts it. */
export function start(script: string, ...args: string[]): ChildProcess {
  const command = [...nodeFlags(script.replace("src/", "")), script, ...args];
  const env = programEnvironment(process.env);
  return spawn(process.execPath, command, { cwd: root, env, stdio: ["ignore", "pipe", "inherit"] });
}

export interface Info {
  isPrimary: boolean;
  databases: Record<string, string>;
  replicas: unknown[];
}

export async function info(at: number): Promise<Info | undefined> {
  const answer = await fetch(`http://127.0.0.1:${at}/info`).catch(() => undefined);
  return answer && ((await answer.json()) as Info);
}

/** A primary looks at a database that is written to far more often. */
const STILL_MS = 250;

/** What has not happened by then never does: the run says so, instead of waiting without end. */
const GIVE_UP_MS = 120_000;

export async function until(done: () => Promise<boolean>): Promise<void> {
  const give_up_ms = performance.now() + GIVE_UP_MS;
  while (!(await done())) {
    if (performance.now() > give_up_ms) throw new Error(`waited ${GIVE_UP_MS / 1000} s in vain for the nodes`);
    await new Promise((next) => setTimeout(next, 20));
  }
}

export interface Watch {
  /** When each transaction was heard of, by txid. */
  heard_ms: Map<number, number>;
  stop(): void;
}

/** Follows a replica's events. */
export function watch(at: number): Watch {
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

/** How long after these times each of the writer's transactions was there, which are those after `before`, in order. */
export function lags(watched: readonly Watch[], since_ms: readonly number[], before: number): number[] {
  const found = watched.flatMap(({ heard_ms }) =>
    since_ms.map((at_ms, i) => (heard_ms.get(before + i + 1) ?? Number.NaN) - at_ms),
  );
  return found.filter((ms) => !Number.isNaN(ms));
}

/** A primary and its replicas, with a database that all of them have. */
export async function cluster(base: string, replicas: number) {
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

export type Cluster = Awaited<ReturnType<typeof cluster>>;

/** An application that writes for so long, at this rate or as fast as it can. */
export async function write(path: string, seconds: number, rate: number, flags = "full"): Promise<Wrote> {
  const writer = start("test/system/replication-writer.ts", path, String(seconds), String(rate), flags);
  let output = "";
  writer.stdout?.on("data", (bytes: Buffer) => {
    output += bytes.toString("utf8");
  });
  await once(writer, "close");
  return JSON.parse(output.trimEnd().split("\n").at(-1) ?? "") as Wrote;
}
