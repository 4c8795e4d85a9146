/** The engines of the logs benchmark: ours with the monitors that write, VictoriaLogs, and zstd with grep. */
import { type ChildProcess, execFileSync, spawn, spawnSync } from "node:child_process";
import {
  closeSync,
  existsSync,
  mkdirSync,
  openSync,
  readdirSync,
  readFileSync,
  statSync,
  writeFileSync,
} from "node:fs";
import { type FileHandle, open } from "node:fs/promises";
import { join } from "node:path";
import { createInterface, type Interface } from "node:readline";
import { text } from "node:stream/consumers";
import { freePort } from "#proxy/fixtures.ts";
import { readMessage } from "../../src/core/log-line.ts";
import { layoutOf, pathsOf } from "../../src/drivers/runtime/runc/layout.ts";
import { RUNC_LIMITS } from "../../src/drivers/runtime/runc/limits.ts";
import { nativeProgram } from "../../src/drivers/runtime/runc/native-programs.ts";
import { end, exactCpuSeconds, installed, until } from "../processes.ts";
import type { KeptLine, Query } from "./queries.ts";
import type { Asked } from "./server.ts";

export const NEWEST = 100;
/** Lines of one page of a search, as many as a response may have. */
const PAGE = 10_000;

export interface Asking {
  name: string;
  version: string;
  /** Lines that it found, and its processor time. */
  ask(query: Query): Promise<{ lines: number; cpu_s: number } | undefined>;
  close(): Promise<void>;
}

/** A machine that writes what comes through a pipe, with its monitor. */
interface Writer {
  input: FileHandle;
  monitor: { pid: number };
}

export class Hangar implements Asking {
  readonly name = "hangar";
  readonly version = `Node ${process.version}`;
  readonly ids: readonly string[];
  readonly #layout: ReturnType<typeof layoutOf>;
  readonly #server: ChildProcess;
  readonly #answers: AsyncIterator<string>;
  readonly #lines: Interface;
  readonly #writers: Writer[] = [];

