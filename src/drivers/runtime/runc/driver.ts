import type { Duplex } from "node:stream";
import type { EgressPolicy } from "#core/egress-policy.ts";
import { fail } from "#core/errors.ts";
import { type ListenSocket, unreachableReason } from "#core/listening.ts";
import { KEPT_LOGS } from "#core/log-settings.ts";
import { NO_IO_LIMITS } from "#core/machine-settings.ts";
import type { CheckConfig } from "#machines/config/config-schema.ts";
import type { LogQueue } from "#machines/logs/queue.ts";
import type { LogFound, LogSearch } from "#machines/logs/search.ts";
import type {
  Capabilities,
  Exec,
  ExecResult,
  Exit,
  ExitNotice,
  Launch,
  LogPage,
  LogsFrom,
  Lost,
  MachineProcess,
  Observed,
  Process,
  ProgramOptions,
  Ref,
  ResolvedAddress,
  RuntimeDriver,
  Started,
  StopOptions,
  Suspended,
  Terminal,
  TerminalOptions,
} from "#machines/runtime/driver.ts";
import { OpenStreams } from "#machines/runtime/open-streams.ts";
import type { Handle, ImageRef } from "#machines/types.ts";
import { openFileTable } from "../../linux/file-table.ts";
import { type Probed, probe } from "../../net/probe.ts";
import { swapProblem } from "./cgroup.ts";
import { ioProblem } from "./cgroup-io.ts";
import { connectTo } from "./connect.ts";
import type { ContainerManager } from "./container-manager.ts";
import { delegate } from "./delegation.ts";
import { setEgress } from "./egress.ts";
import { execIn } from "./exec.ts";
import { LogKeeper } from "./logs/log-keeper.ts";
import { readLog, watchLog } from "./logs/logs.ts";
import { DiskLogQueue } from "./logs/queue.ts";
import { SearchThreads } from "./logs/search-threads.ts";
import type { Lxcfs } from "./lxcfs.ts";
import { openParts, type RuncOptions } from "./parts.ts";
import { kill } from "./process-table.ts";
import { Programs } from "./programs.ts";
import { ipv4Of, type MachineRecord } from "./record.ts";
import type { RootDisks } from "./rootfs/root-disk.ts";
import { listeners, processList } from "./stats/ps.ts";
import { rebindMachines } from "./suspend/rebind.ts";
import { recoverHalf } from "./suspend/suspend.ts";
import { probeSuspend } from "./suspend/suspend-probe.ts";
import { Suspender } from "./suspend/suspender.ts";
import { Terminals } from "./terminal.ts";

/** Runs machines as runc containers, each with its own user namespace, disk, network and log. */
export async function openRuncDriver(options: RuncOptions): Promise<RuntimeDriver> {
  const problem = ioProblem(options.io_limits ?? NO_IO_LIMITS);
  if (problem !== undefined)
    throw new Error(`machine_io_… is set, and this host cannot limit I/O: ${problem}. Set the four settings to 0`);
  const { layout, containers, disks, lxcfs } = openParts(options);
  const file_table = openFileTable();
  if (file_table) options.log.warn({}, file_table);
  // Before lxcfs, which must be outside our own unit, and before the fence.
  await delegate(options.node_id, options.clock);
  await containers.open((record) => recoverHalf(containers, record));
  void lxcfs.watch(() => rebindMachines(containers, lxcfs));
  const suspender = new Suspender(containers, (parts) => probeSuspend(options, parts), options.suspend);
  disks.open();
  const keeper = new LogKeeper(layout, options.kept_logs ?? KEPT_LOGS, options);
  keeper.run();
  const log_queue = new DiskLogQueue(layout, keeper.onDamage);
  return new RuncDriver({ containers, disks, keeper, log_queue, suspender, lxcfs });
}

interface DriverParts {
  containers: ContainerManager;
  disks: RootDisks;
  keeper: LogKeeper;
  log_queue: LogQueue;
  suspender: Suspender;
  lxcfs: Lxcfs;
}

class RuncDriver implements RuntimeDriver {
  readonly name = "runc";
  readonly log_queue: LogQueue;
  readonly #containers: ContainerManager;
  readonly #disks: RootDisks;
  readonly #keeper: LogKeeper;
  readonly #searches: SearchThreads;
  readonly #suspender: Suspender;
  readonly #lxcfs: Lxcfs;
  readonly #terminals: Terminals;
  readonly #programs: Programs;
  /** How many commands run in a machine, of machines that have any. */
  readonly #commands = new Map<string, number>();
  readonly #connections = new OpenStreams();

