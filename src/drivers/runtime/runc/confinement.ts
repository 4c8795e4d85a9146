/** How a machine's processes are confined, read from the kernel: it must be as strict after a resume as before. */
import { readFileSync } from "node:fs";
import { type Address, dialed, Endpoint } from "#core/dial.ts";
import { type ListenSocket, portOf } from "#core/listening.ts";
import { processesIn } from "./cgroup.ts";

/** What of a process's status speaks of its rights. */
const FIELDS = ["Uid", "Gid", "CapInh", "CapPrm", "CapEff", "CapBnd", "CapAmb", "NoNewPrivs", "Seccomp"];

/** By the process's number inside the machine. */
export function confinementOf(cgroup: string): Record<string, string> {
  const found: Record<string, string> = {};
  for (const pid of processesIn(cgroup)) {
    try {
      const status = readFileSync(`/proc/${pid}/status`, "utf8");
      const map = readFileSync(`/proc/${pid}/uid_map`, "utf8").trim().replaceAll(/\s+/g, " ");
      const inner = /^NSpid:.*\t(\d+)$/m.exec(status)?.[1] ?? "";
      const lines = FIELDS.map((field) => new RegExp(`^${field}:.*$`, "m").exec(status)?.[0].replaceAll(/\s+/g, " "));
      found[inner] = [map, ...lines].join("; ");
    } catch {
      // It ended while we looked.
    }
  }
  return found;
}

/** The first process that is less confined than it was; undefined when none is. */
export function weaker(before: Record<string, string>, now: Record<string, string>): string | undefined {
  for (const [pid, was] of Object.entries(before)) {
    const is = now[pid];
    // A short-lived child may have ended right after; process 1 may not.
    if (is === undefined && pid === "1") return "process 1 does not exist";
    if (is !== undefined && gained(partsOf(was), partsOf(is))) return `process ${pid} was "${was}" and is "${is}"`;
  }
  return undefined;
}

/** By the name of the field; what has none is the map of ids. */
function partsOf(text: string): Map<string, string> {
  const pairs = text.split("; ").map((part) => part.split(": ", 2));
  return new Map(pairs.map(([first = "", rest]) => (rest === undefined ? ["map", first] : [first, rest])));
}

/**
 * Whether a process may do more than before. That it may do less is no fault: it was looked at before it was frozen,
 * and may have given up its rights in between, as every server does that begins as root.
 */
function gained(was: Map<string, string>, is: Map<string, string>): boolean {
  const root = was.get("map")?.split(" ")[1] ?? "0";
  return [...was].some(([field, before]) => {
    const now = is.get(field) ?? "";
    if (now === before) return false;
    if (field.startsWith("Cap")) return (BigInt(`0x${now || 0}`) & ~BigInt(`0x${before}`)) !== 0n;
    if (field === "NoNewPrivs" || field === "Seccomp") return Number(now) < Number(before);
    // Root may become anybody; nobody else may become another. The map of ids never changes.
    return field === "map" || !before.split(" ").includes(root);
  });
}

/** Ports on which a machine takes connections at one of its own addresses. */
export function portsOf(sockets: readonly ListenSocket[]): number[] {
  const open = sockets.filter(({ proto, address }) => proto === "tcp" && OWN.test(address));
  return [...new Set(open.map(({ address }) => portOf(address)))].slice(0, PORTS);
}

/** All addresses, or the one that a machine has of each family. */
const OWN = /^(0\.0\.0\.0|100\.|\[::\]|\[fdaa:)/;
/** More than a few say no more. */
const PORTS = 3;

/** Whether a connection to the port is taken within the time. */
export async function answers(at: Address, timeout_ms: number): Promise<boolean> {
  try {
    (await dialed(new Endpoint(at), { timeout_ms })).destroy();
    return true;
  } catch {
    return false;
  }
}
