/** Suspends a machine to a snapshot with its memory (CRIU), and resumes it from there. */
import { existsSync, mkdirSync, rmSync } from "node:fs";
import { join } from "node:path";
import { messageOf } from "#core/assert.ts";
import {
  type Launch,
  type Lost,
  type Ref,
  type Started,
  type Suspended,
  SuspendRefused,
} from "#machines/runtime/driver.ts";
import { CRIU_OPTIONS, type Criu, complaint, FILE_LOCKS, settleOnDisk } from "../../../freeze/criu.ts";
import { ImageServerError, type ServedImages } from "../../../freeze/image-server.ts";
import { sealMemory } from "../../../freeze/sealed-memory.ts";
import { plainBytes, unsealed } from "../../../freeze/unsealed.ts";
import { program } from "../../../linux/program.ts";
import { processesIn } from "../cgroup.ts";
import { liftIo } from "../cgroup-io.ts";
import { answers, confinementOf, portsOf, weaker } from "../confinement.ts";
import type { ContainerManager } from "../container-manager.ts";
import { checkLease, LeaseOverError } from "../enclosure.ts";
import { RUNC_LIMITS } from "../limits.ts";
import { isAlive, numberIn, startOf } from "../process-table.ts";
import { handleOf, ipv4Of, type MachineRecord, type Snapshot, startedOf } from "../record.ts";
import { discard } from "../rootfs/discard.ts";
import { runShim } from "../shim.ts";
import { listeners } from "../stats/ps.ts";
import { Stopwatch } from "../timings.ts";
import { thawCgroup } from "./cgroup-freeze.ts";
import { restoreSwap } from "./cgroup-reclaim.ts";
import { heldLocks } from "./file-locks.ts";
import { clearImages, memoryOfProcesses, openImages } from "./memory-images.ts";

export interface SuspendParts {
  containers: ContainerManager;
  criu: Criu;
  /** runc's version: snapshots may not be readable by another. */
  runc_version: string;
}

/** Ports that accepted connections before must do so within this, or the machine is booted cold. */
const ANSWER_MS = 5000;

export async function suspend(parts: SuspendParts, { id, boot }: Ref, signal: AbortSignal): Promise<Suspended> {
  const { containers } = parts;
  signal.throwIfAborted();
  const record = containers.read(id);
  if (record?.boot === boot && record.state === "frozen") return suspendedOf(record);
  if (record?.boot !== boot || !containers.runs(record)) throw new SuspendRefused("nothing runs");
  const watch = new Stopwatch(containers.parts.clock);
  const paths = containers.paths(id);
  const locks = heldLocks(processesIn(paths.cgroup));
  if (locks.lost !== undefined)
    throw new SuspendRefused(`a snapshot would lose the locks on ${locks.lost}, which a program has mapped`);
  await containers.parts.local_api?.quiet(id);
  const snapshot: Snapshot = {
    criu: parts.criu.version,
    runc: parts.runc_version,
    confined: confinementOf(paths.cgroup),
    ports: portsOf(listeners(record.pid)),
  };
  const suspending = containers.write({ ...record, state: "suspending", snapshot });
  await containers.parts.network.detach(paths.veth);
  liftIo(paths.cgroup);
  try {
    await dump(parts, id, locks.any);
  } catch (thrown) {
    await runOn(containers, record);
    throw new SuspendRefused(complaint(join(paths.run, "criu/dump.log")) ?? messageOf(thrown), { cause: thrown });
  }
  watch.lap("dump");
  const frozen = await freeze(containers, suspending, watch);
  containers.parts.log.debug({ machine: id, ...watch.end() }, "a machine has been suspended");
  return suspendedOf(frozen);
}

const suspendedOf = (record: MachineRecord): Suspended => ({ handle: handleOf(record), kind: "snapshot" });

/** Without `with_locks` CRIU refuses a machine that has taken a lock by now. */
async function dump({ containers, criu }: SuspendParts, id: string, with_locks: boolean): Promise<void> {
  const paths = containers.paths(id);
  const { layout, runc } = containers.parts;
  const work = join(paths.run, "criu");
  openImages(paths, memoryOfProcesses(processesIn(paths.cgroup)));
  mkdirSync(work, { recursive: true, mode: 0o700 });
  const where = ["--image-path", paths.images, "--work-path", work];
  const options = CRIU_OPTIONS.filter((option) => with_locks || option !== FILE_LOCKS);
  await program(runc, ["--root", layout.runc, "checkpoint", ...where, ...options, id], {
    timeout_ms: RUNC_LIMITS.program_ms,
    env: { PATH: `${criu.bin}:/usr/sbin:/usr/bin:/sbin:/bin` },
    // Killed halfway, CRIU would leave the machine's processes traced.
    outlives: true,
  });
}

