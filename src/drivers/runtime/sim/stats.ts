/**
 * Made-up numbers of machines that run nothing: each machine has its own pace, counters only rise, gauges sway a
 * little, and the same machine at the same moment always says the same. For dashboards, alerts and tests that need
 * every series and no machine.
 */
import { createHash } from "node:crypto";
import type { Clock } from "#core/clock.ts";
import {
  CPU_MODES,
  DISK_FIELDS,
  type DiskReadings,
  FILESYSTEM_FIELDS,
  type FilesystemReadings,
  fieldsOf,
  MEMORY_FIELDS,
  type MemoryReadings,
  NET_FIELDS,
  type NetReadings,
  type Readings,
  ROOT_DEVICE,
  VOLUME_DEVICE,
} from "#metrics/builtin/fields.ts";
import type { MachineStats, MeasuredMachine } from "#metrics/builtin/sources.ts";

const MIB = 2 ** 20;
const GIB = 2 ** 30;
const BLOCK_BYTES = 4096;

export function simStats({ clock }: { clock: Clock }): MachineStats {
  return { read: async (machine) => readingsOf(new SimReadings(machine, clock.now()), machine) };
}

/** Plausible readings of one machine: numbers between 0 and 1 derived from its id and a name, and its age. */
export class SimReadings {
  readonly #id: string;
  readonly #known = new Map<string, number>();
  /** Seconds since it started. */
  readonly age: number;

  constructor({ id, started_at }: Pick<MeasuredMachine, "id" | "started_at">, now_ms: number) {
    this.#id = id;
    this.age = Math.max(0, (now_ms - started_at) / 1000);
  }

  /** Constant for this machine and name. */
  trait(name: string): number {
    let value = this.#known.get(name);
    if (value === undefined) {
      value = createHash("sha256").update(`${this.#id}\0${name}`).digest().readUInt32LE(0) / 2 ** 32;
      this.#known.set(name, value);
    }
    return value;
  }

  /** A counter that grows by about this much per second, at a varying rate. */
  counter(name: string, per_second: number): number {
    const pace = per_second * (0.5 + this.trait(name));
    const period = 600 + 600 * this.trait(`${name} period`);
    const turn = (2 * Math.PI) / period;
    // The integral of pace × (1 + sin/2), which never falls.
    return Math.floor(pace * (this.age + (1 - Math.cos(this.age * turn)) / (2 * turn)));
  }

  /** A gauge that oscillates around `middle` by a fraction of it. */
  gauge(name: string, middle: number, part: number): number {
    const period = 900 + 900 * this.trait(`${name} period`);
    return middle * (1 + part * Math.sin((2 * Math.PI * this.age) / period + 6 * this.trait(name)));
  }
}

function readingsOf(temper: SimReadings, machine: MeasuredMachine): Readings {
  const busy = 0.05 + 0.4 * temper.trait("busy");
  return {
    memory: memoryOf(temper, machine.memory_mb * MIB),
    load: [1, 5, 15].map((minutes) => round2(temper.gauge("load", busy * machine.cpus, 0.5 / minutes))) as [
      number,
      number,
      number,
    ],
    cpus: Array.from({ length: machine.cpus }, (_, cpu) => processorOf(temper, cpu, busy)),
    cpu_baseline: machine.cpu_kind === "performance" ? machine.cpus : machine.cpus / 4,
    cpu_balance: Math.round(temper.gauge("balance", 5000 * machine.cpus, 0.3)),
    cpu_throttle: temper.counter("throttle", 0.2 * busy),
    disks: {
      [ROOT_DEVICE]: diskOf(temper, ROOT_DEVICE),
      ...(machine.mount ? { [VOLUME_DEVICE]: diskOf(temper, VOLUME_DEVICE) } : {}),
    },
    nets: { eth0: trafficOf(temper), dummy0: fieldsOf(NET_FIELDS, () => 0) },
    files_allocated: Math.round(temper.gauge("files", 200 + 400 * temper.trait("files"), 0.1)),
    files_maximum: 1_048_576,
    filesystems: {
      "/": filesystemOf(temper, "/", 8 * GIB),
      ...(machine.mount ? { [machine.mount.path]: filesystemOf(temper, machine.mount.path, GIB) } : {}),
    },
  };
}

