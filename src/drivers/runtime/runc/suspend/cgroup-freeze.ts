/**
 * Freezing a cgroup: its processes stand still, with their memory and their connections. Version 1 has a freezer
 * controller, version 2 a file in every cgroup. A frozen cgroup below one that is thawed stays frozen.
 */
import { existsSync, readFileSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import type { Clock } from "#core/clock.ts";
import { cgroupDirs, processesIn } from "../cgroup.ts";

/** The file that freezes a cgroup tree, and its values. */
export interface FreezeFile {
  file: string;
  frozen: string;
  thawed: string;
}

export function freezeFile(cgroup: string): FreezeFile {
  const { freezer, unified = "" } = cgroupDirs(cgroup);
  if (freezer) return { file: join(freezer, "freezer.state"), frozen: "FROZEN", thawed: "THAWED" };
  return { file: join(unified, "cgroup.freeze"), frozen: "1", thawed: "0" };
}

/** Why no cgroup of this host can be frozen, or undefined. */
export function freezeProblem(): string | undefined {
  const { freezer, unified } = cgroupDirs("");
  return freezer || unified ? undefined : "this host has no freezer cgroup (mount -t cgroup2 none /sys/fs/cgroup)";
}

/** Whether every process of a cgroup is frozen. A removed one has none. */
export function isFrozen({ file }: FreezeFile): boolean {
  if (!existsSync(file)) return true;
  if (file.endsWith("freezer.state")) return readFileSync(file, "utf8").trim() === "FROZEN";
  return /^frozen 1$/m.test(readFileSync(file.replace(/freeze$/, "events"), "utf8"));
}

const POLL_MS = 2;

/** Resolves when the whole cgroup is frozen. On timeout it thaws it and fails with the resisting process. */
export async function freezeCgroup(cgroup: string, clock: Clock, timeout_ms: number): Promise<void> {
  const { file, frozen, thawed } = freezeFile(cgroup);
  writeFileSync(file, frozen);
  const end = clock.monotonic() + timeout_ms;
  while (!isFrozen({ file, frozen, thawed })) {
    if (clock.monotonic() > end) {
      const why = resisting(cgroup);
      writeFileSync(file, thawed);
      throw new Error(`${why} within ${timeout_ms / 1000} s`);
    }
    await clock.sleep(POLL_MS);
  }
}

/** Thaws a cgroup; a running or removed one is left alone. */
export function thawCgroup(cgroup: string): void {
  const { file, thawed } = freezeFile(cgroup);
  try {
    writeFileSync(file, thawed);
  } catch (thrown) {
    if (!["ENOENT", "ENODEV"].includes((thrown as NodeJS.ErrnoException).code ?? "")) throw thrown;
  }
}

/** A process in uninterruptible sleep, for example on an unresponsive disk, cannot be frozen. */
function resisting(cgroup: string): string {
  for (const pid of processesIn(cgroup)) {
    try {
      const [, name, state] = /\((.*)\) (\S)/.exec(readFileSync(`/proc/${pid}/stat`, "utf8")) ?? [];
      if (state === "D") return `process ${pid} (${name}) waits inside the kernel and could not be frozen`;
    } catch {
      // It has exited.
    }
  }
  return "its processes could not be frozen";
}
