/**
 * Suspends a machine without CRIU: its cgroup is frozen, and its memory is reclaimed as far as the kernel can. Its
 * monitor, network and mounts stay, so connections survive and a resume takes milliseconds; a reboot of the host ends
 * it, and the next start is cold.
 */
import { messageOf } from "#core/assert.ts";
import {
  type Launch,
  type Lost,
  type Ref,
  type Started,
  type Suspended,
  SuspendRefused,
} from "#machines/runtime/driver.ts";
import { liftIo } from "../cgroup-io.ts";
import type { ContainerManager } from "../container-manager.ts";
import { RUNC_LIMITS } from "../limits.ts";
import { kernelBoot } from "../process-table.ts";
import { handleOf, type MachineRecord, startedOf } from "../record.ts";
import { Stopwatch } from "../timings.ts";
import { freezeCgroup, thawCgroup } from "./cgroup-freeze.ts";
import { reclaimMemory, restoreSwap, swapShare } from "./cgroup-reclaim.ts";

/** `why` is the reason why there is no snapshot. */
export async function pause(containers: ContainerManager, { id, boot }: Ref, why: string): Promise<Suspended> {
  const { clock, bundles, log } = containers.parts;
  const record = containers.read(id);
  if (record?.boot === boot && record.state === "paused") return suspendedOf(record, why);
  if (record?.boot !== boot || !containers.runs(record)) throw new SuspendRefused("nothing runs");
  const watch = new Stopwatch(clock);
  const { cgroup } = containers.paths(id);
  const swap_max = swapShare(cgroup);
  const paused = swap_max === undefined ? {} : { swap_max };
  containers.write({ ...record, state: "suspending", paused });
  liftIo(cgroup);
  try {
    await freezeCgroup(cgroup, clock, RUNC_LIMITS.freeze_ms);
  } catch (thrown) {
    bundles.limitIo(record);
    containers.running(record, record.pid, record.pid_start);
    throw new SuspendRefused(`${why}; and it could not be frozen: ${messageOf(thrown)}`, { cause: thrown });
  }
  watch.lap("freeze");
  await bundles.flush(id);
  watch.lap("disk");
  const { before_bytes, after_bytes } = await reclaimMemory(cgroup, clock);
  watch.lap("reclaim");
  // Durable: after a power cut it must be known that this machine was suspended, and how.
  const written = containers.write({ ...record, state: "paused", paused }, true);
  log.debug({ machine: id, before_bytes, after_bytes, ...watch.end() }, "a machine has been frozen");
  return suspendedOf(written, why);
}

const suspendedOf = (record: MachineRecord, reason: string): Suspended => ({
  handle: handleOf(record),
  kind: "freeze",
  reason,
});

/** Why a machine frozen in memory cannot be resumed, or undefined. */
function problemOf(containers: ContainerManager, record: MachineRecord): string | undefined {
  if (record.kernel_boot !== kernelBoot())
    return "the host was restarted while it was suspended, and suspended machines stay in memory on this host";
  return containers.isThere(record) ? undefined : "its processes were ended while it was suspended";
}

/** Undefined when it was not suspended this way. */
export async function unpause(
  containers: ContainerManager,
  { id, boot, egress }: Launch,
): Promise<Started | Lost | undefined> {
  const record = containers.read(id);
  if (record?.boot !== boot || record.state !== "paused") return undefined;
  const lost = problemOf(containers, record);
  if (lost !== undefined) {
    await containers.dropSnapshot(id);
    return { lost };
  }
  const { paused, ...rest } = { ...record, egress };
  const { cgroup } = containers.paths(id);
  containers.write({ ...record, state: "resuming" });
  // Before it runs, because the app's policy may have changed.
  await containers.parts.network.firewall.joinSender(containers.sender(record), egress);
  containers.parts.bundles.limitIo(record);
  restoreSwap(cgroup, paused?.swap_max);
  thawCgroup(cgroup);
  return startedOf(containers.running({ ...rest, state: "running" }, rest.pid ?? 0, rest.pid_start));
}
