/** Every mount namespace that a process of this host is in, and what is mounted there. */
import { readdirSync, readFileSync, readlinkSync } from "node:fs";

export interface MountLine {
  id: number;
  /** `major:minor` of the file system. */
  device: string;
  point: string;
  type: string;
  source: string;
  options: string;
  /** Unmounts do not propagate to it: the copy stays until its namespace ends. */
  is_private: boolean;
}

export interface MountNamespace {
  /** The namespace of this process. */
  is_own: boolean;
  pids: number[];
  mounts: MountLine[];
}

/** `hidden` counts processes that could not be inspected. */
export function mountNamespaces(): { namespaces: MountNamespace[]; hidden: number } {
  const own = namespaceOf("self");
  const pids = new Map<string, number[]>();
  const refused: number[] = [];
  for (const pid of allPids()) {
    const namespace = namespaceOf(pid);
    if (namespace === undefined) refused.push(pid);
    else if (namespace !== "") pids.set(namespace, [...(pids.get(namespace) ?? []), pid]);
  }
  const namespaces = [...pids].map(
    ([name, list]): MountNamespace => ({ is_own: name === own, pids: list, mounts: firstMounts(list) }),
  );
  // A more privileged process hides its namespace but not its mounts. Mount ids are unique to a namespace.
  for (const pid of refused) {
    const mounts = firstMounts([pid]);
    const known = namespaces.find((one) => one.mounts[0]?.id === mounts[0]?.id);
    if (known) known.pids.push(pid);
    else if (mounts.length > 0) namespaces.push({ is_own: false, pids: [pid], mounts });
  }
  return {
    namespaces,
    hidden: refused.filter((pid) => !namespaces.some((one) => one.pids.includes(pid)) && lives(pid)).length,
  };
}

/** Not an exiting process, which the kernel does not report on. */
function lives(pid: number): boolean {
  try {
    return !/\) [ZX]/.test(readFileSync(`/proc/${pid}/stat`, "utf8"));
  } catch {
    return false;
  }
}

export const allPids = (): number[] =>
  readdirSync("/proc")
    .filter((name) => /^\d+$/.test(name))
    .map(Number);

/** Undefined without permission. */
function namespaceOf(pid: number | "self"): string | undefined {
  try {
    return readlinkSync(`/proc/${pid}/ns/mnt`);
  } catch (thrown) {
    // Other errors mean an ended process or a kernel thread.
    return (thrown as NodeJS.ErrnoException).code === "EACCES" ? undefined : "";
  }
}

/** Any live process of a namespace will do. */
function firstMounts(pids: readonly number[]): MountLine[] {
  for (const pid of pids) {
    try {
      const text = readFileSync(`/proc/${pid}/mountinfo`, "utf8");
      if (text !== "") return parseMountinfo(text);
    } catch {
      // It has ended.
    }
  }
  return [];
}

export function parseMountinfo(text: string): MountLine[] {
  return text
    .split("\n")
    .filter(Boolean)
    .map((line) => {
      const [before = "", after = ""] = line.split(" - ");
      const [id, , device = "", , point = "", , ...tags] = before.split(" ");
      const [type = "", source = "", options = ""] = after.split(" ");
      const is_private = !tags.some((tag) => tag.startsWith("shared:") || tag.startsWith("master:"));
      return { id: Number(id), device, point: unescaped(point), type, source: unescaped(source), options, is_private };
    });
}

/** Spaces and the like are written in octal. */
const unescaped = (text: string): string =>
  text.replaceAll(/\\([0-7]{3})/g, (_, digits: string) => String.fromCharCode(Number.parseInt(digits, 8)));