const round2 = (value: number): number => Math.round(value * 100) / 100;
const pages = (bytes: number): number => Math.round(bytes / BLOCK_BYTES) * BLOCK_BYTES;

function memoryOf(temper: SimReadings, total: number): MemoryReadings {
  const used = temper.gauge("used", total * (0.2 + 0.3 * temper.trait("used")), 0.1);
  const cached = temper.gauge("cached", total * 0.25, 0.1);
  const buffers = total * 0.02;
  const parts: Partial<MemoryReadings> = {
    mem_total: total,
    mem_free: total - used - cached - buffers,
    mem_available: total - used,
    buffers,
    cached,
    active: used * 0.7 + cached * 0.4,
    inactive: used * 0.3 + cached * 0.6,
    dirty: temper.gauge("dirty", 0.001 * total, 0.9),
    slab: 0.03 * total,
    shmem: 0.005 * total,
    vmalloc_total: 2 ** 45,
    vmalloc_used: 0.01 * total,
  };
  return fieldsOf(MEMORY_FIELDS, (field) => pages(parts[field] ?? 0));
}

function processorOf(temper: SimReadings, cpu: number, busy: number): Readings["cpus"][number] {
  const used = {
    user: temper.counter(`user ${cpu}`, 70 * busy),
    system: temper.counter(`system ${cpu}`, 25 * busy),
    iowait: temper.counter(`iowait ${cpu}`, 2 * busy),
    softirq: temper.counter(`softirq ${cpu}`, busy),
    steal: temper.counter(`steal ${cpu}`, 0.3 * busy),
  };
  const idle = Math.max(0, Math.floor(temper.age * 100) - Object.values(used).reduce((sum, part) => sum + part, 0));
  const modes: Partial<Record<string, number>> = { ...used, idle };
  return fieldsOf(CPU_MODES, (mode) => modes[mode] ?? 0);
}

function diskOf(temper: SimReadings, device: string): DiskReadings {
  const reads = temper.counter(`${device} reads`, 2);
  const writes = temper.counter(`${device} writes`, 6);
  const parts: Partial<DiskReadings> = {
    reads_completed: reads,
    reads_merged: Math.floor(reads / 10),
    sectors_read: reads * 16,
    time_reading: Math.floor(reads / 3),
    writes_completed: writes,
    writes_merged: Math.floor(writes / 2),
    sectors_written: writes * 24,
    time_writing: writes,
    time_io: Math.floor((reads + writes) * 0.6),
    time_io_weighted: Math.floor((reads + writes) * 1.2),
  };
  return fieldsOf(DISK_FIELDS, (field) => parts[field] ?? 0);
}

function trafficOf(temper: SimReadings): NetReadings {
  const received = temper.counter("received", 40);
  const sent = temper.counter("sent", 45);
  const parts: Partial<NetReadings> = {
    recv_bytes: received * 420,
    recv_packets: received,
    sent_bytes: sent * 900,
    sent_packets: sent,
  };
  return fieldsOf(NET_FIELDS, (field) => parts[field] ?? 0);
}

function filesystemOf(temper: SimReadings, mount: string, bytes: number): FilesystemReadings {
  const blocks = bytes / BLOCK_BYTES;
  const free = Math.round(temper.gauge(`free ${mount}`, blocks * (0.4 + 0.4 * temper.trait(mount)), 0.02));
  const parts: FilesystemReadings = {
    blocks,
    block_size: BLOCK_BYTES,
    blocks_free: free,
    blocks_avail: Math.max(0, free - Math.round(blocks * 0.05)),
  };
  return fieldsOf(FILESYSTEM_FIELDS, (field) => parts[field]);
}
