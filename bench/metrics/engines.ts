/** The engines of the metrics benchmark, each started as a process on loopback with a folder of its own. */
import { type ChildProcess, spawn } from "node:child_process";
import { once } from "node:events";
import { mkdtempSync, readdirSync, rmSync, statSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { setTimeout as sleep } from "node:timers/promises";
import { freePort } from "#proxy/fixtures.ts";
import { end, exactCpuSeconds, installed, nextLine, residentBytes, until } from "../processes.ts";
import { peerProgram } from "./peer-programs.ts";

export interface Engine {
  readonly name: EngineName;
  /** Changes with a restart. */
  readonly base: string;
  /** Added to every query, so that repeats are computed and not remembered. */
  readonly query_suffix: string;
  /** Processor seconds used so far, of all its threads. */
  cpu(): number;
  rss_mib(): number;
  /** Brings what was loaded into its final form; answers the bytes of data and index. */
  settle(): Promise<number>;
  /** Ends it as a crash would. */
  kill(): Promise<void>;
  /** Starts it on the same folder again; resolves when it takes requests. */
  restart(): Promise<void>;
  stop(): Promise<void>;
}

/** Each on an empty folder; a peer as Debian packages it, which tests are judged by, unless another program is named. */
export const ENGINES = {
  hangar: startHangar,
  "victoria-metrics": startVictoria,
  prometheus: startPrometheus,
} as const;

export type EngineName = keyof typeof ENGINES;

/** Why an engine cannot be had from Debian's packages here, or undefined. */
export function whyNot(name: EngineName): string | undefined {
  return name === "hangar" || installed(name)
    ? undefined
    : `${name} is not installed (apt-get install --no-install-recommends ${name})`;
}

/** The engine in the version that benchmarks compare with, on an empty folder, or why it cannot be measured here. */
export async function startEngine(name: EngineName): Promise<{ engine: Engine; version: string } | { reason: string }> {
  if (name === "hangar") return { engine: await startHangar(), version: "this checkout" };
  const found = await peerProgram(name);
  if ("reason" in found) return found;
  return { engine: await ENGINES[name](found.program), version: found.version };
}

/** The second start is the measured one: the first compiles, which a program in use did long ago. */
async function startHangar(): Promise<Engine> {
  await (await startServer()).stop();
  return startServer();
}

function startServer(): Promise<Engine> {
  const dir = mkdtempSync(join(tmpdir(), "hangar-bench-"));
  return engineOf("hangar", dir, {
    async launch() {
      const child = spawn(process.execPath, [join(import.meta.dirname, "server.ts"), dir], {
        stdio: ["ignore", "pipe", "inherit"],
      });
      return { child, base: `http://127.0.0.1:${await nextLine(child)}` };
    },
    async settle(base) {
      await read(`${base}/compact`);
      return bytesUnder(join(dir, "bench", "blocks"));
    },
  });
}

async function startVictoria(program = "victoria-metrics"): Promise<Engine> {
  const { dir, port, base } = await place();
  const args = [
    `-storageDataPath=${dir}`,
    `-httpListenAddr=127.0.0.1:${port}`,
    "-retentionPeriod=100y",
    "-search.maxUniqueTimeseries=300000",
    "-search.latencyOffset=0s",
    "-loggerLevel=ERROR",
  ];
  const engine = await engineOf("victoria-metrics", dir, {
    async launch() {
      const child = spawn(program, args, { stdio: ["ignore", "ignore", "inherit"] });
      await until("victoria-metrics", () => read(`${base}/health`));
      return { child, base };
    },
    async settle() {
      await read(`${base}/internal/force_flush`);
      await read(`${base}/internal/force_merge`);
      // The merge goes on in the background; it is over when the size no longer changes.
      let before = 0;
      for (let bytes = -1; bytes !== before; ) {
        before = bytes;
        await sleep(3000);
        const lines = (await read(`${base}/metrics`)).split("\n");
        const sizes = lines.filter((line) => line.startsWith("vm_data_size_bytes"));
        bytes = sizes.reduce((sum, line) => sum + Number(line.split(" ")[1]), 0);
      }
      return before;
    },
  });
  return Object.assign(engine, { query_suffix: "&nocache=1" });
}

async function startPrometheus(program = "prometheus"): Promise<Engine> {
  const { dir, port, base } = await place();
  const config = join(dir, "prometheus.yml");
  writeFileSync(config, "global: {}\n");
  const args = [
    `--config.file=${config}`,
    `--storage.tsdb.path=${join(dir, "data")}`,
    `--web.listen-address=127.0.0.1:${port}`,
    "--web.enable-remote-write-receiver",
    "--web.enable-admin-api",
    "--storage.tsdb.retention.time=100y",
    "--query.max-samples=500000000",
    "--log.level=error",
  ];
  return engineOf("prometheus", dir, {
    async launch() {
      const child = spawn(program, args, { stdio: ["ignore", "ignore", "inherit"] });
      await until("prometheus", () => read(`${base}/-/ready`));
      return { child, base };
    },
    async settle() {
      await read(`${base}/api/v1/admin/tsdb/snapshot`, "POST");
      return bytesUnder(join(dir, "data", "snapshots"));
    },
  });
}

interface Running {
  child: ChildProcess;
  base: string;
}

interface Parts {
  launch(): Promise<Running>;
  settle(base: string): Promise<number>;
}

async function engineOf(name: EngineName, dir: string, { launch, settle }: Parts): Promise<Engine> {
  let running = await launch();
  // However this process ends, nothing it started stays behind.
  const killNow = () => running.child.kill("SIGKILL");
  process.once("exit", killNow);
  return {
    name,
    get base() {
      return running.base;
    },
    query_suffix: "",
    cpu: () => exactCpuSeconds(running.child),
    rss_mib: () => Math.round(residentBytes(running.child) / 2 ** 20),
    settle: () => settle(running.base),
    async kill() {
      const exited = once(running.child, "exit");
      killNow();
      await exited;
    },
    async restart() {
      running = await launch();
    },
    async stop() {
      await end(running.child);
      process.off("exit", killNow);
      rmSync(dir, { recursive: true, force: true });
    },
  };
}

/** A folder and a port nobody has at the moment: the peers cannot choose one themselves and say so. */
async function place(): Promise<{ dir: string; port: number; base: string }> {
  const port = await freePort();
  return { dir: mkdtempSync(join(tmpdir(), "hangar-bench-")), port, base: `http://127.0.0.1:${port}` };
}

export async function read(url: string, method = "GET"): Promise<string> {
  const answer = await fetch(url, { method });
  const text = await answer.text();
  if (!answer.ok) throw new Error(`${url}: ${answer.status} ${text.slice(0, 200)}`);
  return text;
}

function bytesUnder(dir: string): number {
  return readdirSync(dir, { recursive: true, withFileTypes: true })
    .filter((entry) => entry.isFile())
    .reduce((sum, entry) => sum + statSync(join(entry.parentPath, entry.name)).size, 0);
}
