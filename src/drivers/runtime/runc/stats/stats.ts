/**
 * Statistics of a machine as its own /proc would show them, computed from its cgroup, processes, network namespace and
 * loop devices. Inside a container /proc shows the host; this does not.
 */
import { readdirSync, readFileSync } from "node:fs";
import { statfs } from "node:fs/promises";
import type { Clock } from "#core/clock.ts";
import {
  CPU_MODES,
  type CpuReadings,
  type FilesystemReadings,
  fieldsOf,
  NET_FIELDS,
  type NetReadings,
  type Readings,
} from "#metrics/builtin/fields.ts";
import type { MachineStats, MeasuredMachine } from "#metrics/builtin/sources.ts";
import { cgroupDirs, oomKills, processesIn } from "../cgroup.ts";
import { type Layout, layoutOf, pathsOf } from "../layout.ts";
import { readRecord } from "../record.ts";
import { cpuUse, memoryOf, pressureOf } from "./cgroup-stats.ts";
import { disksOf } from "./disk-stats.ts";

interface Options {
  data_dir: string;
  node_id: string;
  clock: Clock;
}

export function openRuncStats({ data_dir, node_id, clock }: Options): MachineStats {
  return new RuncStats(layoutOf(data_dir, node_id), clock);
}

/** The previous reading, for rates. */
interface Before {
  boot: string;
  at: number;
  used_cs: number;
  load: [number, number, number];
  balance: number;
}

/** Maximum CPU credit of a machine, in seconds of its baseline. */
const BALANCE_SECONDS = 60;

class RuncStats implements MachineStats {
  readonly #layout: Layout;
  readonly #clock: Clock;
  readonly #before = new Map<string, Before>();

  constructor(layout: Layout, clock: Clock) {
    this.#layout = layout;
    this.#clock = clock;
  }

  async read(machine: MeasuredMachine): Promise<Readings | undefined> {
    const record = readRecord(this.#layout, machine.id);
    if (record?.pid === undefined || record.boot !== machine.boot || record.state !== "running") {
      this.#before.delete(machine.id);
      return undefined;
    }
    const paths = pathsOf(this.#layout, machine.id);
    const dirs = cgroupDirs(paths.cgroup);
    const pids = processesIn(paths.cgroup);
    const { user_cs, system_cs, throttled_cs } = cpuUse(dirs);
    const baseline = machine.cpu_kind === "performance" ? machine.cpus : machine.cpus / SHARED_PART;
    const { load, balance } = this.#follow(machine, user_cs + system_cs, baseline, waiting(pids));
    return {
      memory: memoryOf(dirs, machine.memory_mb * 2 ** 20),
      load,
      cpus: this.#processors(machine, { user: user_cs, system: system_cs, steal: throttled_cs }),
      cpu_baseline: baseline,
      cpu_balance: Math.round(balance),
      cpu_throttle: throttled_cs,
      pressure: pressureOf(dirs),
      oom_kills: oomKills(paths.cgroup),
      disks: disksOf(record, paths),
      nets: { eth0: trafficOf(record.pid), dummy0: fieldsOf(NET_FIELDS, () => 0) },
      files_allocated: pids.reduce((sum, pid) => sum + openFiles(pid), 0),
      files_maximum: fileLimit(record.pid),
      filesystems: {
        "/": await filesystemOf(paths.upper),
        ...(machine.mount && record.volume ? { [machine.mount.path]: await filesystemOf(paths.volume) } : {}),
      },
    };
  }

  /** A cgroup has no per-CPU usage, so it is spread evenly over the machine's CPUs. */
  #processors({ cpus, started_at }: MeasuredMachine, used: Pick<CpuReadings, "user" | "system" | "steal">) {
    const elapsed_cs = Math.max(0, (this.#clock.now() - started_at) / 10);
    const part = (total: number): number => Math.floor(total / cpus);
    const busy = part(used.user) + part(used.system) + part(used.steal);
    const modes: Partial<CpuReadings> = {
      user: part(used.user),
      system: part(used.system),
      steal: part(used.steal),
      idle: Math.max(0, Math.floor(elapsed_cs) - busy),
    };
    const one = fieldsOf(CPU_MODES, (mode) => modes[mode] ?? 0);
    return Array.from({ length: cpus }, () => one);
  }

  /** Load average over 1, 5 and 15 minutes from running and disk-waiting processes, and CPU credit. */
  #follow({ id, boot }: MeasuredMachine, used_cs: number, baseline: number, blocked: number): Before {
    const now = this.#clock.monotonic();
    const most = baseline * 100 * BALANCE_SECONDS;
    let before = this.#before.get(id);
    if (before?.boot !== boot) before = { boot, at: now, used_cs, load: [0, 0, 0], balance: most };
    const seconds = (now - before.at) / 1000;
    const spent_cs = Math.max(0, used_cs - before.used_cs);
    const active = (seconds > 0 ? spent_cs / 100 / seconds : 0) + blocked;
    const faded = ([1, 5, 15] as const).map((minutes, i) => {
      const keep = Math.exp(-seconds / (60 * minutes));
      return Math.round(((before.load[i] ?? 0) * keep + active * (1 - keep)) * 1000) / 1000;
    }) as [number, number, number];
    const balance = Math.min(most, Math.max(0, before.balance + seconds * baseline * 100 - spent_cs));
    const seen = { boot, at: now, used_cs, load: faded, balance };
    this.#before.set(id, seen);
    return seen;
  }
}

/** A shared CPU weighs a quarter of a dedicated one. */
const SHARED_PART = 4;

function read(file: string): string {
  try {
    return readFileSync(file, "utf8");
  } catch {
    return "";
  }
}

/** Processes in uninterruptible disk wait. */
function waiting(pids: readonly number[]): number {
  return pids.filter((pid) => /\) D /.test(read(`/proc/${pid}/stat`))).length;
}

function openFiles(pid: number): number {
  try {
    return readdirSync(`/proc/${pid}/fd`).length;
  } catch {
    return 0;
  }
}

function fileLimit(pid: number): number {
  return Number(/^Max open files\s+\d+\s+(\d+)/m.exec(read(`/proc/${pid}/limits`))?.[1] ?? 0);
}

function trafficOf(pid: number): NetReadings {
  const line = /^\s*eth0:(.*)$/m.exec(read(`/proc/${pid}/net/dev`))?.[1] ?? "";
  const numbers = line.trim().split(/\s+/).map(Number);
  return fieldsOf(NET_FIELDS, (_, i) => numbers[i] ?? 0);
}

async function filesystemOf(dir: string): Promise<FilesystemReadings> {
  const { blocks, bsize, bfree, bavail } = await statfs(dir);
  return { blocks, block_size: bsize, blocks_free: bfree, blocks_avail: bavail };
}
