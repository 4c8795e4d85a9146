/** How a machine's processes are confined, read from the kernel: it must be as strict after a resume as before. */
import { readFileSync } from "node:fs";
import { connect } from "node:net";
import { processesIn } from "./cgroup.ts";
import { listeners } from "./ps.ts";

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

/** The first process that is less confined than it was, or is missing; undefined when all are as they were. */
export function weaker(before: Record<string, string>, now: Record<string, string>): string | undefined {
  for (const [pid, was] of Object.entries(before)) {
    // A short-lived child may have ended right after; process 1 and what it started may not.
    if (now[pid] === undefined && pid === "1") return "process 1 is not there";
    if (now[pid] !== undefined && now[pid] !== was) return `process ${pid} was "${was}" and is "${now[pid]}"`;
  }
  return undefined;
}

/** Ports on which a machine takes connections at its private address. */
export function portsOf(init: number): number[] {
  const open = [...listeners(init).values()].flatMap(({ proto, address }) => {
    const [, host = "", port = ""] = /^(.*):(\d+)$/.exec(address) ?? [];
    return proto === "tcp" && (host === "[::]" || host.startsWith("[fdaa:")) ? [Number(port)] : [];
  });
  return [...new Set(open)].slice(0, PORTS);
}

/** More than a few say no more. */
const PORTS = 3;

/** Whether a connection to the port is taken within the time. */
export async function answers(host: string, port: number, ms: number): Promise<boolean> {
  return await new Promise((resolve) => {
    const socket = connect({ host, port, family: 6 });
    const done = (answer: boolean): void => {
      socket.destroy();
      resolve(answer);
    };
    socket.setTimeout(ms, () => done(false));
    socket.once("connect", () => done(true)).once("error", () => done(false));
  });
}
