/** A cgroup for programs whose processor time is wanted, that of their children included, however they were started. */
import { mkdirSync } from "node:fs";
import { join } from "node:path";
import { outliving } from "#drivers/linux/outlive.ts";
import { cgroupDirs, removeCgroup } from "#drivers/runtime/runc/cgroup.ts";
import { cpuUse } from "#drivers/runtime/runc/stats/cgroup-stats.ts";

/** Only the tree that counts time: the others stay as they are for the programs inside. */
const counting = (path: string): string => {
  const { cpuacct, unified = "" } = cgroupDirs(path);
  return cpuacct ?? unified;
};

export class CpuGroup {
  /** Containers may be made below it. */
  readonly path: string;
  /** A child: cgroup v2 gives no controllers to children of a cgroup that has processes. */
  readonly #commands: string;

  constructor(name: string) {
    this.path = `/hangar-bench-${process.pid}/${name}`;
    this.#commands = join(this.path, "commands");
    mkdirSync(counting(this.#commands), { recursive: true });
  }

  /** The command line that runs a command in it. */
  inside(argv: readonly string[]): string[] {
    return outliving(argv, [counting(this.#commands)]);
  }

  seconds(): number {
    return groupSeconds(this.path);
  }

  remove(): void {
    removeCgroup(this.path);
    removeCgroup(join(this.path, ".."));
  }
}

/** Processor time of a cgroup and of all that were ever below it; none while it does not exist. */
export function groupSeconds(path: string): number {
  const { user_cs, system_cs } = cpuUse(cgroupDirs(path));
  return (user_cs + system_cs) / 100;
}
