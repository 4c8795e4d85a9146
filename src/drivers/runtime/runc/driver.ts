import type { Clock } from "#core/clock.ts";
import type { Log } from "#core/log.ts";
import type { CheckConfig } from "#machines/config-schema.ts";
import {
  type Capabilities,
  type Exec,
  type ExecResult,
  type Exit,
  type ExitNotice,
  type Launch,
  type LogLine,
  type Observed,
  type Process,
  type Ref,
  type RuntimeDriver,
  type Started,
  type StopHow,
  SuspendRefused,
} from "#machines/driver.ts";
import type { ImageSource } from "#machines/image-source.ts";
import type { LocalApi } from "#machines/local-api.ts";
import type { Handle, ImageRef } from "#machines/types.ts";
import type { VolumeMounts } from "#volumes/mounts.ts";
import { PrivateNetwork } from "../../net/private-network.ts";
import { Boots } from "./boots.ts";
import { execIn } from "./exec.ts";
import { UserNamespaces } from "./idmap.ts";
import { layoutOf, makeLayout } from "./layout.ts";
import { RUNC_LIMITS } from "./limits.ts";
import { readLog } from "./logs.ts";
import { kill } from "./process-table.ts";
import { processList } from "./ps.ts";
import type { MachineRecord } from "./record.ts";
import { RootDisks } from "./root-disk.ts";
import { Stage } from "./stage.ts";
import type { Timings } from "./timings.ts";

export interface RuncOptions {
  data_dir: string;
  /** Names this installation among others on the same host. */
  node_id: string;
  clock: Clock;
  log: Log;
  images: ImageSource;
  volumes?: VolumeMounts;
  local_api?: LocalApi;
  root_disk_bytes?: number;
  /** Told how the time of each start divided. */
  onTimings?: (id: string, timings: Timings) => void;
  /** Told of each private network that comes to this host, by the host's own address in it, where names are asked for. */
  onNetwork?: (gateway: string) => void;
}

/** Where Debian puts it; conmon wants the whole path. */
const RUNC = "/usr/sbin/runc";

/** Machines as containers of runc, each with a user namespace, a disk, a network and a log of its own. */
export async function openRuncDriver(options: RuncOptions): Promise<RuntimeDriver> {
  const { clock, log, images, volumes, local_api, onTimings } = options;
  const layout = layoutOf(options.data_dir, options.node_id);
  makeLayout(layout);
  const network = new PrivateNetwork(options.node_id, options.onNetwork);
  const namespaces = new UserNamespaces();
  const disks = new RootDisks(layout.machines, options.root_disk_bytes ?? RUNC_LIMITS.root_disk_bytes);
  const ports = { ...(volumes ? { volumes } : {}), ...(local_api ? { local_api } : {}) };
  const stage = new Stage({ layout, disks, namespaces, network, clock, userns: true, ...ports });
  const boots = new Boots({
    layout,
    runc: RUNC,
    clock,
    log,
    images,
    network,
    stage,
    ...(local_api ? { local_api } : {}),
    ...(onTimings ? { onTimings } : {}),
  });
  await boots.open();
  return new RuncDriver(boots, namespaces);
}

class RuncDriver implements RuntimeDriver {
  readonly name = "runc";
  readonly #boots: Boots;
  readonly #namespaces: UserNamespaces;

  constructor(boots: Boots, namespaces: UserNamespaces) {
    this.#boots = boots;
    this.#namespaces = namespaces;
  }

  capabilities(): Capabilities {
    return { suspend: false, suspend_reason: "not yet" };
  }

  resolve(image: string, org_id: string, signal: AbortSignal): Promise<ImageRef> {
    return this.#boots.parts.images.resolve(image, org_id, signal);
  }

  start(launch: Launch, signal: AbortSignal): Promise<Started> {
    return this.#boots.start(launch, signal);
  }

  stop(ref: Ref, how: StopHow, signal: AbortSignal): Promise<Exit | undefined> {
    return this.#boots.stop(ref, how, signal);
  }

  async suspend(_ref: Ref, _signal: AbortSignal): Promise<Handle> {
    throw new SuspendRefused("not yet");
  }

  async resume(): Promise<Started | undefined> {
    return undefined;
  }

  destroy(id: string, signal: AbortSignal): Promise<void> {
    return this.#boots.destroy(id, signal);
  }

  async signal(ref: Ref, name: string): Promise<void> {
    kill(this.#running(ref).pid, name as NodeJS.Signals);
  }

  async exec(ref: Ref, command: Exec, signal: AbortSignal): Promise<ExecResult> {
    const record = this.#running(ref);
    return await execIn({ boots: this.#boots, record, command, signal });
  }

  async ps(ref: Ref): Promise<Process[]> {
    const { pid } = this.#running(ref);
    return await processList(this.#boots.paths(ref.id).cgroup, pid);
  }

  async logs(id: string, tail: number): Promise<LogLine[]> {
    return await readLog(this.#boots.paths(id), tail);
  }

  async probe(_ref: Ref, _check: CheckConfig, _signal: AbortSignal): Promise<{ passing: boolean; output: string }> {
    return { passing: true, output: "" };
  }

  onExit(listener: (notice: ExitNotice) => void): () => void {
    return this.#boots.onExit(listener);
  }

  recover(known: readonly Ref[]): Promise<Observed[]> {
    return this.#boots.recover(known);
  }

  async close(): Promise<void> {
    await this.#boots.close();
    await this.#namespaces.close();
  }

  #running({ id, boot }: Ref): MachineRecord & { pid: number } {
    const record = this.#boots.read(id);
    if (record?.boot !== boot || !this.#boots.runs(record)) throw new Error(`machine ${id} does not run`);
    return record;
  }
}
