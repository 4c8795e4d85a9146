/** Manages the containers of machines on this host: starts, ends and recovers them. */
import { rmSync } from "node:fs";
import type { Exit, ExitNotice, Launch, Observed, Ref, Started, StopOptions } from "#machines/runtime/driver.ts";
import type { HeldImage } from "#machines/runtime/image-source.ts";
import { clearBoot, clearInstallation, endPrograms, killMachine, programsEnded } from "./clearing.ts";
import type { ContainerManagerParts } from "./container-manager-parts.ts";
import { rejoin } from "./egress.ts";
import { checkLease } from "./enclosure.ts";
import { Exits, exitOf } from "./exits.ts";
import { type MachinePaths, pathsOf } from "./layout.ts";
import { RUNC_LIMITS } from "./limits.ts";
import { isAlive, kernelBoot, kill, numberIn, startOf } from "./process-table.ts";
import {
  ipv4Of,
  keeps,
  knownIds,
  type MachineRecord,
  readRecord,
  removeRecord,
  startedOf,
  writeRecord,
} from "./record.ts";
import { discard, discardRest } from "./rootfs/discard.ts";
import { begun, release, runShim } from "./shim.ts";
import { clearImages } from "./suspend/memory-images.ts";
import { Stopwatch } from "./timings.ts";
import { UIDS_LOST } from "./uid-blocks.ts";
import { whileComing } from "./while-coming.ts";

export class ContainerManager {
  readonly parts: ContainerManagerParts;
  readonly #exits: Exits;
  readonly #kernel_boot = kernelBoot();
  /** Exits being recorded, so that concurrent callers share the result. */
  readonly #settling = new Map<string, Promise<Exit | undefined>>();
  /** Clean-ups in progress; the machine's next boot waits for them. */
  readonly #clearing = new Map<string, Promise<void>>();
  readonly #listeners = new Set<(notice: ExitNotice) => void>();

  constructor(parts: ContainerManagerParts) {
    this.parts = parts;
    this.#exits = new Exits(parts.layout, parts.clock, (id) => void this.#onExitFile(id));
  }

  onExit(listener: (notice: ExitNotice) => void): () => void {
    this.#listeners.add(listener);
    return () => void this.#listeners.delete(listener);
  }

