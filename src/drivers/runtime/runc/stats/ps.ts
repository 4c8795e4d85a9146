/** Lists the processes of a machine, read from this host's /proc. */
import { readdirSync, readFileSync, readlinkSync } from "node:fs";
import type { ListenSocket } from "#core/listening.ts";
import type { Process } from "#machines/runtime/driver.ts";
import { processesIn } from "../cgroup.ts";

/** Clock ticks per second; the same on all current Linux architectures. */
const TICKS = 100;
const PAGE = 4096;

export async function processList(cgroup: string, init: number): Promise<Process[]> {
  const listening = listenersByInode(init);
  const uptime = Number(readFileSync("/proc/uptime", "utf8").split(" ")[0]);
  return processesIn(cgroup)
    .flatMap((pid) => {
      try {
        return [describe(pid, uptime, listening)];
      } catch {
        return []; // It has exited.
      }
    })
    .sort((a, b) => a.pid - b.pid);
}

function describe(pid: number, uptime: number, listening: Map<string, ListenSocket>): Process {
  const status = readFileSync(`/proc/${pid}/status`, "utf8");
  const stat = readFileSync(`/proc/${pid}/stat`, "utf8");
  const fields = stat
    .slice(stat.lastIndexOf(")") + 2)
    .split(" ")
    .map(Number);
  const [user = 0, system = 0] = [fields[11], fields[12]];
  const began = (fields[19] ?? 0) / TICKS;
  const inner = /^NSpid:.*\t(\d+)$/m.exec(status)?.[1];
  const argv = readFileSync(`/proc/${pid}/cmdline`, "utf8").split("\0").filter(Boolean);
  const busy = (user + system) / TICKS;
  return {
    pid: Number(inner ?? pid),
    stime: Math.round(began),
    rtime: Math.round(uptime - began),
    command: argv.join(" ") || `[${/^Name:\t(.*)$/m.exec(status)?.[1] ?? ""}]`,
    directory: readlinkSync(`/proc/${pid}/cwd`),
    cpu: Math.round(busy * 1000),
    rss: (fields[21] ?? 0) * PAGE,
    listen_sockets: sockets(pid).flatMap((inode) => listening.get(inode) ?? []),
  };
}

/** Its sockets, by inode. A file closed meanwhile is skipped. */
export function sockets(pid: number): string[] {
  const dir = `/proc/${pid}/fd`;
  return readdirSync(dir).flatMap((fd) => {
    try {
      return /^socket:\[(\d+)\]$/.exec(readlinkSync(`${dir}/${fd}`))?.[1] ?? [];
    } catch {
      return [];
    }
  });
}

/** Socket states that accept data from anyone. */
const OPEN: Record<string, string> = { tcp: "0A", udp: "07" };

/** Listening sockets in a process's network namespace. */
export const listeners = (pid: number): ListenSocket[] => [...listenersByInode(pid).values()];

/** The same, by inode. */
export function listenersByInode(pid: number): Map<string, ListenSocket> {
  const found = new Map<string, ListenSocket>();
  for (const proto of ["tcp", "tcp6", "udp", "udp6"]) {
    for (const line of lines(`/proc/${pid}/net/${proto}`)) {
      const [, local = "", , state, , , , , , inode = ""] = line.trim().split(/\s+/);
      const plain = proto.replace("6", "");
      if (state === OPEN[plain]) found.set(inode, { proto: plain, address: address(local) });
    }
  }
  return found;
}

function lines(file: string): string[] {
  try {
    return readFileSync(file, "utf8").trim().split("\n").slice(1);
  } catch {
    return [];
  }
}

/** The kernel's format: 32-bit hex words in host byte order, a colon, the port. */
function address(text: string): string {
  const [hex = "", port = ""] = text.split(":");
  const parts = hex.match(/.{8}/g) ?? [];
  const bytes = parts.flatMap((group) => (group.match(/../g) ?? []).reverse());
  const number = Number.parseInt(port, 16);
  // IPv4-mapped, as in programs with dual-stack sockets, such as those on the JVM.
  const ipv4 = /^0{20}ffff/i.test(bytes.join("")) ? bytes.slice(12) : bytes;
  if (ipv4.length === 4) return `${ipv4.map((byte) => Number.parseInt(byte, 16)).join(".")}:${number}`;
  const groups = (bytes.join("").match(/.{4}/g) ?? []).map((group) => group.replace(/^0{1,3}/, ""));
  return `[${SHORT[groups.join(":")] ?? groups.join(":")}]:${number}`;
}

/** Addresses with well-known short forms. */
const SHORT: Record<string, string> = { "0:0:0:0:0:0:0:0": "::", "0:0:0:0:0:0:0:1": "::1" };
