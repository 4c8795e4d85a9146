/** What the driver knows about a machine, kept in its folder. The kernel has the last word on what runs. */
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
   * `starting` and `resuming` are intents: when we find one after a crash, what it made is taken away. `suspending` may
   * have gone either way. In `frozen` its memory is on the disk, in `paused` its processes are frozen where they are. In
   * `exited` nothing runs.
   */
  state: "starting" | "running" | "suspending" | "frozen" | "paused" | "resuming" | "exited";
  /** First of the 65536 ids on this host that are the machine's 0 to 65535. */
  uid_base: number;
  /** Process 1 as this host numbers it, and when it began, in clock ticks: a number that is used again is another process. */
  pid?: number;
  pid_start?: string;
  /** Which run of this host's kernel that was. */
  kernel_boot?: string;
  exit?: Exit;
  /** What its first own process runs. */
  program?: string;
  private_ip: string;
  /** Which block its IPv4 address is from; this host's alone when left out. */
  ipv4_block?: number;
  /** Of the machine's config, when this boot began: whose root disk it is. */
  version?: string;
  layers: readonly string[];
  /** What it may reach, as it was told last; all in records from before there were policies. */
  egress?: EgressPolicy;
  volume?: { id: string; device?: string };
  /** Booted with a cgroup namespace; without in records from before there was one. A resume needs the same. */
  own_cgroup?: boolean;
  /** Booted inside a cgroup that the fence freezes. A resume needs the same. */
  enclosed?: boolean;
  /** Booted with files of lxcfs over those of its /proc. */
  lxcfs?: boolean;
  /** A frozen machine: what made its memory images. */
  snapshot?: Snapshot;
  /** A paused one: what its cgroup is given back when it goes on. */
  paused?: { swap_max?: string };
}

export interface Snapshot {
  criu: string;
  runc: string;
  /** How each process was confined; it must be as strict after a resume. */
  confined: Record<string, string>;
  /** Ports that answered, so that it can be seen that they do again. */
  ports: readonly number[];
  /** Left out while it is being made. */
  sealed?: SealedMemory;
}

/** What finds a boot again is all in the record; the handle shows which process it was. */
export const handleOf = ({ boot, pid, pid_start }: MachineRecord): Handle => ({ boot, pid, pid_start });

export const ipv4Of = ({ uid_base, ipv4_block = LONE_BLOCK }: Pick<MachineRecord, "uid_base" | "ipv4_block">): string =>
  machineIpv4(ipv4_block, indexOf(uid_base));

export const startedOf = (record: MachineRecord): Started => ({
  handle: handleOf(record),
  private_ipv4: ipv4Of(record),
});

/**
 * Undefined when there is none, or one that was torn by a power cut: then nothing of it runs either, and its folder is
 * cleared away. So one that is there and cannot be read is a failure, not undefined.
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
 * All or nothing. `durable` is for what must be there after a power cut; for everything else the kernel's memory is
 * enough, because what the record speaks of ends with the kernel too.
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
 * The record, and with it the machine's folder. A part of that may be going just then (`discard`), and when a part is
 * gone before its turn Node takes the whole for gone, and says nothing: so it is asked for until it is.
 */
export function removeRecord(layout: Layout, id: string): void {
  const { dir } = pathsOf(layout, id);
  do rmSync(dir, { recursive: true, force: true });
  while (existsSync(dir));
}

/** Whether the root disk of the boot before is this one's too. Who wrote it is not known of machines from long ago. */
export function keeps({ keep_rootfs, instance_id }: Launch, before: MachineRecord | undefined): boolean {
  return keep_rootfs === "version" ? (before?.version ?? instance_id) === instance_id : keep_rootfs;
}

/** Ids of every machine of which there is anything. */
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
