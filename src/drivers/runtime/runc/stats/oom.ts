/**
 * OOM kills of a machine. The cgroup counts the kills; the kernel's log has the name, the time, and whether the
 * machine's memory was full or the host's.
 */
import { closeSync, constants, openSync, readSync } from "node:fs";
import { oomKills } from "../cgroup.ts";

export interface OomKill {
  process: string;
  memory: "machine" | "host";
  /** Microseconds on the kernel's clock. */
  at_us: number;
}

/** A program whose worker was OOM-killed exits soon after because of it. A later exit has other reasons. */
const CAUSE_US = 10_000_000;
/** A shell's exit code, and so process 1's, for SIGKILL. */
const KILLED = 137;

export interface Ended {
  cgroup: string;
  code: number;
  /** How long ago the exit was. */
  ago_ms: number;
  /** Its program, when the kernel log has no name. */
  program?: string | undefined;
}

/** Whether a machine ended because of an OOM kill, and what was killed; undefined otherwise. */
export function oomOf(
  { cgroup, code, ago_ms, program = "its program" }: Ended,
  log = (): string[] => kernelLog(),
): Pick<OomKill, "process" | "memory"> | undefined {
  if (code === 0 || oomKills(cgroup) === 0) return undefined;
  const kill = lastKill(log(), cgroup);
  if (!kill) return code === KILLED ? { process: program, memory: "machine" } : undefined;
  const ended_us = Number(process.hrtime.bigint() / 1000n) - ago_ms * 1000;
  const { at_us, ...cause } = kill;
  return ended_us - at_us < CAUSE_US ? cause : undefined;
}

/** As the kernel writes it: `3,1234,567890,-;oom-kill:constraint=…,task_memcg=/…,task=python3,pid=42,uid=0`. */
const RECORD = /^\d+,\d+,(\d+),[^;]*;oom-kill:constraint=(\w+),.*?,task_memcg=([^,]*),task=(.*),pid=\d+,uid=\d+/;

export function lastKill(records: readonly string[], cgroup: string): OomKill | undefined {
  for (const record of records.toReversed()) {
    const [, at, constraint, path = "", name = ""] = RECORD.exec(record) ?? [];
    // In a container the host's path has a prefix.
    if (!path.endsWith(cgroup)) continue;
    return { process: name, memory: constraint === "CONSTRAINT_MEMCG" ? "machine" : "host", at_us: Number(at) };
  }
  return undefined;
}

/** Maximum size of a record. */
const RECORD_BYTES = 8192;

/** Records of the kernel log, oldest first; empty when it cannot be read. */
function kernelLog(file = "/dev/kmsg"): string[] {
  let fd: number;
  try {
    fd = openSync(file, constants.O_RDONLY | constants.O_NONBLOCK);
  } catch {
    return [];
  }
  const records: string[] = [];
  const buffer = Buffer.alloc(RECORD_BYTES);
  try {
    for (;;) {
      const record = nextRecord(fd, buffer);
      if (record === undefined) return records;
      if (record.includes("oom-kill:")) records.push(record);
    }
  } finally {
    closeSync(fd);
  }
}

/** Each read returns one record. Undefined after the last. */
function nextRecord(fd: number, buffer: Buffer): string | undefined {
  try {
    const bytes = readSync(fd, buffer);
    return bytes === 0 ? undefined : buffer.toString("utf8", 0, bytes);
  } catch (thrown) {
    // EPIPE: the next record was overwritten; the following read continues after it.
    return (thrown as NodeJS.ErrnoException).code === "EPIPE" ? "" : undefined;
  }
}
