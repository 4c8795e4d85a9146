/** Reads from the kernel how a machine's processes are confined: it must be as strict after a resume as before. */
import { readFileSync } from "node:fs";
import { type Address, dialed, Endpoint } from "#core/dial.ts";
import { type ListenSocket, portOf } from "#core/listening.ts";
import { processesIn } from "./cgroup.ts";

/** Fields of /proc/PID/status about privileges. */
const FIELDS = ["Uid", "Gid", "CapInh", "CapPrm", "CapEff", "CapBnd", "CapAmb", "NoNewPrivs", "Seccomp"];

/** By pid inside the machine. */
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

/** The first process with more privileges than before; undefined when there is none. */
export function weaker(before: Record<string, string>, now: Record<string, string>): string | undefined {
  for (const [pid, was] of Object.entries(before)) {
    const is = now[pid];
    // A short-lived child may have exited; process 1 may not.
    if (is === undefined && pid === "1") return "process 1 does not exist";
    if (is !== undefined && gained(partsOf(was), partsOf(is))) return `process ${pid} was "${was}" and is "${is}"`;
  }
  return undefined;
}

/** By field name; the nameless part is the id map. */
function partsOf(text: string): Map<string, string> {
  const pairs = text.split("; ").map((part) => part.split(": ", 2));
  return new Map(pairs.map(([first = "", rest]) => (rest === undefined ? ["map", first] : [first, rest])));
}

/**
 * Whether a process gained privileges. Fewer are fine: it may have dropped them between the check and the freeze, as
 * servers that start as root do.
 */
function gained(was: Map<string, string>, is: Map<string, string>): boolean {
  const root = was.get("map")?.split(" ")[1] ?? "0";
  return [...was].some(([field, before]) => {
    const now = is.get(field) ?? "";
    if (now === before) return false;
    if (field.startsWith("Cap")) return (BigInt(`0x${now || 0}`) & ~BigInt(`0x${before}`)) !== 0n;
    if (field === "NoNewPrivs" || field === "Seccomp") return Number(now) < Number(before);
    // Root may become anyone; others may not change. The id map never changes.
    return field === "map" || !before.split(" ").includes(root);
  });
}

/** Ports on which a machine accepts connections at its own addresses. */
export function portsOf(sockets: readonly ListenSocket[]): number[] {
  const open = sockets.filter(({ proto, address }) => proto === "tcp" && OWN.test(address));
  return [...new Set(open.map(({ address }) => portOf(address)))].slice(0, PORTS);
}

/** All addresses, or the one that a machine has of each family. */
const OWN = /^(0\.0\.0\.0|100\.|\[::\]|\[fdaa:)/;
/** A few are enough. */
const PORTS = 3;

/** Whether the port accepts a connection within the timeout. */
export async function answers(at: Address, timeout_ms: number): Promise<boolean> {
  try {
    (await dialed(new Endpoint(at), { timeout_ms })).destroy();
    return true;
  } catch {
    return false;
  }
}
