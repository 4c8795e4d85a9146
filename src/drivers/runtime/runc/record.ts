/** The driver's record of a machine, stored in its folder. The kernel is authoritative about what runs. */
import {
  closeSync,
  existsSync,
  fsyncSync,
  mkdirSync,
  openSync,
  readdirSync,
  readFileSync,
  renameSync,
  rmSync,
  writeFileSync,
} from "node:fs";
import { dirname } from "node:path";
import type { EgressPolicy } from "#core/egress-policy.ts";
import type { Exit, Launch, Started } from "#machines/runtime/driver.ts";
import type { Handle } from "#machines/types.ts";
import { LONE_BLOCK, machineIpv4 } from "#network/ipv4-blocks.ts";
import type { SealedMemory } from "../../freeze/sealed-memory.ts";
import { type Layout, pathsOf } from "./layout.ts";
import { indexOf } from "./uid-blocks.ts";

export interface MachineRecord {
  id: string;
  boot: string;
  /**
   * `starting` and `resuming` are intents: after a crash their effects are removed. `suspending` may have succeeded or
   * not. `frozen`: memory on disk; `paused`: processes frozen in memory; `exited`: nothing runs.
   */
  state: "starting" | "running" | "suspending" | "frozen" | "paused" | "resuming" | "exited";
  /** First of the 65536 host ids that map to the machine's 0 to 65535. */
  uid_base: number;
  /** Host pid and start time of process 1, which detect a reused pid. */
  pid?: number;
  pid_start?: string;
  /** Kernel boot in which it ran. */
  kernel_boot?: string;
  exit?: Exit;
  /** Program of its first own process. */
  program?: string;
  /** The image's working directory, where `exec` and terminals begin; the root in old records. */
  folder?: string;
  private_ip: string;
  /** The block of its IPv4 address; local to this host when absent. */
  ipv4_block?: number;
  /** Config version when this boot began, which wrote the root disk. */
  version?: string;
  layers: readonly string[];
  /** Last applied egress policy; absent (all) in old records. */
  egress?: EgressPolicy;
  volume?: { id: string; device?: string };
  /** Booted with a cgroup namespace; false in old records. A resume needs the same. */
  own_cgroup?: boolean;
  /** Booted in an outer cgroup that the fence freezes. A resume needs the same. */
  enclosed?: boolean;
  /** Booted with lxcfs files over those of its /proc. */
  lxcfs?: boolean;
  /** Booted with a SQLite node of this version's files. A resume needs the same. */
  sqlite_node?: string;
  /** Of a frozen machine: how its memory images were made. */
  snapshot?: Snapshot;
  /** Of a paused machine: cgroup values to restore. */
  paused?: { swap_max?: string };
}

export interface Snapshot {
  criu: string;
  runc: string;
  /** Privileges of each process, which must not grow at a resume. */
  confined: Record<string, string>;
  /** Ports that accepted connections, to be checked after a resume. */
  ports: readonly number[];
  /** Absent while it is being written. */
  sealed?: SealedMemory;
}

/** The record contains all that identifies a boot; the handle shows its process. */
export const handleOf = ({ boot, pid, pid_start }: MachineRecord): Handle => ({ boot, pid, pid_start });

export const ipv4Of = ({ uid_base, ipv4_block = LONE_BLOCK }: Pick<MachineRecord, "uid_base" | "ipv4_block">): string =>
  machineIpv4(ipv4_block, indexOf(uid_base));

export const startedOf = (record: MachineRecord): Started => ({
  handle: handleOf(record),
  private_ipv4: ipv4Of(record),
});

/**
 * Undefined when there is none, or one torn by a power cut: then nothing of it runs, and its directory is removed. So
 * an existing but unreadable record is an error.
 */
export function readRecord(layout: Layout, id: string): MachineRecord | undefined {
  try {
    return JSON.parse(readFileSync(pathsOf(layout, id).record, "utf8")) as MachineRecord;
  } catch (thrown) {
    if (thrown instanceof SyntaxError || (thrown as NodeJS.ErrnoException).code === "ENOENT") return undefined;
    throw thrown;
  }
}

/**
 * Writes atomically. `durable` syncs it; otherwise that is not needed, because what the record describes ends with the
 * kernel too.
 */
export function writeRecord(layout: Layout, record: MachineRecord, durable = false): MachineRecord {
  const file = pathsOf(layout, record.id).record;
  mkdirSync(dirname(file), { recursive: true, mode: 0o700 });
  writeFileSync(`${file}.new`, JSON.stringify(record), { mode: 0o600, flush: durable });
  renameSync(`${file}.new`, file);
  if (durable) {
    const folder = openSync(dirname(file), "r");
    fsyncSync(folder);
    closeSync(folder);
  }
  return record;
}

/**
 * Removes the machine's directory with the record. A part may be removed concurrently (`discard`), which makes Node
 * stop silently: so this repeats until it is removed.
 */
export function removeRecord(layout: Layout, id: string): void {
  const { dir } = pathsOf(layout, id);
  do rmSync(dir, { recursive: true, force: true });
  while (existsSync(dir));
}

/** Whether this boot keeps the root disk of the previous one. Old records do not name its version. */
export function keeps({ keep_rootfs, instance_id }: Launch, before: MachineRecord | undefined): boolean {
  return keep_rootfs === "version" ? (before?.version ?? instance_id) === instance_id : keep_rootfs;
}

/** Ids of all machines with any files. */
export function knownIds(layout: Layout): string[] {
  const names = [layout.machines, layout.containers, layout.runc].flatMap((dir) => {
    try {
      return readdirSync(dir);
    } catch {
      return [];
    }
  });
  return [...new Set(names)];
}
