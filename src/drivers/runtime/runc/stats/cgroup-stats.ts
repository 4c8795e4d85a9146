/** Memory and CPU statistics of a cgroup, with the same field names for both cgroup versions. */
import { readFileSync } from "node:fs";
import { join } from "node:path";
import { fieldsOf, MEMORY_FIELDS, type MemoryReadings, PRESSURES, type Readings } from "#metrics/builtin/fields.ts";

type Dirs = Readonly<Record<string, string>>;
type Numbers = Readonly<Record<string, number>>;

/** `name number` lines. */
function table(dir: string | undefined, file: string): Numbers {
  const pairs = text(dir, file)
    .split("\n")
    .map((line) => line.split(/:?\s+/))
    .filter(([name, value]) => name && value);
  return Object.fromEntries(pairs.map(([name, value]): [string, number] => [name ?? "", Number(value)]));
}

function text(dir: string | undefined, file: string): string {
  if (dir === undefined) return "";
  try {
    return readFileSync(join(dir, file), "utf8");
  } catch {
    return "";
  }
}

/** "max", or a limit above any machine's, is undefined. */
function number(dir: string | undefined, file: string): number {
  const value = Number(text(dir, file).trim() || Number.NaN);
  return value < 2 ** 60 ? value : Number.NaN;
}

const CENTISECOND_NS = 1e7;
const CENTISECOND_US = 1e4;

/**
 * CPU time of the cgroup in centiseconds. In v1 from `cpuacct.stat`, whose parts add up; `cpuacct.usage_user` and
 * `_sys` count ticks and omit steal time.
 */
export function cpuUse({ cpuacct, cpu, unified }: Dirs): { user_cs: number; system_cs: number; throttled_cs: number } {
  if (cpuacct !== undefined) {
    const { user = 0, system = 0 } = table(cpuacct, "cpuacct.stat");
    return {
      user_cs: user,
      system_cs: system,
      throttled_cs: Math.floor((table(cpu, "cpu.stat")["throttled_time"] ?? 0) / CENTISECOND_NS),
    };
  }
  const stat = table(unified, "cpu.stat");
  const centiseconds = (name: string): number => Math.floor((stat[name] ?? 0) / CENTISECOND_US);
  return {
    user_cs: centiseconds("user_usec"),
    system_cs: centiseconds("system_usec"),
    throttled_cs: centiseconds("throttled_usec"),
  };
}

/**
 * Pressure stall information in centiseconds, which only cgroup v2 (also on hybrid hosts) has. Empty where the kernel
 * lacks it.
 */
export function pressureOf({ unified }: Dirs): NonNullable<Readings["pressure"]> {
  const found = PRESSURES.map((resource) => {
    // `some avg10=0.00 avg60=0.00 avg300=0.00 total=1234`, in microseconds; `full` below it.
    const lines = text(unified, `${resource}.pressure`).matchAll(/^(some|full) .*total=(\d+)$/gm);
    const waited = [...lines].map(
      ([, kind = "", total]) => [kind, Math.floor(Number(total) / CENTISECOND_US)] as const,
    );
    return [resource, Object.fromEntries(waited)] as const;
  });
  return Object.fromEntries(found.filter(([, waited]) => Object.keys(waited).length > 0));
}

/** The same values under the names of both versions; v1 includes children in `total_` fields. */
interface MemoryFacts {
  limit: number;
  usage: number;
  swap_limit: number;
  swap_used: number;
  stat(first: string, second: string): number;
  slab: number;
}

function factsOf({ memory, unified }: Dirs, total: number): MemoryFacts {
  const or = (value: number, otherwise: number): number => (Number.isNaN(value) ? otherwise : value);
  if (memory !== undefined) {
    const stat = table(memory, "memory.stat");
    const limit = or(number(memory, "memory.limit_in_bytes"), total);
    const both = or(number(memory, "memory.memsw.limit_in_bytes"), limit);
    return {
      limit,
      usage: or(number(memory, "memory.usage_in_bytes"), 0),
      swap_limit: Math.max(0, both - limit),
      swap_used: stat["total_swap"] ?? 0,
      stat: (first) => stat[`total_${first}`] ?? 0,
      slab: or(number(memory, "memory.kmem.usage_in_bytes"), 0),
    };
  }
  const stat = table(unified, "memory.stat");
  return {
    limit: or(number(unified, "memory.max"), total),
    usage: or(number(unified, "memory.current"), 0),
    swap_limit: or(number(unified, "memory.swap.max"), 0),
    swap_used: or(number(unified, "memory.swap.current"), 0),
    stat: (_, second) => stat[second] ?? 0,
    slab: stat["slab"] ?? 0,
  };
}

const HOST_KIB = 1024;

/** The machine's /proc/meminfo from its cgroup; `total` where there is no limit. */
export function memoryOf(dirs: Dirs, total: number): MemoryReadings {
  const { limit, usage, swap_limit, swap_used, stat, slab } = factsOf(dirs, total);
  const cached = stat("cache", "file");
  const inactive_file = stat("inactive_file", "inactive_file");
  const free = Math.max(0, limit - usage);
  const parts: Partial<MemoryReadings> = {
    mem_total: limit,
    mem_free: free,
    // Memory that can be reclaimed easily.
    mem_available: Math.min(limit, free + inactive_file),
    cached,
    active: stat("active_anon", "active_anon") + stat("active_file", "active_file"),
    inactive: stat("inactive_anon", "inactive_anon") + inactive_file,
    swap_total: swap_limit,
    swap_free: Math.max(0, swap_limit - swap_used),
    dirty: stat("dirty", "file_dirty"),
    writeback: stat("writeback", "file_writeback"),
    slab,
    shmem: stat("shmem", "shmem"),
    // The kernel's own address space, shared by all machines.
    vmalloc_total: (table("/proc", "meminfo")["VmallocTotal"] ?? 0) * HOST_KIB,
  };
  return fieldsOf(MEMORY_FIELDS, (field) => parts[field] ?? 0);
}
