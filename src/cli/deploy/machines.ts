/** What a deploy does to one machine, over the API: each waits until it is done, and says why it is not. */
import type { Machine, MachineConfig } from "#client/api.ts";
import { ClientError } from "#client/client.ts";
import { systemClock } from "#core/clock.ts";
import type { Group } from "../app-file/groups.ts";
import type { Context } from "../verb.ts";
import type { Running } from "./plan.ts";

const LEASE_S = 300;
const WAIT_S = 30;

export interface Place {
  context: Context;
  app_name: string;
  region: string | undefined;
  /** A machine that is not well by then has failed. */
  wait_ms: number;
}

export async function machinesOf({ context, app_name }: Pick<Place, "context" | "app_name">): Promise<Running[]> {
  const machines = await context.client.call("GET /v1/apps/:app_name/machines", { params: { app_name }, query: {} });
  return machines as unknown as Running[];
}

/** Whether a config says when a machine is well; without that, running is all there is to know. */
function isChecked({ checks, services }: MachineConfig): boolean {
  return Object.keys(checks ?? {}).length > 0 || (services ?? []).some((service) => (service.checks ?? []).length > 0);
}

/** A machine keeps its volume: which one it is, only it knows. */
export function configFor({ config, mount }: Group, machine: Running): MachineConfig {
  const volume = machine.config.mounts?.[0]?.volume;
  return mount && volume !== undefined ? { ...config, mounts: [{ ...mount.rest, volume }] } : config;
}

export async function update(place: Place, machine: Running, config: MachineConfig, wait: boolean): Promise<void> {
  const { context, app_name } = place;
  const params = { app_name, machine_id: machine.id };
  const lease = await context.client.call("POST /v1/apps/:app_name/machines/:machine_id/lease", {
    params,
    query: {},
    body: { ttl: LEASE_S, description: "deploy" },
  });
  const headers = { "svc-machine-lease-nonce": lease.data.nonce };
  try {
    const updated = await context.client.call("POST /v1/apps/:app_name/machines/:machine_id", {
      params,
      headers,
      body: { config },
    });
    if (wait) await untilWell(place, updated, config);
  } finally {
    await context.client
      .call("DELETE /v1/apps/:app_name/machines/:machine_id/lease", { params, headers })
      // It runs out by itself; the deploy is not undone for it.
      .catch(() => {});
  }
}

/** Not waited for: whoever asks must know of it before anything can go wrong. */
export async function create(place: Place, { config, mount }: Group): Promise<Machine> {
  const { context, app_name, region } = place;
  const mounts = mount ? { mounts: [{ ...mount.rest, volume: await freeVolume(place, mount) }] } : {};
  return await context.client.call("POST /v1/apps/:app_name/machines", {
    params: { app_name },
    body: { ...(region ? { region } : {}), config: { ...config, ...mounts } },
  });
}

/** A volume of that name that no machine has, or a new one. */
async function freeVolume(
  { context, app_name, region }: Place,
  { volume_name, size_gb, snapshot_retention }: NonNullable<Group["mount"]>,
): Promise<string> {
  const params = { app_name };
  const volumes = await context.client.call("GET /v1/apps/:app_name/volumes", { params, query: {} });
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
      // A box with one zone has room for more than one of a kind.
      require_unique_zone: false,
      ...(region ? { region } : {}),
      ...(snapshot_retention === undefined ? {} : { snapshot_retention }),
    },
  });
  context.say(`  volume ${volume_name} (${made.id}), ${size_gb} GB, is made`);
  return made.id;
}

export async function destroy({ context, app_name }: Place, machine_id: string): Promise<void> {
  try {
    await context.client.call("DELETE /v1/apps/:app_name/machines/:machine_id", {
      params: { app_name, machine_id },
      query: { force: true },
    });
  } catch (thrown) {
    if (!(thrown instanceof ClientError && thrown.http === 404)) throw thrown;
  }
}

/** Traffic no longer goes to it. */
export async function cordon({ context, app_name }: Place, machine_id: string): Promise<void> {
  await context.client.call("POST /v1/apps/:app_name/machines/:machine_id/cordon", {
    params: { app_name, machine_id },
  });
}

/** Runs a command in a machine of its own; fails unless it ends well. */
export async function runOnce(place: Place, group: Group, command: readonly string[]): Promise<void> {
  const { context, app_name, region } = place;
  const { services: _, checks: __, statics: ___, metrics: ____, ...config } = group.config;
  const machine = await context.client.call("POST /v1/apps/:app_name/machines", {
    params: { app_name },
    body: {
      ...(region ? { region } : {}),
      config: {
        ...config,
        metadata: { release_command: "true" },
        init: { ...config.init, cmd: [...command] },
        restart: { policy: "no" as const },
      },
    },
  });
  try {
    const ended = await waitFor(place, machine, ["stopped", "failed"]);
    const exit = ended.events.find((event) => event.type === "exit")?.request as
      | { exit_event?: { exit_code?: number } }
      | undefined;
    const code = exit?.exit_event?.exit_code;
    if (code === 0) return;
    const why = code === undefined ? `it is ${ended.state}` : `it ended with exit code ${code}`;
    throw new ClientError(0, {
      error: `the release command did not succeed: ${why}`,
      hint: `hangar machines logs ${machine.id} --app ${app_name} tells what it said`,
    });
  } finally {
    await destroy(place, machine.id);
  }
}

export async function untilWell(place: Place, machine: Machine, config: MachineConfig): Promise<void> {
  // Settled first: an update passes through states that would be its end later on.
  let reached = await waitFor(place, machine, ["settled"]);
  if (reached.state === "started" && isChecked(config)) {
    reached = await waitFor(place, machine, ["healthy", "failed", "stopped"]);
  }
  if (reached.state === "started") return;
  throw new ClientError(0, {
    error: `machine ${machine.id} is ${reached.state} instead of running`,
    hint: `hangar machines logs ${machine.id} --app ${place.app_name}`,
  });
}

/** Waits in pieces, because a deploy may take longer than one request should. */
async function waitFor(place: Place, machine: Machine, states: readonly string[]): Promise<Machine> {
  const { context, app_name, wait_ms } = place;
  const params = { app_name, machine_id: machine.id };
  const until = systemClock.monotonic() + wait_ms;
  for (;;) {
    try {
      const left_s = Math.max(1, Math.ceil((until - systemClock.monotonic()) / 1000));
      const timeout = String(Math.min(WAIT_S, left_s));
      const query = { state: [...states], instance_id: machine.instance_id, timeout };
      await context.client.call("GET /v1/apps/:app_name/machines/:machine_id/wait", { params, query });
      return await context.client.call("GET /v1/apps/:app_name/machines/:machine_id", { params, query: {} });
    } catch (thrown) {
      if (!(thrown instanceof ClientError) || thrown.http !== 408) throw thrown;
      if (systemClock.monotonic() < until) continue;
      const { state, checks } = await context.client.call("GET /v1/apps/:app_name/machines/:machine_id", {
        params,
        query: {},
      });
      const bad = Object.entries(checks).find(([, check]) => check.status !== "passing");
      const words = bad ? `check ${bad[0]} says: ${bad[1].output}` : `it is ${state}`;
      throw new ClientError(0, {
        error: `machine ${machine.id} was not well after ${Math.round(wait_ms / 1000)} s: ${words}`,
        hint: `hangar machines logs ${machine.id} --app ${app_name}`,
      });
    }
  }
}
