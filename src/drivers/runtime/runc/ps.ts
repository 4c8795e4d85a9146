/** The processes of a machine, read from this host's own table. */
import { readdirSync, readFileSync, readlinkSync } from "node:fs";
import type { Process } from "#machines/driver.ts";
import { processesIn } from "./cgroup.ts";

/** Clock ticks in a second; the same on every architecture Linux runs on today. */
const TICKS = 100;
const PAGE = 4096;

export async function processList(cgroup: string, init: number): Promise<Process[]> {
  const listening = listeners(init);
  const uptime = Number(readFileSync("/proc/uptime", "utf8").split(" ")[0]);
  return processesIn(cgroup)
    .flatMap((pid) => {
      try {
        return [describe(pid, uptime, listening)];
      } catch {
        return []; // It ended while we looked.
      }
    })
    .sort((a, b) => a.pid - b.pid);
}

function describe(pid: number, uptime: number, listening: Map<string, { proto: string; address: string }>): Process {
  const status = readFileSync(`/proc/${pid}/status`, "utf8");
  const stat = readFileSync(`/proc/${pid}/stat`, "utf8");
  const fields = stat
    .slice(stat.lastIndexOf(")") + 2)
    .split(" ")
    .map(Number);
  const [user = 0, system = 0] = [fields[11], fields[12]];
  const began = (fields[19] ?? 0) / TICKS;
  const inner = /^NSpid:.*\t(\d+)$/m.exec(status)?.[1];
  const words = readFileSync(`/proc/${pid}/cmdline`, "utf8").split("\0").filter(Boolean);
  const busy = (user + system) / TICKS;
  return {
    pid: Number(inner ?? pid),
    stime: Math.round(began),
    rtime: Math.round(uptime - began),
    command: words.join(" ") || `[${/^Name:\t(.*)$/m.exec(status)?.[1] ?? ""}]`,
    directory: readlinkSync(`/proc/${pid}/cwd`),
    cpu: Math.round(busy * 1000),
    rss: (fields[21] ?? 0) * PAGE,
    listen_sockets: sockets(pid).flatMap((inode) => listening.get(inode) ?? []),
  };
}

/** Its sockets, by their numbers. A file that it closes while we look is no reason to leave out the process. */
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

const LISTEN = "0A";

/** Who listens in the machine's network, by socket. */
export function listeners(pid: number): Map<string, { proto: string; address: string }> {
  const found = new Map<string, { proto: string; address: string }>();
  for (const proto of ["tcp", "tcp6", "udp", "udp6"]) {
    for (const line of lines(`/proc/${pid}/net/${proto}`)) {
      const [, local = "", , state, , , , , , inode = ""] = line.trim().split(/\s+/);
      if (proto.startsWith("tcp") && state !== LISTEN) continue;
      found.set(inode, { proto: proto.replace("6", ""), address: address(local) });
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

/** As the kernel writes it: hex words in this host's byte order, a colon, the port. */
function address(text: string): string {
  const [hex = "", port = ""] = text.split(":");
  const words = hex.match(/.{8}/g) ?? [];
  const bytes = words.flatMap((word) => (word.match(/../g) ?? []).reverse());
  const number = Number.parseInt(port, 16);
  if (bytes.length === 4) return `${bytes.map((byte) => Number.parseInt(byte, 16)).join(".")}:${number}`;
  const groups = (bytes.join("").match(/.{4}/g) ?? []).map((group) => group.replace(/^0{1,3}/, ""));
  const plain = groups.join(":");
  return `[${plain === "0:0:0:0:0:0:0:0" ? "::" : plain}]:${number}`;
}