/** CRIU lets a machine continue after a failed dump. An exit meanwhile is handled now. */
async function runOn(containers: ContainerManager, record: MachineRecord & { pid: number }): Promise<void> {
  clearImages(containers.paths(record.id));
  containers.parts.bundles.limitIo(record);
  containers.running(record, record.pid, record.pid_start);
  await containers.parts.network.attach(containers.sender(record)).catch(() => {});
}

/** The processes have exited: removes the rest from the kernel; the sealed snapshot is valid from here on. */
async function freeze(containers: ContainerManager, record: MachineRecord, watch?: Stopwatch): Promise<MachineRecord> {
  const paths = containers.paths(record.id);
  await containers.parts.bundles.flush(record.id);
  await containers.quietEnd(record);
  watch?.lap("clear");
  const [sealed] = await Promise.all([
    sealMemory(paths.images, paths.snapshot, containers.parts.memory_key),
    settleOnDisk([paths.disk]),
  ]);
  watch?.lap("seal");
  const { pid: _, pid_start: __, snapshot, ...rest } = record;
  const frozen: MachineRecord = {
    ...rest,
    state: "frozen",
    ...(snapshot ? { snapshot: { ...snapshot, sealed } } : {}),
  };
  containers.write(frozen, true);
  clearImages(paths);
  return frozen;
}

/**
 * Recovers from a crash during suspend or resume. All programs have ended by now: a machine whose first process lives
 * is running; otherwise its snapshot is complete or untouched. If neither is certain it boots cold.
 */
export async function recoverHalf(containers: ContainerManager, record: MachineRecord): Promise<void> {
  const { id } = record;
  const paths = containers.paths(id);
  const pid = record.state === "resuming" ? numberIn(paths.pid) : record.pid;
  const start = record.state === "resuming" && pid !== undefined ? startOf(pid) : record.pid_start;
  if (pid !== undefined && isAlive(pid, start)) {
    const { snapshot: _, paused, ...rest } = record;
    restoreSwap(paths.cgroup, paused?.swap_max);
    // It may have been frozen, by us or by runc for CRIU.
    thawCgroup(paths.cgroup);
    containers.parts.bundles.resumed(containers.running(rest, pid, start));
    await containers.parts.network.attach(containers.sender(record));
    clearImages(paths);
    rmSync(paths.snapshot, { recursive: true, force: true });
  } else if (record.state === "suspending" && existsSync(join(paths.images, "inventory.img"))) {
    await freeze(containers, record);
  } else if (record.state === "resuming" && pid === undefined && record.snapshot) {
    await containers.quietEnd(record);
    containers.write({ ...record, state: "frozen" });
  } else {
    await containers.dropSnapshot(id);
  }
}

/** Returns `Lost` when the snapshot cannot be used; then nothing of it is left, and the root disk is unchanged. */
export async function resume(parts: SuspendParts, launch: Launch, signal: AbortSignal): Promise<Started | Lost> {
  const { containers } = parts;
  signal.throwIfAborted();
  const { id, boot } = launch;
  const record = containers.read(id);
  if (record?.boot !== boot) return NO_SNAPSHOT;
  if (containers.runs(record)) return startedOf(record);
  if (record.state !== "frozen" || !record.snapshot) return NO_SNAPSHOT;
  const watch = new Stopwatch(containers.parts.clock);
  try {
    const running = await goOn(parts, launch, record, record.snapshot, watch, signal);
    containers.parts.onTimings?.(id, watch.end());
    containers.parts.log.debug({ machine: id, ...watch.end() }, "a machine has been resumed");
    return startedOf(running);
  } catch (thrown) {
    if (thrown instanceof LeaseOverError) {
      await putBack(containers, record);
      throw thrown;
    }
    const log = thrown instanceof ImageServerError ? undefined : join(containers.paths(id).run, "criu/restore.log");
    const why = (log && complaint(log)) ?? messageOf(thrown);
    containers.parts.log.warn({ machine: id, reason: why }, "a snapshot could not be used; the machine boots cold");
    await containers.dropSnapshot(id);
    signal.throwIfAborted();
    return { lost: `the snapshot could not be used: ${why}` };
  }
}

