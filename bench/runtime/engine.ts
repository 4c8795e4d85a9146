/** What a benchmark of engines needs of each of them, and the ways to ask them. */
import { type ChildProcess, spawn } from "node:child_process";
import { once } from "node:events";
import { readdirSync, readFileSync } from "node:fs";
import { text } from "node:stream/consumers";
import { setTimeout as pause } from "node:timers/promises";

/** The same for all: a shell that sleeps until it is told to end. */
export const COMMAND = ["/bin/sh", "-c", 'trap "exit 0" TERM INT; while :; do sleep 1000 & wait; done'];
export const MEMORY_MB = 256;
export const PIDS = 256;

export interface Engine {
  name: string;
  /** In what it differs from the others. */
  note?: string;
  /** Resolves when the machine's process runs. */
  start(id: string): Promise<void>;
  /** Resolves when the process has ended. */
  stop(id: string): Promise<void>;
  /** Whatever is left of it goes. */
  remove(id: string): Promise<void>;
  list(): Promise<unknown>;
  /** The processes that serve all machines. */
  daemons(): number[];
  /** Names of the processes that each machine has beside its own, by what the kernel calls them. */
  shims: readonly string[];
  /** What the command lines of its shims have in them and those of nobody else. */
  mark: string;
  close(): Promise<void>;
}

/** Where an engine keeps its things, and what it runs. */
export interface Ground {
  dir: string;
  rootfs: string;
  /** The same as a tar. */
  tar: string;
}

export interface Peer {
  name: string;
  /** Programs without which it cannot be measured. */
  needs: readonly string[];
  open(ground: Ground): Promise<Engine>;
}

/** Runs a program to its end; what it says on stderr is the error when it fails. */
export async function run(command: string, ...args: string[]): Promise<string> {
  const child = spawn(command, args, { stdio: ["ignore", "pipe", "pipe"] });
  // The end of the program, not of its pipes: a container may hold those open.
  const exited = once(child, "exit") as Promise<[number | null]>;
  const [out, complaint] = [text(child.stdout), text(child.stderr)];
  const [code] = await exited;
  if (code !== 0)
    throw new Error(`${command} ${args.slice(0, 6).join(" ")}: ${(await complaint).trim().slice(0, 300)}`);
  return await Promise.race([out, pause(50).then(() => "")]);
}

/** Runs a program whose children keep its output; nothing of it is read. */
export async function runQuietly(command: string, ...args: string[]): Promise<void> {
  const child = spawn(command, args, { stdio: ["ignore", "ignore", "pipe"] });
  let complaint = "";
  child.stderr.setEncoding("utf8").on("data", (chunk: string) => {
    complaint += chunk;
  });
  const [code] = (await once(child, "exit")) as [number | null];
  if (code !== 0)
    throw new Error(`${command} ${args.slice(0, 6).join(" ")} ended with ${code}: ${complaint.slice(0, 300)}`);
  child.stderr.destroy();
}

/** A daemon in a network namespace of its own, so that what it does to bridges and packet filters stays there. */
export function startApart(command: string, args: readonly string[]): ChildProcess {
  const script = 'ip link set lo up; exec "$@"';
  return spawn("unshare", ["--net", "sh", "-c", script, "sh", command, ...args], { stdio: "ignore" });
}

/** Kilobytes a process has to itself, and its share of what it has together with others. */
export function pssKb(pid: number): number {
  try {
    return Number(/^Pss:\s+(\d+)/m.exec(readFileSync(`/proc/${pid}/smaps_rollup`, "utf8"))?.[1] ?? 0);
  } catch {
    return 0;
  }
}

/** Processes of these names whose command line has `mark` in it. */
export function processesOf(names: readonly string[], mark: string): number[] {
  return readdirSync("/proc")
    .filter((name) => /^\d+$/.test(name))
    .map(Number)
    .filter((pid) => {
      try {
        const name = readFileSync(`/proc/${pid}/comm`, "utf8").trim();
        return names.includes(name) && readFileSync(`/proc/${pid}/cmdline`, "utf8").includes(mark);
      } catch {
        return false;
      }
    });
}
