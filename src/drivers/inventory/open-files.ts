/** Finds processes that use a file system: by open or mapped files, working directories, or the device itself. */
import { readdirSync, readFileSync, readlinkSync, type Stats } from "node:fs";
import { stat } from "node:fs/promises";
import { setTimeout as pause } from "node:timers/promises";
import type { Holder } from "#core/kernel-objects.ts";
import { allPids, parseMountinfo } from "./mount-namespaces.ts";

/** Timeout for a FUSE file whose daemon hangs. */
const STAT_MS = 500;

export interface DeviceUse {
  /** Holders by `major:minor`. */
  users: Map<string, Holder[]>;
  /** Processes with open files in detached file systems without a device, such as an overlay. */
  detached: Holder[];
}

/** `nodes` are device files, such as /dev/loop3, by `major:minor`. */
export async function usersOf(devices: ReadonlySet<string>, nodes: ReadonlyMap<string, string>): Promise<DeviceUse> {
  const users = new Map<string, Holder[]>();
  const detached: Holder[] = [];
  for (const pid of allPids()) {
    if (pid === process.pid) continue;
    const found = await useBy(pid, devices, nodes);
    for (const [device, how] of found.uses)
      users.set(device, [...(users.get(device) ?? []), { pid, command: commandOf(pid), how }]);
    if (found.detached) detached.push({ pid, command: commandOf(pid), how: DETACHED });
  }
  return { users, detached };
}

const DETACHED = "has a file of an unmounted file system open, which may be this one";

export function commandOf(pid: number): string {
  // The command line is untrusted and shown on a terminal.
  const argv = read(`/proc/${pid}/cmdline`)
    .replaceAll(/[\s\p{C}]+/gu, " ")
    .trim();
  return (argv || read(`/proc/${pid}/comm`).trim() || "ended").slice(0, COMMAND);
}

const COMMAND = 120;

async function useBy(pid: number, devices: ReadonlySet<string>, nodes: ReadonlyMap<string, string>) {
  const uses = new Map<string, string>();
  let detached = false;
  const use = (device: string | undefined, how: string): void => {
    if (device !== undefined && devices.has(device) && !uses.has(device)) uses.set(device, how);
  };
  const mounted = new Map(parseMountinfo(read(`/proc/${pid}/mountinfo`)).map(({ id, device }) => [id, device]));
  for (const fd of list(`/proc/${pid}/fd`)) {
    const link = target(`/proc/${pid}/fd/${fd}`);
    use(nodes.get(link), "has the device open");
    if (!link.startsWith("/")) continue;
    const mount = /^mnt_id:\s*(\d+)$/m.exec(read(`/proc/${pid}/fdinfo/${fd}`))?.[1];
    const known = mounted.get(Number(mount));
    const device = known ?? (await deviceAt(`/proc/${pid}/fd/${fd}`));
    detached ||= known === undefined && device?.startsWith("0:") === true;
    use(device, "has a file open");
  }
  use(await deviceAt(`/proc/${pid}/cwd`), "is in a folder of it");
  use(await deviceAt(`/proc/${pid}/root`), "has its root there");
  // 7f00…-7f01… r-xp 00000000 07:03 131 /path
  for (const [, major = "", minor = ""] of read(`/proc/${pid}/maps`).matchAll(/^\S+ \S+ \S+ (\w+):(\w+) [1-9]/gm))
    use(`${Number.parseInt(major, 16)}:${Number.parseInt(minor, 16)}`, "has a file mapped");
  return { uses, detached };
}

async function deviceAt(path: string): Promise<string | undefined> {
  const late = new AbortController();
  const found = await Promise.race([
    stat(path).catch((): undefined => undefined),
    pause(STAT_MS, undefined, { signal: late.signal }).catch((): undefined => undefined),
  ]);
  late.abort();
  return found && deviceOf(found);
}

/** The kernel's packing of device numbers: <linux/kdev_t.h>. */
export function deviceOf({ dev }: Pick<Stats, "dev">): string {
  const number = BigInt(dev);
  return `${(number >> 8n) & 0xfffn}:${(number & 0xffn) | ((number >> 12n) & 0xfff00n)}`;
}

function read(file: string): string {
  try {
    return readFileSync(file, "utf8");
  } catch {
    return "";
  }
}

function target(link: string): string {
  try {
    return readlinkSync(link);
  } catch {
    return "";
  }
}

function list(dir: string): string[] {
  try {
    return readdirSync(dir);
  } catch {
    return [];
  }
}
