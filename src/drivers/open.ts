/** Constructs the chosen driver. */
import { join } from "node:path";
import type { Cidr } from "#core/cidr.ts";
import type { Clock } from "#core/clock.ts";
import type { Log } from "#core/log.ts";
import type { KeptLogs } from "#core/log-settings.ts";
import type { IoLimits } from "#core/machine-settings.ts";
import type { Settings } from "#core/settings.ts";
import type { Fence } from "#hosts/fence.ts";
import type { RuntimeDriver } from "#machines/runtime/driver.ts";
import type { ImageSource } from "#machines/runtime/image-source.ts";
import type { LocalApi } from "#machines/runtime/local-api.ts";
import type { VolumeMounts } from "#volumes/mounts.ts";
import type { DriverChoice } from "./choice.ts";
import { type SimOptions, simDriver } from "./runtime/sim/driver.ts";

export interface DriverParts {
  data_dir: string;
  node_id: string;
  clock: Clock;
  log: Log;
  images: ImageSource;
  volumes?: VolumeMounts;
  local_api?: LocalApi;
  /** Seals the memory of suspended machines. */
  memory_key: Uint8Array;
  /** The setting of that name. */
  suspend?: "auto" | "freeze";
  io_limits?: IoLimits;
  kept_logs?: KeptLogs;
  /** Private networks span hosts. */
  routed?: boolean;
  /** The IPv4 block that other hosts have a route to. */
  ipv4_block?: number | undefined;
  /** Closed ranges that machines may reach. */
  egress_allow?: readonly Cidr[];
  /** Set for a host with a lease: whether it is held. */
  enclosing?: { holds(): boolean } | undefined;
  /** World and faults of the sim driver. */
  sim?: Pick<SimOptions, "world" | "fault"> | undefined;
}

export async function openDriver({ name }: DriverChoice, parts: DriverParts): Promise<RuntimeDriver> {
  const { clock, local_api, sim, data_dir } = parts;
  // Simulated machines end with this process, so running ones are adopted from their handles.
  if (name === "sim") {
    const files_dir = join(data_dir, "sim-files");
    return simDriver({ clock, adopt: true, files_dir, ...sim, ...(local_api ? { local_api } : {}) });
  }
  // Loaded on demand: a host without runc need not have its dependencies.
  const { openRuncDriver } = await import("./runtime/runc/driver.ts");
  return await openRuncDriver(parts);
}

/** Freezes the host's machines when its lease ends; not needed for sim. */
export async function openFence(
  { name }: DriverChoice,
  parts: Pick<DriverParts, "data_dir" | "node_id" | "clock" | "log">,
): Promise<Fence | undefined> {
  if (name === "sim") return undefined;
  const runc = await import("./runtime/runc/fence.ts");
  return runc.openFence(parts);
}

/** In a process without machines, the driver only resolves images. */
export async function openRuntime(
  { role, driver }: Pick<Settings, "role" | "driver">,
  choice: DriverChoice,
  parts: DriverParts,
): Promise<RuntimeDriver> {
  if (role !== "control") return await openDriver(choice, parts);
  const sim = simDriver({ clock: parts.clock });
  const resolve: RuntimeDriver["resolve"] = (image, org_id, signal) => parts.images.resolve(image, org_id, signal);
  return driver === "sim"
    ? sim
    : new Proxy(sim, { get: (target, name) => (name === "resolve" ? resolve : bound(target, name)) });
}

function bound(target: RuntimeDriver, name: string | symbol): unknown {
  const value: unknown = Reflect.get(target, name, target);
  return typeof value === "function" ? (value as () => unknown).bind(target) : value;
}