  /** After a restart of ours: reads id blocks, and finishes or undoes interrupted operations. */
  async open(recoverHalf: (record: MachineRecord) => Promise<void>): Promise<void> {
    const { layout, log, network, uids } = this.parts;
    await network.firewall.open();
    if (network.firewall.problem)
      log.warn({ problem: network.firewall.problem }, "private networks are not isolated by firewall rules");
    const found = knownIds(layout).map((id) => ({ id, record: readRecord(layout, id) }));
    for (const { id, record } of found) {
      if (!record) continue;
      if (!uids.holds(id, record.uid_base)) log.warn({ machine: id, uid_base: record.uid_base }, UIDS_LOST);
      if (this.isThere(record)) this.parts.bundles.adopt(record);
      network.join(this.paths(id).veth, record.private_ip);
      discardRest(this.paths(id).snapshot);
      // A machine in between still needs them.
      if (record.state !== "suspending" && record.state !== "resuming") clearImages(this.paths(id));
    }
    uids.keepOnly(found.flatMap(({ record }) => record ?? []));
    await Promise.all(found.map(({ record }) => rejoin(this, record)));
    await Promise.all(
      found.map(async ({ id, record }) => {
        // A machine that cannot be repaired must not keep the platform from starting.
        await this.#repair(id, record, recoverHalf).catch((error: unknown) => {
          log.error({ error, machine: id }, "leftovers of a machine could not be removed; its next start tries again");
        });
      }),
    );
  }

  /** Ends every machine and removes the installation from the kernel. Disks and records stay. */
  async down(): Promise<string[]> {
    const ids = knownIds(this.parts.layout);
    const ended = await Promise.allSettled(
      ids.map(async (id) => {
        const record = this.read(id);
        await endPrograms(this.#clearParts(), id);
        await this.#clear(id, record && { ...record, state: "exited" });
        // A machine with a snapshot on disk is not in the kernel.
        if (!record || record.state === "frozen") return;
        this.write({ ...record, state: "exited" });
        this.parts.uids.release(id, record.uid_base);
      }),
    );
    await clearInstallation(this.parts);
    for (const one of ended) if (one.status === "rejected") throw one.reason;
    return ids;
  }

  async #repair(
    id: string,
    record: MachineRecord | undefined,
    recoverHalf: (record: MachineRecord) => Promise<void>,
  ): Promise<void> {
    const { layout, log } = this.parts;
    if (record?.state === "running" || record?.state === "frozen" || record?.state === "paused") return;
    if (record?.state === "exited") return await this.#clear(id, record);
    log.info({ machine: id, state: record?.state ?? "unknown" }, "what was half done is finished or taken back");
    if (record?.state === "suspending" || record?.state === "resuming") {
      // CRIU is working on the machine's processes: it is allowed to finish.
      await programsEnded(this.#clearParts(), id);
      return await recoverHalf(record);
    }
    await endPrograms(this.#clearParts(), id);
    await this.#clear(id, record);
    if (!record) return removeRecord(layout, id);
    this.write({ ...record, state: "exited" });
  }

  read(id: string): MachineRecord | undefined {
    return readRecord(this.parts.layout, id);
  }

  paths(id: string): MachinePaths {
    return pathsOf(this.parts.layout, id);
  }

  write(record: MachineRecord, durable = false): MachineRecord {
    return writeRecord(this.parts.layout, record, durable);
  }

  runs(record: MachineRecord | undefined): record is MachineRecord & { pid: number } {
    return record?.state === "running" && this.isThere(record);
  }

  /** Whether its first process exists, running or frozen. */
  isThere({ id, kernel_boot, pid, pid_start }: MachineRecord): boolean {
    return kernel_boot === this.#kernel_boot && isAlive(pid, pid_start) && !this.#exits.read(id);
  }

  async start(launch: Launch, signal: AbortSignal, extend = (): void => {}): Promise<Started> {
    signal.throwIfAborted();
    const { id, boot } = launch;
    const before = this.read(id);
    if (before?.boot === boot && this.runs(before)) return startedOf(before);
    await this.#vacate(id, before, keeps(launch, before));
    const { ipv4_block } = this.parts;
    const watch = new Stopwatch(this.parts.clock);
    const image = await whileComing(extend, this.parts.images.hold(launch, launch.image_ref, signal));
    watch.lap("image");
    signal.throwIfAborted();
    const intent = this.write({
      id,
      boot,
      state: "starting",
      uid_base: this.parts.uids.take(id, before?.uid_base),
      private_ip: launch.private_ip,
      ...(ipv4_block === undefined ? {} : { ipv4_block }),
      version: launch.instance_id,
      layers: image.layers,
      egress: launch.egress,
    });
    try {
      const record = await this.#boot(launch, intent, image, signal, watch);
      this.parts.onTimings?.(id, watch.end());
      this.parts.log.debug({ machine: id, ...watch.end() }, "a machine has started");
      return { ...startedOf(record), image_ref: image.ref };
    } catch (thrown) {
      await this.#clear(id, this.read(id));
      this.write({ ...intent, state: "exited" });
      throw thrown;
    }
  }

  async #boot(
    launch: Launch,
    intent: MachineRecord,
    image: HeldImage,
    signal: AbortSignal,
    watch: Stopwatch,
  ): Promise<MachineRecord> {
    const { bundles, layout, network, runc, clock } = this.parts;
    const { id } = launch;
    const paths = this.paths(id);
    const staged = this.write(await bundles.build(launch, intent, image, watch));
    signal.throwIfAborted();
    // In parallel: the rules may name a device that does not exist yet.
    const [pid] = await Promise.all([
      runShim({ layout, paths, id, runc, tty: launch.config.init?.tty ?? false, ...bundles.affinity(id) }),
      network.firewall.joinSender(this.sender(staged), launch.egress),
    ]);
    bundles.limitIo(staged);
    watch.lap("monitor and runc");
    signal.throwIfAborted();
    checkLease(this.parts.enclosing);
    const pid_start = startOf(pid);
    const alive = (): boolean => startOf(pid) !== undefined;
    const reached = network.attach(this.sender(staged));
    await Promise.all([reached, release(paths, alive, clock).then(() => begun(pid, alive, clock))]);
    const record = this.running(staged, pid, pid_start);
    await bundles.started(id);
    watch.lap("release");
    return record;
  }

  /** Addresses from which a machine may send. */
  sender(record: MachineRecord) {
    return { veth: this.paths(record.id).veth, private_ip: record.private_ip, ipv4: ipv4Of(record) };
  }

  /** Records it as running. If it has exited meanwhile, its notice came too early and is handled now. */
  running(record: MachineRecord, pid: number, pid_start: string | undefined): MachineRecord {
    const running = this.write({
      ...record,
      state: "running",
      pid,
      ...(pid_start === undefined ? {} : { pid_start }),
      kernel_boot: this.#kernel_boot,
    });
    if (this.#exits.read(record.id)) setImmediate(() => void this.#onExitFile(record.id));
    return running;
  }

  /** Removes leftovers of an earlier boot before the next. */
  async #vacate(id: string, before: MachineRecord | undefined, keep_rootfs: boolean): Promise<void> {
    if (this.runs(before)) killMachine(this.paths(id), before.pid);
    if (before?.state === "running") await this.settle(before);
    if (before?.state === "paused") await this.dropSnapshot(id);
    await this.#settling.get(id);
    await this.#clear(id, before);
    const paths = this.paths(id);
    this.#exits.forget(id);
    rmSync(paths.snapshot, { recursive: true, force: true });
    if (!keep_rootfs) rmSync(paths.disk, { force: true });
  }

  async stop({ id, boot }: Ref, how: StopOptions, signal: AbortSignal): Promise<Exit | undefined> {
    signal.throwIfAborted();
    const record = this.read(id);
    if (record?.boot !== boot) return undefined;
    if (record.state === "frozen") return this.#drop(record);
    if (record.state === "paused") return await this.dropSnapshot(id);
    if (record.state === "exited") return record.exit;
    if (this.runs(record)) {
      const { pid } = record;
      const over = (): boolean => signal.aborted || !this.runs(record);
      if (how.signal !== "SIGKILL") kill(pid, how.signal as NodeJS.Signals);
      const ended = how.signal !== "SIGKILL" && (await this.#exits.wait(id, how.timeout_ms, over));
      signal.throwIfAborted();
      if (!ended) killMachine(this.paths(id), pid);
    }
    return await this.settle(record);
  }

  /** Ends a machine after its snapshot was written, without an exit notice. */
  async quietEnd(record: MachineRecord): Promise<void> {
    const { id } = record;
    await this.#exits.wait(id, RUNC_LIMITS.kill_ms, () => !this.#monitorLives(id));
    await this.#clear(id, record);
    this.#exits.forget(id);
  }

  /** Drops an unusable or unwanted snapshot: the machine is stopped, with its root disk. */
  async dropSnapshot(id: string): Promise<undefined> {
    const record = this.read(id);
    await endPrograms(this.#clearParts(), id);
    await this.#clear(id, record && { ...record, state: "exited" });
    this.#exits.forget(id);
    return record && this.#drop(record);
  }

  /** A suspended machine that is stopped loses its memory. */
  #drop(record: MachineRecord): undefined {
    const { snapshot: _, paused: __, ...rest } = record;
    this.write({ ...rest, state: "exited" });
    discard(this.paths(record.id).snapshot);
  }

  /** Records the exit of a boot, then cleans up in the background. */
  settle(record: MachineRecord): Promise<Exit | undefined> {
    const { id } = record;
    let settling = this.#settling.get(id);
    if (!settling) {
      settling = this.#settle(record).finally(() => this.#settling.delete(id));
      this.#settling.set(id, settling);
    }
    return settling;
  }

  async #settle(record: MachineRecord): Promise<Exit | undefined> {
    const { id } = record;
    // The monitor writes the exit file after the last output; without a monitor there will be none.
    await this.#exits.wait(
      id,
      RUNC_LIMITS.kill_ms,
      () => !this.#monitorLives(id) && !isAlive(record.pid, record.pid_start),
    );
    const of = { cgroup: this.paths(id).cgroup, program: record.program };
    const exit = exitOf(this.#exits.read(id), of, this.parts.clock.now());
    this.write({ ...record, state: "exited", exit });
    this.#exits.forget(id);
    const cleared = this.#clear(id, record);
    // The volume must be free for its next user.
    if (record.volume) await cleared;
    return exit;
  }

  #monitorLives(id: string): boolean {
    const pid = numberIn(this.paths(id).monitor_pid);
    return pid !== undefined && startOf(pid) !== undefined;
  }

  /** Handles exit files even when no caller waits for them. */
  async #onExitFile(id: string): Promise<void> {
    try {
      const record = this.read(id);
      if (record?.state !== "running" || this.#settling.has(id)) return;
      const exit = await this.settle(record);
      if (exit) for (const listener of this.#listeners) listener({ id, boot: record.boot, ...exit });
    } catch (error) {
      this.parts.log.error({ error, machine: id }, "the exit of a machine could not be recorded; retrying");
    }
  }

  /** Cleans up the kernel objects of a machine, one call at a time. */
  #clear(id: string, record: MachineRecord | undefined): Promise<void> {
    const before = this.#clearing.get(id) ?? Promise.resolve();
    const clearing = before
      .catch(() => {})
      .then(async () => {
        await clearBoot(this.#clearParts(), id, record?.volume);
        // Until sealed, they are the memory of a machine that was just suspended.
        if (record?.state !== "suspending") clearImages(this.paths(id));
      });
    const settled = clearing.finally(() => {
      if (this.#clearing.get(id) === settled) this.#clearing.delete(id);
    });
    settled.catch((error: unknown) =>
      this.parts.log.warn({ error, machine: id }, "not all kernel objects of a machine could be removed"),
    );
    this.#clearing.set(id, settled);
    return settled;
  }

  #clearParts() {
    const { layout, network, bundles, clock } = this.parts;
    return { layout, network, bundles, clock };
  }

  async destroy(id: string, signal: AbortSignal): Promise<void> {
    signal.throwIfAborted();
    const record = this.read(id);
    if (this.runs(record)) killMachine(this.paths(id), record.pid);
    if (record?.state === "running") await this.settle(record);
    if (record?.state === "paused") await this.dropSnapshot(id);
    await this.#clear(id, record);
    if (record) {
      await this.parts.network.firewall.leaveSender(this.sender(record));
      await this.parts.network.leave(this.paths(id).veth, record.private_ip);
    }
    await this.parts.local_api?.remove(id);
    await this.parts.images.release(id);
    this.#exits.forget(id);
    rmSync(this.paths(id).unfenced, { force: true });
    removeRecord(this.parts.layout, id);
    if (record) this.parts.uids.release(id, record.uid_base);
  }

  async recover(known: readonly Ref[]): Promise<Observed[]> {
    const queried = new Set(known.map(({ id, boot }) => `${id}/${boot}`));
    const found: Observed[] = [];
    for (const { id, boot } of known) found.push(await this.#observe(id, boot));
    for (const id of knownIds(this.parts.layout)) {
      const record = this.read(id);
      if (!record || queried.has(`${id}/${record.boot}`)) continue;
      const seen = await this.#observe(id, record.boot);
      if (seen.state !== "gone") found.push(seen);
    }
    return found;
  }

  async #observe(id: string, boot: string): Promise<Observed> {
    const record = this.read(id);
    if (record?.boot !== boot) return { id, boot, state: "gone" };
    // A suspended machine lost by a host restart is reported at its resume.
    if (record.state === "frozen" || record.state === "paused") return { id, boot, state: "frozen" };
    if (this.runs(record)) return { id, boot, state: "running", private_ipv4: ipv4Of(record) };
    // In other states a call in progress reports the outcome.
    if (record.state === "running") await this.settle(record);
    const { exit } = this.read(id) ?? record;
    return { id, boot, state: "gone", ...(exit ? { exit } : {}) };
  }

  async close(): Promise<void> {
    this.#exits.close();
    await Promise.allSettled([...this.#settling.values(), ...this.#clearing.values()]);
    if (knownIds(this.parts.layout).length === 0) await clearInstallation(this.parts);
  }
}
