/** Real processes for the replication tests: nodes, writers, readers; each is reaped when its test ends. */
import assert from "node:assert/strict";
import { type ChildProcess, spawn } from "node:child_process";
import { once } from "node:events";
import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import type { TestContext } from "node:test";
import { PATIENCE_MS, until } from "../support.ts";
import { ROOT } from "./child.ts";

export interface NodeInfo {
  node: string;
  isPrimary: boolean;
  term: number;
  lagMs: number;
  databases: Record<string, string>;
  replicas: { node: string }[];
  refused: Record<string, string>;
  states: Record<string, { state: string; reason: string }>;
}

const SAID_EVERY_MS = 10_000;

/** Says how far a proof is, for somebody who waits for it; nothing at every push. Answers what says it. */
export function progress(t: TestContext, of: number): (done: number) => void {
  let said_ms = performance.now();
  return (done) => {
    if (!process.env["HANGAR_PROVE"] || performance.now() - said_ms < SAID_EVERY_MS) return;
    said_ms = performance.now();
    process.stdout.write(`  ${t.name}: ${done} of ${of}\n`);
  };
}

/** A process whose output is kept. */
export class Process {
  readonly child: ChildProcess;
  readonly ended: Promise<number | null>;
  output = "";

  constructor(script: string, args: readonly string[], env: Record<string, string> = {}) {
    const options = {
      cwd: ROOT,
      env: { ...process.env, ...env },
      stdio: ["ignore", "pipe", "pipe"] as ["ignore", "pipe", "pipe"],
    };
    this.child = spawn(process.execPath, [script, ...args], options);
    for (const stream of [this.child.stdout, this.child.stderr]) {
      stream?.on("data", (bytes: Buffer) => {
        this.output += bytes.toString("utf8");
      });
    }
    this.ended = once(this.child, "close").then(([code]) => code as number | null);
  }

  async end(signal: NodeJS.Signals = "SIGTERM"): Promise<void> {
    if (this.child.exitCode === null && this.child.signalCode === null) this.child.kill(signal);
    await this.ended;
  }

  /** The JSON object in the last line. */
  result(): Record<string, unknown> {
    const line = this.output.trimEnd().split("\n").at(-1) ?? "";
    try {
      return JSON.parse(line) as Record<string, unknown>;
    } catch {
      throw new Error(`no result in: ${this.output.slice(-2000)}`);
    }
  }
}

/** What a test has running; ended in the other order. */
export class Stage {
  readonly #t: TestContext;
  readonly #closers: (() => unknown)[] = [];
  readonly #processes: Process[] = [];

  constructor(t: TestContext) {
    this.#t = t;
    t.after(() => this.#end());
  }

  dir(): string {
    const dir = mkdtempSync(join(tmpdir(), "hangar-replication-"));
    this.#closers.push(() => rmSync(dir, { recursive: true, force: true }));
    return dir;
  }

  run(script: string, args: readonly string[], env?: Record<string, string>): Process {
    const started = new Process(script, args, env);
    this.#processes.push(started);
    this.#closers.push(() => started.end("SIGKILL"));
    return started;
  }

  writer(path: string, seconds: number, rate = 0, flags = "", env?: Record<string, string>): Process {
    return this.run("test/system/replication-writer.ts", [path, String(seconds), String(rate), flags], env);
  }

  reader(path: string, seconds: number, mode: string): Process {
    return this.run("test/system/replication-reader.ts", [path, String(seconds), mode]);
  }

  node(dir: string, port: number, ...args: string[]): Process {
    return this.run("src/replication/main.ts", ["--dir", dir, "--listen", `127.0.0.1:${port}`, ...args]);
  }

  later(close: () => unknown): void {
    this.#closers.push(close);
  }

  async #end(): Promise<void> {
    // Not in the types yet.
    const { passed } = this.#t as unknown as { passed: boolean };
    if (!passed) for (const { output } of this.#processes) this.#t.diagnostic(output.slice(-1500));
    for (const close of this.#closers.reverse()) await close();
  }
}

// A node that is killed must come back under the same port.
export { freePort } from "#proxy/fixtures.ts";

export async function info(port: number): Promise<NodeInfo | undefined> {
  try {
    const response = await fetch(`http://127.0.0.1:${port}/info`, { signal: AbortSignal.timeout(2000) });
    return (await response.json()) as NodeInfo;
  } catch {
    return undefined;
  }
}

/** Where a node is with a database, as soon as it says so. */
export async function positionOn(port: number, name = "db"): Promise<string> {
  return await until(`${port} has a position`, async () => (await info(port))?.databases[name]);
}

/** Waits until both nodes say the same position for a database, and returns it. */
export async function samePositionOn(a: number, b: number, name = "db", limit_ms = PATIENCE_MS): Promise<string> {
  return await until(
    `the same position on ${a} and ${b}`,
    async () => {
      const [x, y] = [await info(a), await info(b)];
      const position = x?.databases[name];
      return position === y?.databases[name] && position;
    },
    { limit_ms },
  );
}

/** Fails unless the reader has only ever seen states that the writer committed. */
export function assertGood(reader: Process, at_least: number): number {
  const found = reader.result();
  assert.deepEqual(found["bad"], [], reader.output);
  assert.equal(found["back"], 0, reader.output);
  assert.deepEqual(found["errors"], {}, reader.output);
  assert.ok(Number(found["checks"]) >= at_least, `only ${String(found["checks"])} checks: ${reader.output}`);
  return Number(found["checks"]);
}