/** The snapshot is unchanged, because the restore did not begin. */
async function putBack(containers: ContainerManager, record: MachineRecord): Promise<void> {
  await containers.quietEnd(record);
  clearImages(containers.paths(record.id));
  containers.write(record);
}

const NO_SNAPSHOT: Lost = { lost: "there is no snapshot of it" };

/** Why a snapshot cannot be tried. */
function problemOf({ containers, criu, runc_version }: SuspendParts, record: MachineRecord, snapshot: Snapshot) {
  if (!containers.parts.uids.holds(record.id, record.uid_base))
    return "another installation on this host has its user ids by now";
  if (snapshot.criu !== criu.version) return `it was made by CRIU ${snapshot.criu}, and this is ${criu.version}`;
  if (snapshot.runc !== runc_version) return `it was made by runc ${snapshot.runc}, and this is ${runc_version}`;
  const missing = record.layers.find((layer) => !existsSync(layer));
  return missing ? "a layer of its image was removed" : undefined;
}

/** CRIU trusts its input, so it gets authentic data alone. */
async function unseal(
  { containers }: SuspendParts,
  { id, uid_base }: MachineRecord,
  { sealed }: Snapshot,
): Promise<ServedImages> {
  if (!sealed) throw new Error("its memory was not sealed");
  const paths = containers.paths(id);
  openImages(paths, plainBytes(sealed));
  const { snapshot, images } = paths;
  return await unsealed({ snapshot, images, key: containers.parts.memory_key, sealed }, uid_base);
}

async function goOn(
  parts: SuspendParts,
  launch: Launch,
  record: MachineRecord,
  snapshot: Snapshot,
  watch: Stopwatch,
  signal: AbortSignal,
): Promise<MachineRecord> {
  const { containers, criu } = parts;
  const { id, private_ip } = launch;
  const { bundles, layout, network, runc } = containers.parts;
  const paths = containers.paths(id);
  const unusable = problemOf(parts, record, snapshot);
  if (unusable) throw new Error(unusable);
  containers.write({ ...record, state: "resuming" });
  const rebuilt = bundles.rebuild(launch, record, watch);
  const serving = unseal(parts, record, snapshot);
  const [server, volume] = await Promise.all([serving, rebuilt]).catch(async (thrown: unknown) => {
    await serving.then((server) => server[Symbol.asyncDispose]()).catch(() => {});
    // Mounts in progress must finish before they can be removed.
    await rebuilt.catch(() => {});
    throw thrown;
  });
  await using images = server;
  watch.lap("unseal");
  const work = join(paths.run, "criu");
  mkdirSync(work, { recursive: true, mode: 0o700 });
  signal.throwIfAborted();
  // Before it runs, because the app's policy or the firewall may have changed.
  await network.firewall.joinSender(containers.sender(record), launch.egress);
  checkLease(containers.parts.enclosing);
  const restore = { images: paths.images, options: [...CRIU_OPTIONS, "--work-path", work] };
  const pid = await runShim({
    layout,
    paths,
    id,
    runc,
    tty: launch.config.init?.tty ?? false,
    bin: criu.bin,
    restore,
    ...bundles.affinity(id),
  }).catch(async (thrown: unknown) => {
    // CRIU only knows that a file ended too early.
    const fault = await images.fault();
    throw fault ? new ImageServerError(fault, { cause: thrown }) : thrown;
  });
  watch.lap("restore");
  const lost = weaker(snapshot.confined, confinementOf(paths.cgroup));
  if (lost) throw new Error(`it came back less confined: ${lost}`);
  await network.attach(containers.sender(record));
  for (const port of snapshot.ports) {
    const at = { host: private_ip, ipv4: ipv4Of(record), port };
    if (!(await answers(at, ANSWER_MS))) throw new Error(`it does not answer on port ${port} any more`);
  }
  watch.lap("verify");
  const { snapshot: _, ...rest } = { ...record, egress: launch.egress };
  const running = containers.running({ ...rest, ...(volume ? { volume } : {}) }, pid, startOf(pid));
  bundles.resumed(running);
  clearImages(paths);
  discard(paths.snapshot);
  return running;
}
