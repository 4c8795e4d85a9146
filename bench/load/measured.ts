/** A server that is measured: on one core of its own, with what it used so far. */
import { type ChildProcess, spawn } from "node:child_process";
import { once } from "node:events";
import { availableParallelism } from "node:os";
import { join } from "node:path";
import { createInterface } from "node:readline";
import { cpuSeconds, end, residentBytes } from "../processes.ts";

const ROOT = join(import.meta.dirname, "../..");
const SERVER_CORE = "0";
/** The load comes from another core, where there is one. */
const LOAD_CORE = availableParallelism() > 1 ? "1" : "0";

/** Makes every fsync of a program take a millisecond longer: a common disk, on a machine that has a fast one. */
export const SLOW_DISK: readonly string[] = [
  "strace",
  "--daemonize",
  "--follow-forks",
  "--seccomp-bpf",
  "--quiet=all",
  "--output=/dev/null",
  "--trace=fsync,fdatasync",
  "--inject=fsync,fdatasync:delay_exit=1000",
];

export class Measured {
  readonly #child: ChildProcess;
  /** The first line that matched, which says where it listens. */
  readonly ready: string;
  readonly start_ms: number;

  private constructor(child: ChildProcess, ready: string, start_ms: number) {
    this.#child = child;
    this.ready = ready;
    this.start_ms = start_ms;
  }

  /** Starts a program of ours and waits for the line that says it is ready. */
  static async start(
    program: string,
    args: readonly string[],
    ready: RegExp,
    around: readonly string[] = [],
  ): Promise<Measured> {
    const started = performance.now();
    const command = ["-c", SERVER_CORE, ...around, process.execPath, join(ROOT, program), ...args];
    const child = spawn("taskset", command, { cwd: ROOT, stdio: ["ignore", "pipe", "inherit"] });
    for await (const line of createInterface({ input: child.stdout })) {
      if (!ready.test(line)) continue;
      child.stdout.resume();
      return new Measured(child, line, performance.now() - started);
    }
    throw new Error(`${program} ended before it was ready`);
  }

  get port(): number {
    return Number(/(\d+)\/?\s*$/.exec(this.ready.split("  (")[0] ?? "")?.[1]);
  }

  cpuSeconds(): number {
    return cpuSeconds(this.#child);
  }

  residentMb(): number {
    return residentBytes(this.#child) / 1e6;
  }

  stop(): Promise<void> {
    return end(this.#child);
  }
}

export interface Load {
  requests: number;
  seconds: number;
  p50_ms: number;
  p99_ms: number;
  refused: [string, number][];
}

/** Runs a load generator on the other core and reads its line of JSON. */
export async function load(command: string, args: readonly string[]): Promise<Load> {
  const child = spawn("taskset", ["-c", LOAD_CORE, command, ...args], { stdio: ["ignore", "pipe", "inherit"] });
  let text = "";
  child.stdout.setEncoding("utf8").on("data", (chunk: string) => {
    text += chunk;
  });
  await once(child, "close");
  const json = text.split("\n").find((line) => line.startsWith("{"));
  if (!json) throw new Error(`${command} measured nothing: ${text}`);
  const measured = JSON.parse(json) as Load;
  if (measured.refused.length > 0) throw new Error(`requests were refused: ${JSON.stringify(measured.refused)}`);
  return measured;
}
