/** The programs that a benchmark runs: whether they are there, when they answer, what they have used, how they end. */
import { type ChildProcess, execFileSync, spawnSync } from "node:child_process";
import { once } from "node:events";
import { readdirSync, readFileSync } from "node:fs";
import { createInterface } from "node:readline";
import { setTimeout as pause } from "node:timers/promises";
import { messageOf } from "#core/assert.ts";

const TICKS = Number(execFileSync("getconf", ["CLK_TCK"], { encoding: "utf8" }));
/** What does not end when it is asked to is ended. */
const END_MS = 15_000;

export const installed = (name: string): boolean => spawnSync("which", [name], { stdio: "ignore" }).status === 0;

/** Tries until it works. */
export async function until(what: string, ready: () => Promise<unknown>, tries = 300): Promise<void> {
  for (let tried = 1; ; tried++) {
    try {
      await ready();
      return;
    } catch (thrown) {
      if (tried >= tries) throw new Error(`${what} did not come up: ${messageOf(thrown)}`, { cause: thrown });
      await pause(100);
    }
  }
}

/** The next line that a program says. */
export async function nextLine({ stdout }: ChildProcess): Promise<string> {
  if (!stdout) throw new Error("the program says nothing");
  const lines = createInterface({ input: stdout });
  const [line] = (await once(lines, "line")) as [string];
  lines.close();
  return line;
}

export async function end(child: ChildProcess): Promise<void> {
  if (child.exitCode !== null || child.signalCode !== null) return;
  const exited = once(child, "exit");
  child.kill("SIGTERM");
  const late = setTimeout(() => child.kill("SIGKILL"), END_MS);
  await exited;
  clearTimeout(late);
}

/** Of all threads of a process, those that ended among them, and of its children that ended. */
export function cpuSeconds({ pid }: Pick<ChildProcess, "pid">): number {
  const stat = readFileSync(`/proc/${pid}/stat`, "utf8");
  const fields = stat.slice(stat.lastIndexOf(")") + 2).split(" ");
  return [11, 12, 13, 14].reduce((sum, field) => sum + Number(fields[field]), 0) / TICKS;
}

/** To the nanosecond, for what takes milliseconds; of threads that ended meanwhile nothing is known. */
export function exactCpuSeconds({ pid }: Pick<ChildProcess, "pid">): number {
  const threads = readdirSync(`/proc/${pid}/task`).map((id) => {
    try {
      return Number(readFileSync(`/proc/${pid}/task/${id}/schedstat`, "utf8").split(" ")[0]);
    } catch {
      return 0;
    }
  });
  return threads.reduce((sum, ns) => sum + ns, 0) / 1e9;
}

export function residentBytes({ pid }: Pick<ChildProcess, "pid">): number {
  return Number(/VmRSS:\s+(\d+)/.exec(readFileSync(`/proc/${pid}/status`, "utf8"))?.[1]) * 1024;
}
