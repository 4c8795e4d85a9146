/** Processes of this host, by number and beginning: a number alone may be somebody else's by now. */
import { readFileSync } from "node:fs";

/** When a process began, in clock ticks since the host did; undefined when there is none, or it has ended. */
export function startOf(pid: number): string | undefined {
  try {
    const stat = readFileSync(`/proc/${pid}/stat`, "utf8");
    // The name in brackets may hold anything; what is counted comes after it.
    const fields = stat.slice(stat.lastIndexOf(")") + 2).split(" ");
    return fields[0] === "Z" || fields[0] === "X" ? undefined : fields[19];
  } catch {
    return undefined;
  }
}

export const isAlive = (pid: number | undefined, start: string | undefined): boolean =>
  pid !== undefined && start !== undefined && startOf(pid) === start;

/** Sends a signal; false when the process is gone. */
export function kill(pid: number, signal: NodeJS.Signals): boolean {
  try {
    return process.kill(pid, signal);
  } catch (thrown) {
    if ((thrown as NodeJS.ErrnoException).code === "ESRCH") return false;
    throw thrown;
  }
}

/** Names this run of the kernel. */
export const kernelBoot = (): string => readFileSync("/proc/sys/kernel/random/boot_id", "utf8").trim();

/** The number in a file of one; undefined when there is none. */
export function numberIn(file: string): number | undefined {
  try {
    return Number(readFileSync(file, "utf8")) || undefined;
  } catch {
    return undefined;
  }
}
