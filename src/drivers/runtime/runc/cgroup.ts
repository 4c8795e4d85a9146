/** A machine's cgroup, in either version: version 1 has a tree per controller, version 2 one for all. */
import { existsSync, readdirSync, readFileSync, rmdirSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { parseCpuList } from "./cpu-placement.ts";

const ROOT = "/sys/fs/cgroup";

/** Directories of a cgroup by controller; cgroup v2 has the one name `unified`. */
export function cgroupDirs(path: string): Record<string, string> {
  return Object.fromEntries(hierarchies().map(([name, mount]) => [name, join(mount, path)]));
}

let known: [string, string][] | undefined;

/** Mounted hierarchies. On a hybrid host v2 has no controllers but must be cleaned up too. */
function hierarchies(): [string, string][] {
  known ??= readFileSync("/proc/self/mountinfo", "utf8")
    .split("\n")
    .flatMap((line): [string, string][] => {
      const [before = "", after = ""] = line.split(" - ");
      const mount = before.split(" ")[4] ?? "";
      const [type, , options = ""] = after.split(" ");
      if (!mount.startsWith(ROOT)) return [];
      if (type === "cgroup2") return [["unified", mount]];
      if (type !== "cgroup") return [];
      return options.split(",").flatMap((name): [string, string][] => (CONTROLLERS.has(name) ? [[name, mount]] : []));
    });
  return known;
}

const CONTROLLERS = new Set(
  "cpu cpuacct cpuset memory pids devices freezer blkio net_cls net_prio hugetlb perf_event rdma misc name=systemd".split(
    " ",
  ),
);

/** Kernels without swap accounting limit memory only. */
export function canLimitSwap(): boolean {
  const { memory } = cgroupDirs("");
  return memory === undefined || existsSync(join(memory, "memory.memsw.limit_in_bytes"));
}

/** Why machines have no swap on this host, or undefined. Swap belongs to the host: a cgroup may only use part of it. */
export function swapProblem(swaps = readFileSync("/proc/swaps", "utf8")): string | undefined {
  if (swaps.trim().split("\n").length < 2) return "the host has no swap (swapon --show lists none)";
  return canLimitSwap() ? undefined : "the host's kernel does not account swap (boot it with swapaccount=1)";
}

/** Whether cgroup v2 has the controllers. */
export const isUnified = (): boolean => cgroupDirs("")["memory"] === undefined;

/** Whether this host can pin a cgroup to CPUs. */
export function canPinCpus(): boolean {
  const { cpuset, unified } = cgroupDirs("");
  if (cpuset) return true;
  return (unified && read(join(unified, "cgroup.controllers")))?.split(/\s+/).includes("cpuset") ?? false;
}

const cpusetFile = (path: string): string => {
  const { cpuset, unified = "" } = cgroupDirs(path);
  return join(cpuset ?? unified, "cpuset.cpus");
};

/** The CPUs it is pinned to. */
export const pinnedCpus = (path: string): number[] => parseCpuList(read(cpusetFile(path)) ?? "");

/** Pins it to other CPUs; false when it does not exist any more. */
export function pinCpus(path: string, cpus: readonly number[]): boolean {
  try {
    writeFileSync(cpusetFile(path), cpus.join(","));
    return true;
  } catch {
    return false;
  }
}

/** Every process in it. */
export function processesIn(path: string): number[] {
  const found = new Set<number>();
  for (const dir of new Set(Object.values(cgroupDirs(path)))) {
    for (const pid of (read(join(dir, "cgroup.procs")) ?? "").split("\n")) if (pid) found.add(Number(pid));
  }
  return [...found];
}

/** Number of OOM kills in it. */
export function oomKills(path: string): number {
  const { memory, unified } = cgroupDirs(path);
  const text =
    (memory && read(join(memory, "memory.oom_control"))) ?? (unified && read(join(unified, "memory.events"))) ?? "";
  return Number(/^oom_kill (\d+)$/m.exec(text)?.[1] ?? 0);
}

/** Removes it with its children; returns false while it has processes. */
export function removeCgroup(path: string): boolean {
  return Object.values(cgroupDirs(path))
    .map((dir) => removeTree(dir))
    .every(Boolean);
}

function removeTree(dir: string): boolean {
  if (!existsSync(dir)) return true;
  for (const entry of readdirSync(dir, { withFileTypes: true })) {
    if (entry.isDirectory()) removeTree(join(dir, entry.name));
  }
  try {
    rmdirSync(dir);
    return true;
  } catch (thrown) {
    return (thrown as NodeJS.ErrnoException).code === "ENOENT";
  }
}

function read(file: string): string | undefined {
  try {
    return readFileSync(file, "utf8");
  } catch {
    return undefined;
  }
}
