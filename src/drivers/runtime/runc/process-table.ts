/** Processes of this host, by pid and start time: a pid alone may have been reused. */
import { readdirSync, readFileSync } from "node:fs";

/** Fields of a `stat` file from the state on. The name in brackets may contain anything, so parsing starts after it. */
function statFields(file: string): string[] {
  const stat = readFileSync(file, "utf8");
  return stat.slice(stat.lastIndexOf(")") + 2).split(" ");
}

/** Start time of a process in clock ticks since boot; undefined when it has ended. */
export function startOf(pid: number): string | undefined {
  try {
    const fields = statFields(`/proc/${pid}/stat`);
    return fields[0] === "Z" || fields[0] === "X" ? undefined : fields[19];
  } catch {
    return undefined;
  }
}

/**
 * CPU time of a process in ticks, and whether a thread is runnable now; undefined when it has ended. Distinguishes a
 * starved process from a hanging one.
 */
export function workOf(pid: number): { ticks: number; is_runnable: boolean } | undefined {
  const of_process = fieldsIfThere(`/proc/${pid}/stat`);
  if (!of_process) return undefined;
  const threads = threadsOf(pid).map((thread) => fieldsIfThere(`/proc/${pid}/task/${thread}/stat`)?.[0]);
  return { ticks: Number(of_process[11]) + Number(of_process[12]), is_runnable: threads.includes("R") };
}

/** Threads may end meanwhile. */
function fieldsIfThere(file: string): string[] | undefined {
  try {
    return statFields(file);
  } catch {
    return undefined;
  }
}

function threadsOf(pid: number): string[] {
  try {
    return readdirSync(`/proc/${pid}/task`);
  } catch {
    return [];
  }
}

export const isAlive = (pid: number | undefined, start: string | undefined): boolean =>
  pid !== undefined && start !== undefined && startOf(pid) === start;

/** Sends a signal; returns false when the process has ended. */
export function kill(pid: number, signal: NodeJS.Signals): boolean {
  try {
    return process.kill(pid, signal);
  } catch (thrown) {
    if ((thrown as NodeJS.ErrnoException).code === "ESRCH") return false;
    throw thrown;
  }
}

/** Identifies the current boot of the kernel. */
export const kernelBoot = (): string => readFileSync("/proc/sys/kernel/random/boot_id", "utf8").trim();

/** Reads a number from a file; undefined when there is none. */
export function numberIn(file: string): number | undefined {
  try {
    return Number(readFileSync(file, "utf8")) || undefined;
  } catch {
    return undefined;
  }
}