  private constructor(dir: string, machines: number) {
    this.ids = Array.from({ length: machines }, (_, index) => `m${index}`);
    this.#layout = { ...layoutOf(dir, "0000"), containers: join(dir, "m") };
    const args = [join(import.meta.dirname, "server.ts"), dir, this.#layout.containers];
    this.#server = spawn(process.execPath, args, { stdio: ["pipe", "pipe", "inherit"] });
    this.#lines = createInterface({ input: this.#server.stdout as NodeJS.ReadableStream });
    this.#answers = this.#lines[Symbol.asyncIterator]();
  }

  static async start(dir: string, machines: number): Promise<Hangar> {
    const hangar = new Hangar(dir, machines);
    for (const id of hangar.ids) hangar.#writers.push(await hangar.#writer(id));
    await hangar.#answers.next();
    return hangar;
  }

  async #writer(id: string): Promise<Writer> {
    const paths = pathsOf(this.#layout, id);
    for (const folder of [paths.run, paths.logs]) mkdirSync(folder, { recursive: true });
    const pipe = join(paths.run, "input");
    execFileSync("mkfifo", [pipe]);
    const exit = join(paths.run, "exit");
    const args = [
      paths.log,
      String(RUNC_LIMITS.log_bytes_alone),
      exit,
      paths.pid,
      paths.monitor_pid,
      paths.control,
      "-",
    ];
    const machine = ["/bin/sh", "-c", `cat ${pipe} & echo $! > ${paths.pid}`];
    // What it is told to say goes nowhere, but the descriptor must be open.
    const nowhere = openSync("/dev/null", "w");
    const stdio = ["ignore", "ignore", "inherit", nowhere] as const;
    spawnSync(nativeProgram("monitor"), [...args, ...machine], { stdio: [...stdio] });
    closeSync(nowhere);
    const input = await open(pipe, "w");
    return { input, monitor: { pid: Number(readFileSync(paths.monitor_pid, "utf8")) } };
  }

  async write(machine: number, lines: readonly string[]): Promise<void> {
    await this.#writers[machine]?.input.write(`${lines.join("\n")}\n`);
  }

  /** Processor seconds of the monitors that still run. */
  monitorsCpu(): number {
    return this.#writers.reduce((sum, { monitor }) => sum + exactCpuSeconds(monitor), 0);
  }

  /** Of what rotates, compresses and searches. */
  cpu(): number {
    return exactCpuSeconds(this.#server);
  }

  async do(asked: Asked): Promise<number> {
    this.#server.stdin?.write(`${JSON.stringify(asked)}\n`);
    const { value } = (await this.#answers.next()) as { value: string };
    return Number(value);
  }

  /** Ends the machines: what they wrote is in their logs afterwards. */
  async endWriters(): Promise<void> {
    for (const { input } of this.#writers) await input.close();
    const exits = this.ids.map((id) => join(pathsOf(this.#layout, id).run, "exit"));
    await until("the machines end", async () => {
      if (!exits.every((file) => existsSync(file))) throw new Error("one still writes");
    });
  }

  async ask({ search, all }: Query): Promise<{ lines: number; cpu_s: number }> {
    const { machine, ...rest } = search;
    const ids = machine === undefined ? [...this.ids] : [machine];
    const before = exactCpuSeconds(this.#server);
    const lines = await this.do({
      do: "search",
      all,
      search: { ...rest, ids, order: "newest", limit: all ? PAGE : NEWEST },
    });
    return { lines, cpu_s: exactCpuSeconds(this.#server) - before };
  }

  async close(): Promise<void> {
    this.#lines.close();
    await end(this.#server);
  }
}

/** Looks ten times a second. */
const AT_REST_LOOKS = 40;

/** The program of VictoriaLogs, if there is one: `HANGAR_VICTORIA_LOGS` names it. */
export function victoriaProgram(): string | undefined {
  const named = process.env["HANGAR_VICTORIA_LOGS"];
  return named ?? (installed("victoria-logs") ? "victoria-logs" : undefined);
}

export class VictoriaLogs implements Asking {
  readonly name = "VictoriaLogs";
  readonly version: string;
  readonly #dir: string;
  readonly #url: string;
  readonly #server: ChildProcess;

  private constructor(program: string, dir: string, port: number) {
    this.#dir = dir;
    this.version = /v\d[\w.+-]*/.exec(spawnSync(program, ["-version"], { encoding: "utf8" }).stdout)?.[0] ?? "unknown";
    this.#url = `http://127.0.0.1:${port}`;
    const args = [
      `-storageDataPath=${dir}`,
      `-httpListenAddr=127.0.0.1:${port}`,
      "-retentionPeriod=10y",
      "-inmemoryDataFlushInterval=1s",
    ];
    this.#server = spawn(program, args, { stdio: "ignore" });
  }

  static async start(program: string, dir: string): Promise<VictoriaLogs> {
    const victoria = new VictoriaLogs(program, dir, await freePort());
    await until("VictoriaLogs", async () => await victoria.#get("/health"));
    return victoria;
  }

  async #get(path: string): Promise<string> {
    const response = await fetch(this.#url + path);
    const answer = await response.text();
    if (!response.ok) throw new Error(answer);
    return answer;
  }

  /** Its processor seconds until the lines are on disk: with JSON as fields, which it is made for. */
  async load(lines: readonly KeptLine[]): Promise<number> {
    const bodies = [];
    for (let at = 0; at < lines.length; at += PAGE)
      bodies.push(
        lines
          .slice(at, at + PAGE)
          .map(rowOf)
          .join("\n"),
      );
    const before = exactCpuSeconds(this.#server);
    const url = `${this.#url}/insert/jsonline?_stream_fields=app,machine&_time_field=_time&_msg_field=_msg`;
    for (const body of bodies) {
      const response = await fetch(url, { method: "POST", body });
      if (!response.ok) throw new Error(await response.text());
    }
    await this.#get("/internal/force_flush");
    await this.#atRest();
    return exactCpuSeconds(this.#server) - before;
  }

  /** Bytes on disk when everything is merged. */
  async bytes(): Promise<number> {
    await this.#get("/internal/force_merge");
    return await this.#atRest();
  }

  /** Its size when that has been the same for longer than it keeps lines in memory. */
  async #atRest(): Promise<number> {
    let size = this.#size();
    let same = 0;
    await until(
      "what it does on its disk ends",
      async () => {
        const now = this.#size();
        same = now === size ? same + 1 : 0;
        size = now;
        if (same < AT_REST_LOOKS) throw new Error("its size still changes");
      },
      600,
    );
    return size;
  }

  #size(): number {
    const files = readdirSync(this.#dir, { recursive: true, withFileTypes: true }).filter((one) => one.isFile());
    return files.reduce(
      (sum, { parentPath, name }) => sum + (statSync(join(parentPath, name), { throwIfNoEntry: false })?.size ?? 0),
      0,
    );
  }

  async ask({ logsql, all }: Query): Promise<{ lines: number; cpu_s: number }> {
    const before = exactCpuSeconds(this.#server);
    const body = new URLSearchParams({ query: logsql, ...(all ? {} : { limit: String(NEWEST) }) });
    const response = await fetch(`${this.#url}/select/logsql/query`, { method: "POST", body });
    const answer = await response.text();
    if (!response.ok) throw new Error(answer);
    const lines = answer.split("\n").filter(Boolean).length;
    return { lines, cpu_s: exactCpuSeconds(this.#server) - before };
  }

  async close(): Promise<void> {
    await end(this.#server);
  }
}

function rowOf({ machine, at, message }: KeptLine): string {
  const common = { _time: at, app: "bench", machine };
  if (message.startsWith("{")) {
    const { msg, time: _, ...fields } = JSON.parse(message) as Record<string, unknown>;
    return JSON.stringify({ ...common, _msg: msg, ...fields });
  }
  const { level } = readMessage(message);
  return JSON.stringify({ ...common, _msg: message, ...(level ? { level } : {}) });
}

/** A file of each machine, compressed as a whole by zstd's own program. */
export class ZstdFiles implements Asking {
  readonly name = "zstd -3, grep";
  readonly version: string;
  readonly #dir: string;

  constructor(dir: string) {
    this.#dir = dir;
    const said = (program: string, pattern: RegExp): string =>
      pattern.exec(spawnSync(program, ["--version"], { encoding: "utf8" }).stdout)?.[0] ?? "";
    this.version = `zstd ${said("zstd", /v[\d.]+/)}, grep ${said("grep", /\d[\d.]+/)}`;
  }

  async load(lines: readonly KeptLine[]): Promise<number> {
    for (const [machine, own] of Map.groupBy(lines, (line) => line.machine))
      writeFileSync(join(this.#dir, `${machine}.log`), own.map(({ at, message }) => `${at} ${message}\n`).join(""));
    return (await this.#run("zstd -3 -q -T1 --rm *.log")).cpu_s;
  }

  async bytes(): Promise<number> {
    return readdirSync(this.#dir).reduce((sum, name) => sum + statSync(join(this.#dir, name)).size, 0);
  }

  async ask({ grep, all }: Query): Promise<{ lines: number; cpu_s: number } | undefined> {
    // The newest of several files are not to be had by a grep alone.
    if (grep === undefined || !all) return undefined;
    const { said, cpu_s } = await this.#run(`for f in *.zst; do zstd -dcq $f | LC_ALL=C grep -cF ${grep}; done`);
    return { lines: said.split("\n").reduce((sum, count) => sum + Number(count), 0), cpu_s };
  }

  /** What the commands say, and the processor time that their shell tells of them. */
  async #run(commands: string): Promise<{ said: string; cpu_s: number }> {
    const shell = spawn("bash", ["-c", `{ ${commands}; } && times >&2; times >&2`], {
      cwd: this.#dir,
      stdio: ["ignore", "pipe", "pipe"],
    });
    const [said, told] = await Promise.all([text(shell.stdout), text(shell.stderr)]);
    // The shell's own time, then its children's: user and system each.
    const seconds = [...told.matchAll(/(\d+)m([\d.]+)s/g)].slice(-2).map(([, m, s]) => Number(m) * 60 + Number(s));
    return { said: said.trim(), cpu_s: seconds.reduce((sum, each) => sum + each, 0) };
  }

  async close(): Promise<void> {}
}
