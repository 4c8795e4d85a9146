/**
 * What an installation has on this host, counted from outside by the names things have: mounts, loop devices, network
 * devices, cgroups, processes, folders. After everything was destroyed there must be none of it.
 */
import { execFileSync } from "node:child_process";
import { existsSync, readdirSync, readFileSync, readlinkSync } from "node:fs";
import { join } from "node:path";
import { setTimeout as delay } from "node:timers/promises";
import { PATIENCE_MS } from "../support.ts";

type Census = Record<string, string[]>;

export interface Installation {
  data_dir: string;
  node_id: string;
}

export const nodeIdOf = (data_dir: string): string => readFileSync(join(data_dir, "node_id"), "utf8").trim();

/** Everything there is, by kind; kinds of which there is nothing are left out. */
export function census({ data_dir, node_id }: Installation): Census {
  const run = `/run/hangar/${node_id}`;
  const mounts = lines("/proc/self/mountinfo").filter((line) => line.includes(run) || line.includes(`${data_dir}/`));
  const isKept = (line: string): boolean => line.includes(` ${run} `) || line.includes(` ${run}/lxcfs `);
  const ofRun = processes().filter((words) => words.includes(run));
  const found: Census = {
    mounts: mounts.filter((line) => !isKept(line)),
    loops: loops().filter((file) => file.startsWith(`${data_dir}/`) && !file.startsWith(`${data_dir}/ready/`)),
    // What is there as long as the platform is: the run dir in memory, lxcfs, and disks that wait for machines.
    kept: [...mounts.filter(isKept), ...loops().filter((file) => file.startsWith(`${data_dir}/ready/`))],
    devices: names("/sys/class/net").filter((name) => name.startsWith(`h${node_id.slice(0, 5)}`)),
    // A tree per controller, or the one tree of the second version.
    cgroups: ["", ...names("/sys/fs/cgroup")].flatMap((tree) =>
      [`hangar/${node_id}`, `hangar.slice/hangar-${node_id}.scope/machines`].flatMap((path) =>
        folders(join("/sys/fs/cgroup", tree, path)),
      ),
    ),
    processes: ofRun.filter((words) => !words.includes(GUARD) && !words.includes(LXCFS)),
    guard: ofRun.filter((words) => words.includes(GUARD)),
    lxcfs: ofRun.filter((words) => words.includes(LXCFS)),
    runc: names(`${run}/runc`),
    boots: names(`${run}/m`),
    exits: names(`${run}/exits`),
    machines: names(join(data_dir, "machines")),
    rules: rules(`hangar_${node_id}`),
  };
  return Object.fromEntries(Object.entries(found).filter(([, list]) => list.length > 0));
}

/** What freezes machines when their host's lease is over, as it is called. */
const GUARD = "hangar-guard";
const LXCFS = "lxcfs --foreground";
/** What is there whatever a test did, as long as its driver is open. */
const OPEN = ["kept", "rules", "guard", "lxcfs"];

/**
 * What is left when everything was taken away. A loop device may outlast its file system for a moment: as long as a
 * machine that is being started, by anybody on this host, has a copy of all mounts.
 */
export async function leftBehind(of: Installation, driver: "driver is open" | "driver is closed"): Promise<Census> {
  const deadline = performance.now() + PATIENCE_MS;
  for (;;) {
    const found = Object.entries(census(of)).filter(([kind]) => driver === "driver is closed" || !OPEN.includes(kind));
    if (found.length === 0 || performance.now() > deadline) return Object.fromEntries(found);
    await delay(50);
  }
}

/** Zombie processes: ended, but not reaped. */
export function zombiesOf(pid: number): string[] {
  return names("/proc").filter((name) => {
    if (!/^\d+$/.test(name)) return false;
    const [, state, parent] = /\) (\S) (\d+)/.exec(text(`/proc/${name}/stat`)) ?? [];
    return state === "Z" && Number(parent) === pid;
  });
}

export const descriptorsOf = (pid: number): number => names(`/proc/${pid}/fd`).length;

/** What a process has open; what is closed while we look is left out. */
export function targetsOf(pid: number): string[] {
  return names(`/proc/${pid}/fd`).flatMap((fd) => {
    try {
      return [readlinkSync(`/proc/${pid}/fd/${fd}`)];
    } catch {
      return [];
    }
  });
}

const names = (dir: string): string[] => (existsSync(dir) ? readdirSync(dir) : []);

function folders(dir: string): string[] {
  if (!existsSync(dir)) return [];
  return readdirSync(dir, { withFileTypes: true }).flatMap((entry) =>
    entry.isDirectory() ? [join(dir, entry.name)] : [],
  );
}

function text(file: string): string {
  try {
    return readFileSync(file, "utf8");
  } catch {
    return "";
  }
}

const lines = (file: string): string[] => text(file).split("\n").filter(Boolean);

function loops(): string[] {
  return names("/sys/block")
    .filter((name) => name.startsWith("loop"))
    .flatMap((name) => text(`/sys/block/${name}/loop/backing_file`).trim() || []);
}

function processes(): string[] {
  return names("/proc").flatMap((name) =>
    /^\d+$/.test(name) ? text(`/proc/${name}/cmdline`).replaceAll("\0", " ") : [],
  );
}

function rules(table: string): string[] {
  try {
    const tables = execFileSync("nft", ["list", "tables"], { encoding: "utf8", stdio: ["ignore", "pipe", "ignore"] });
    return tables.split("\n").filter((line) => line.includes(table));
  } catch {
    return [];
  }
}
