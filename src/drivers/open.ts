/** The driver that was chosen, put together. */
import type { Cidr } from "#core/cidr.ts";
import type { Clock } from "#core/clock.ts";
import type { Log } from "#core/log.ts";
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
  /** Private networks go on at other hosts. */
  routed?: boolean;
  /** The block of IPv4 addresses that other hosts have a route to. */
  ipv4_block?: number | undefined;
  /** Ranges that are closed to machines unless they are named here. */
  egress_allow?: readonly Cidr[];
  /** Of a host with a lease: whether it holds. */
  enclosing?: { holds(): boolean } | undefined;
  /** The box of the sim driver, and what goes wrong on it. */
  sim?: Pick<SimOptions, "world" | "fault"> | undefined;
}

export async function openDriver({ name }: DriverChoice, parts: DriverParts): Promise<RuntimeDriver> {
  const { clock, local_api, sim } = parts;
  // Nothing of sim outlives this process, so what was running is taken back by what its handle tells.
  if (name === "sim") return simDriver({ clock, adopt: true, ...sim, ...(local_api ? { local_api } : {}) });
  // Loaded here: a box that cannot run it need not have what it stands on.
  const { openRuncDriver } = await import("./runtime/runc/driver.ts");
  return await openRuncDriver(parts);
}

/** What stops all machines of this host when its lease is over; nothing of sim runs, so nothing stops it. */
export async function openFence(
  { name }: DriverChoice,
  parts: Pick<DriverParts, "data_dir" | "node_id" | "clock" | "log">,
): Promise<Fence | undefined> {
  if (name === "sim") return undefined;
  const runc = await import("./runtime/runc/fence.ts");
  return runc.openFence(parts);
}

/** In a process that runs no machines itself, the driver only says what images are. */
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
