/** Removes leftovers of a boot: processes, cgroup, network, mounts, folders. Every step may find nothing to do. */
import { readdirSync, readFileSync, rmSync } from "node:fs";
import { basename } from "node:path";
import type { Clock } from "#core/clock.ts";
import { releaseIpv4 } from "../../net/ipv4-claims.ts";
import type { PrivateNetwork } from "../../net/private-network.ts";
import { processesIn, removeCgroup } from "./cgroup.ts";
import { liftIo } from "./cgroup-io.ts";
import { endDelegation } from "./delegation.ts";
import { type Layout, type MachinePaths, pathsOf, releaseDevices, removeRun } from "./layout.ts";
import { RUNC_LIMITS } from "./limits.ts";
import type { Lxcfs } from "./lxcfs.ts";
import { kill, startOf } from "./process-table.ts";
import type { MachineRecord } from "./record.ts";
import { type BundleBuilder, mountsUnder } from "./rootfs/bundle-builder.ts";
import { thawCgroup } from "./suspend/cgroup-freeze.ts";

export interface ClearParts {
  layout: Layout;
  network: PrivateNetwork;
  bundles: BundleBuilder;
  clock: Clock;
}

/** Kills the first process, which ends all others after their pending I/O. */
export function killMachine({ cgroup }: MachinePaths, pid: number): void {
  liftIo(cgroup);
  kill(pid, "SIGKILL");
}

/** Removes everything of the machine from the kernel. Its data directory stays. */
export async function clearBoot(parts: ClearParts, id: string, volume: MachineRecord["volume"]): Promise<void> {
  const { layout, network, bundles, clock } = parts;
  const paths = pathsOf(layout, id);
  // In cgroup v1 a frozen process must be thawed to die; the signal is handled first.
  await endProcesses(
    () => processesIn(paths.cgroup),
    clock,
    () => {
      liftIo(paths.cgroup);
      thawCgroup(paths.cgroup);
    },
  );
  await until(() => removeCgroup(paths.fence_cgroup), clock, `cgroup ${paths.fence_cgroup}`);
  rmSync(paths.runc_state, { recursive: true, force: true });
  await network.remove(paths.veth);
  await bundles.remove(id, volume);
  // Never deletes into a mount that could not be removed.
  if (mountsUnder(paths.run).size === 0) rmSync(paths.run, { recursive: true, force: true });
}

/** Removes the installation from the kernel when no machine is left running. */
export async function clearInstallation(
  parts: Pick<ClearParts, "layout" | "network" | "clock"> & { lxcfs: Lxcfs },
): Promise<void> {
  const { layout, network, lxcfs, clock } = parts;
  await network.removeAll();
  await lxcfs.end();
  await endDelegation(layout.node_id, clock);
  removeRun(layout);
  releaseDevices(layout);
  releaseIpv4(layout.data);
}

const MONITOR = "monitor";

/** Resolves when no runc works on the machine. The monitor stays while the machine runs. */
export async function programsEnded({ layout, clock }: ClearParts, id: string): Promise<void> {
  const { run } = pathsOf(layout, id);
  const end = clock.monotonic() + RUNC_LIMITS.program_ms;
  while (programsOf(run).some((pid) => nameOf(pid) !== MONITOR) && clock.monotonic() < end) await clock.sleep(50);
}

const programsOf = (run: string): number[] =>
  readdirSync("/proc").flatMap((name) => (/^\d+$/.test(name) && isOurs(name, `${run}/`) ? [Number(name)] : []));

function nameOf(pid: number): string {
  try {
    return readFileSync(`/proc/${pid}/comm`, "utf8").trimEnd();
  } catch {
    return MONITOR;
  }
}

/** After a crash of ours, a monitor, runc or CRIU may still be running: it is ended first. */
export async function endPrograms(parts: ClearParts, id: string): Promise<void> {
  const { run } = pathsOf(parts.layout, id);
  await endProcesses(() => programsOf(run), parts.clock);
}

/** Programs started with a machine's run directory as an argument, and the shell that moves one to its cgroup. */
const PROGRAMS = new Set(["monitor", "runc", "criu", "rebind", "terminal"]);
const MOVING = /^\/bin\/sh\0-c\0[^\0]*exec "\$@"\0hangar-/;

/** Whether a process is our program for this run directory, and not someone's `tail -f`. */
function isOurs(pid: string, run: string): boolean {
  try {
    const cmdline = readFileSync(`/proc/${pid}/cmdline`, "utf8");
    if (!cmdline.includes(run) || Number(pid) === process.pid) return false;
    return PROGRAMS.has(basename(cmdline.split("\0")[0] ?? "")) || MOVING.test(cmdline);
  } catch {
    return false;
  }
}

async function endProcesses(list: () => number[], clock: Clock, killed = (): void => {}): Promise<void> {
  await until(
    () => {
      const left = list().filter((pid) => startOf(pid) !== undefined);
      for (const pid of left) kill(pid, "SIGKILL");
      if (left.length > 0) killed();
      return left.length === 0;
    },
    clock,
    "processes",
  );
}

async function until(done: () => boolean, clock: Clock, what: string): Promise<void> {
  const end = clock.monotonic() + RUNC_LIMITS.kill_ms;
  for (let wait = 1; !done(); wait = Math.min(wait * 2, 50)) {
    if (clock.monotonic() > end) throw new Error(`${what} did not go away within ${RUNC_LIMITS.kill_ms / 1000} s`);
    await clock.sleep(wait);
  }
}