  constructor(of: DriverParts) {
    this.#suspender = of.suspender;
    this.#containers = of.containers;
    this.#terminals = new Terminals(of.containers);
    this.#programs = new Programs(of.containers);
    this.#disks = of.disks;
    this.#keeper = of.keeper;
    this.log_queue = of.log_queue;
    this.#lxcfs = of.lxcfs;
    this.#searches = new SearchThreads({
      paths: (id) => of.containers.paths(id),
      onDamage: of.keeper.onDamage,
    });
  }

  capabilities(): Capabilities {
    const problem = swapProblem();
    return { ...this.#suspender.capabilities(), ...(problem === undefined ? {} : { swap_problem: problem }) };
  }

  resolve(image: string, org_id: string, signal: AbortSignal): Promise<ImageRef> {
    return this.#containers.parts.images.resolve(image, org_id, signal);
  }

  async start(launch: Launch, signal: AbortSignal, extend?: () => void): Promise<Started> {
    this.#keeper.started(launch.id, launch.org_id);
    return await this.#containers.start(launch, signal, extend);
  }

  async stop(ref: Ref, how: StopOptions, signal: AbortSignal): Promise<Exit | undefined> {
    const exit = await this.#containers.stop(ref, how, signal);
    this.#connections.end(ref.id);
    return exit;
  }

  async suspend(ref: Ref, signal: AbortSignal): Promise<Suspended> {
    await Promise.all([this.#terminals.end(ref.id), this.#programs.end(ref.id)]);
    this.#connections.end(ref.id);
    return await this.#suspender.suspend(ref, signal);
  }

  resume(launch: Launch, _handle: Handle, signal: AbortSignal): Promise<Started | Lost> {
    return this.#suspender.resume(launch, signal);
  }

  async destroy(id: string, signal: AbortSignal): Promise<void> {
    await this.#containers.destroy(id, signal);
    this.#connections.end(id);
    this.#keeper.destroyed(id);
  }

  async signal(ref: Ref, name: string): Promise<void> {
    kill(this.#running(ref).pid, name as NodeJS.Signals);
  }

  async exec(ref: Ref, command: Exec, signal: AbortSignal): Promise<ExecResult> {
    const record = this.#running(ref);
    this.#commands.set(ref.id, (this.#commands.get(ref.id) ?? 0) + 1);
    try {
      return await execIn({ containers: this.#containers, record, command, signal });
    } finally {
      const left = (this.#commands.get(ref.id) ?? 1) - 1;
      if (left > 0) this.#commands.set(ref.id, left);
      else this.#commands.delete(ref.id);
    }
  }

  async terminal(ref: Ref, wanted: TerminalOptions, signal: AbortSignal): Promise<Terminal> {
    return await this.#terminals.open(this.#running(ref), wanted, signal);
  }

  async process(ref: Ref, wanted: ProgramOptions, signal: AbortSignal): Promise<MachineProcess> {
    return await this.#programs.open(this.#running(ref), wanted, signal);
  }

  async connect(ref: Ref, port: number, signal: AbortSignal): Promise<Duplex> {
    return this.#connections.add(ref.id, await connectTo(this.#running(ref), port, signal));
  }

  inUse(id: string): boolean {
    const open = [this.#terminals, this.#programs, this.#connections].some((sessions) => sessions.has(id));
    return open || this.#commands.has(id);
  }

  async ps(ref: Ref): Promise<Process[]> {
    const { pid } = this.#running(ref);
    return await processList(this.#containers.paths(ref.id).cgroup, pid);
  }

  async listening(ref: Ref): Promise<ListenSocket[]> {
    return listeners(this.#running(ref).pid);
  }

  async logs(id: string, from: LogsFrom): Promise<LogPage> {
    return await readLog(this.#containers.paths(id), from, this.#keeper.onDamage);
  }

  async searchLogs(search: LogSearch, _host_id?: string, signal?: AbortSignal): Promise<LogFound> {
    return await this.#searches.search(search, signal);
  }

  watchLogs(id: string, wake: () => void): () => void {
    return watchLog(this.#containers.paths(id), wake);
  }

  async probe(ref: Ref, check: CheckConfig, signal: AbortSignal): Promise<Probed> {
    const record = this.#containers.read(ref.id);
    if (record?.boot !== ref.boot || !this.#containers.runs(record)) return { passing: false, output: "nothing runs" };
    const { private_ip, pid } = record;
    const unreachable = (port: number) => unreachableReason(listeners(pid), { proto: "tcp", port });
    return await probe({ private_ip, private_ipv4: ipv4Of(record), unreachable }, check, signal);
  }

  setEgress(id: string, egress: EgressPolicy): Promise<void> {
    return setEgress(this.#containers, id, egress);
  }

  async admitName(id: string, name: string, found: readonly ResolvedAddress[]): Promise<void> {
    const record = this.#containers.read(id);
    if (!record?.egress) return;
    this.#containers.parts.network.firewall.admit(this.#containers.sender(record), record.egress, name, found);
  }

  onExit(listener: (notice: ExitNotice) => void): () => void {
    return this.#containers.onExit(listener);
  }

  recover(known: readonly Ref[]): Promise<Observed[]> {
    return this.#containers.recover(known);
  }

  async close(): Promise<void> {
    this.#terminals.close();
    this.#programs.close();
    this.#connections.close();
    await this.#searches.close();
    await this.#keeper.close();
    this.#lxcfs.close();
    await this.#containers.close();
    await this.#disks.close();
  }

  #running({ id, boot }: Ref): MachineRecord & { pid: number } {
    const record = this.#containers.read(id);
    if (record?.boot !== boot || !this.#containers.runs(record)) fail("wrong_state", `machine ${id} does not run`);
    return record;
  }
}
