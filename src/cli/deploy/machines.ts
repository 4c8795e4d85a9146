/** API calls of a deploy for one machine: each waits until it has taken effect, or fails with the reason. */
import type { Machine, MachineConfig } from "#client/api.ts";
import { ClientError } from "#client/client.ts";
import type { Group } from "../app-file/groups.ts";
import { collect } from "../lists.ts";
import { runOf } from "../runs/follow.ts";
import { machineFailed } from "./failure.ts";
import { endReason } from "./health.ts";
import { MACHINE_LEASE_S } from "./lease.ts";
import { oneOffConfig } from "./one-off.ts";
import type { Place } from "./place.ts";
import type { Running } from "./plan.ts";
import { untilEnded, untilHealthy } from "./wait.ts";

const DESTROY_S = "60";

export async function machinesOf({ context, app_name }: Pick<Place, "context" | "app_name">): Promise<Running[]> {
  const machines = await collect(context.client.pages("GET /v1/apps/:app_name/machines", { params: { app_name } }));
  return machines as unknown as Running[];
}

/** A machine keeps its volume. */
export function configFor({ config, mount }: Group, machine: Running): MachineConfig {
  const volume = machine.config.mounts?.[0]?.volume;
  return mount && volume !== undefined ? { ...config, mounts: [{ ...mount.rest, volume }] } : config;
}

export async function update(
  place: Place,
  machine: Running,
  config: MachineConfig,
  /** Waits until healthy or aborted; not at all when absent. */
  wait?: AbortSignal,
): Promise<void> {
  const { context, app_name } = place;
  const params = { app_name, machine_id: machine.id };
  const lease = await context.client.call("POST /v1/apps/:app_name/machines/:machine_id/lease", {
    params,
    query: {},
    body: { ttl: MACHINE_LEASE_S, description: "deploy" },
  });
  const headers = { "svc-machine-lease-nonce": lease.data.nonce };
  place.lease.hold(machine.id, lease.data.nonce);
  try {
    const updated = await context.client.call("POST /v1/apps/:app_name/machines/:machine_id", {
      params,
      headers,
      body: { config, skip_launch: isScheduled(config) },
    });
    if (wait && !isScheduled(config)) await untilHealthy(place, updated, wait);
  } finally {
    place.lease.release(machine.id);
    await context.client
      .call("DELETE /v1/apps/:app_name/machines/:machine_id/lease", { params, headers })
      // The lease expires by itself.
      .catch(() => {});
  }
}

/** Does not wait: the caller must register it before anything can fail. */
export async function create(place: Place, { config, mount }: Group): Promise<Machine> {
  const { context, app_name, region } = place;
  const mounts = mount ? { mounts: [await mountFor(place, mount)] } : {};
  return await context.client.call("POST /v1/apps/:app_name/machines", {
    params: { app_name },
    // A scheduled machine starts at its time, not at each deploy.
    body: { ...(region ? { region } : {}), skip_launch: isScheduled(config), config: { ...config, ...mounts } },
  });
}

export const isScheduled = ({ schedule }: MachineConfig): boolean => schedule !== undefined;

const mountFor = async (place: Place, mount: NonNullable<Group["mount"]>) => ({
  ...mount.rest,
  volume: await freeVolume(place, mount),
});

/** An unattached volume of that name, or a new one. */
async function freeVolume(
  { context, app_name, region, undo, status }: Place,
  { volume_name, size_gb, snapshot_retention }: NonNullable<Group["mount"]>,
): Promise<string> {
  const params = { app_name };
  const volumes = await collect(context.client.pages("GET /v1/apps/:app_name/volumes", { params }));
  const free = volumes.find(
    (volume) =>
      volume.name === volume_name && !volume.attached_machine_id && (region === undefined || volume.region === region),
  );
  if (free) return free.id;
  const made = await context.client.call("POST /v1/apps/:app_name/volumes", {
    params,
    body: {
      name: volume_name,
      size_gb,
      // A platform with one zone may need several volumes in it.
      require_unique_zone: false,
      ...(region ? { region } : {}),
      ...(snapshot_retention === undefined ? {} : { snapshot_retention }),
    },
  });
  undo.add(`volume ${volume_name} (${made.id})`, () =>
    context.client.call("DELETE /v1/apps/:app_name/volumes/:volume_id", { params: { app_name, volume_id: made.id } }),
  );
  status.log(`created volume ${volume_name} (${made.id}), ${size_gb} GB`);
  return made.id;
}

/** Waits until it is destroyed, so that its volume and app can be deleted. */
export async function destroy({ context, app_name }: Place, machine_id: string): Promise<void> {
  const params = { app_name, machine_id };
  try {
    await context.client.call("DELETE /v1/apps/:app_name/machines/:machine_id", { params, query: { force: true } });
    const query = { state: ["destroyed"], timeout: DESTROY_S };
    await context.client.call("GET /v1/apps/:app_name/machines/:machine_id/wait", { params, query });
  } catch (thrown) {
    if (!(thrown instanceof ClientError && thrown.http === 404)) throw thrown;
  }
}

export interface OneOff {
  /** For messages. */
  what: string;
  /** Instead of the group's own. */
  command?: readonly string[];
  kind?: "release";
}

/** Runs a command in a temporary machine, listed by `hangar runs`; fails unless it succeeds. */
export async function runOnce(place: Place, group: Group, { what, command, kind }: OneOff): Promise<void> {
  const { context, app_name, region } = place;
  const config = oneOffConfig(group.config, command, kind);
  const mounts = group.mount && command === undefined ? { mounts: [await mountFor(place, group.mount)] } : {};
  const machine = await context.client.call("POST /v1/apps/:app_name/machines", {
    params: { app_name },
    body: { ...(region ? { region } : {}), config: { ...config, ...mounts } },
  });
  try {
    const ended = await untilEnded(place, machine);
    const reason = endReason(ended);
    if (!reason) return;
    const { id: run_id } = await runOf(context.client, app_name, machine.id);
    throw await machineFailed(place, machine, { what: `${what} did not succeed`, reason, run_id });
  } finally {
    await destroy(place, machine.id);
  }
}
