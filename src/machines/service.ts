import type { Clock } from "#core/clock.ts";
import { fail } from "#core/errors.ts";
import type { Ids } from "#core/ids.ts";
import { checkSlug } from "#core/names.ts";
import type { HostService } from "#hosts/service.ts";
import { accept, runs } from "./accept.ts";
import { complete, mergeConfig, sizeOf } from "./config.ts";
import type { Draft } from "./draft.ts";
import type { RuntimeDriver } from "./driver.ts";
import type { Leases } from "./lease.ts";
import type { Ledger } from "./ledger.ts";
import { MACHINE_LIMITS } from "./limits.ts";
import { machineName, privateAddress } from "./names.ts";
import type { PrivateNetworks } from "./private-networks.ts";
import { mountedVolume, mountWarnings, refuseReferences, standbyProblems } from "./references.ts";
import { keepVolume, refuse, refuseInsert, refuseMoving, refuseStale, volumeProblems } from "./rules.ts";
import { firstRun } from "./schedule.ts";
import type { ListFilter, MachineStore } from "./store.ts";
import type { ImageRef, Machine, MachineConfig, OperationPayload, ShownMachine, Source } from "./types.ts";

interface MachineParts {
  store: MachineStore;
  ledger: Ledger;
  leases: Leases;
  hosts: HostService;
  driver: RuntimeDriver;
  networks: Pick<PrivateNetworks, "prefix">;
  clock: Clock;
  volumes?: VolumeFinder;
}

/** Where volumes are; the room that keeps them answers it. */
export interface VolumeFinder {
  locate(volume_id: string): Promise<VolumePlace | undefined>;
  /** The volumes of an app that have this name. */
  named(app_id: string, name: string): Promise<VolumePlace[]>;
  /** Whether volumes can go from one host to another; absent is no. */
  readonly movable?: boolean;
  /** A volume goes where its machine has gone; what cannot be begun now is begun when the machine starts there. */
  follow?(volume_id: string, host_id: string): Promise<void>;
}

export interface VolumePlace {
  id: string;
  app_id: string;
  name: string;
  size_gb: number;
  encrypted: boolean;
  region: string;
  host_id: string;
  attached_machine_id: string | null;
  /** Why it cannot be mounted yet, or any more. */
  unready?: string;
}

/** Whose machine it is to be. */
export interface Owner {
  org_id: string;
  app_id: string;
  app_name: string;
  network: string;
}

export interface CreateWish {
  name?: string | undefined;
  region?: string | undefined;
  config: MachineConfig;
  skip_launch?: boolean | undefined;
  skip_service_registration?: boolean | undefined;
  lease_ttl?: number | undefined;
  min_secrets_version?: number | undefined;
}

export interface UpdateWish extends CreateWish {
  current_version?: string | undefined;
}

/** Who asks: for events, leases, and the lease's nonce when there is one. */
export interface Asker {
  name: string;
  nonce?: string | undefined;
  source?: Source;
  /** Why, for the event: what asks by itself explains itself. */
  reason?: string;
  ids: Ids;
  /** Aborted when the asker has gone: then a registry need not answer any more. */
  signal?: AbortSignal;
}

const NEVER = new AbortController().signal;

/** The rules about machines. Knows no HTTP, no SQL and no container: those come in through `parts`. */
export class MachineService {
  readonly #parts: MachineParts;

  constructor(parts: MachineParts) {
    this.#parts = parts;
  }

  async get(app_id: string, id: string): Promise<Machine> {
    const machine = await this.#parts.store.find(id);
    if (!machine || machine.app_id !== app_id) fail("not_found", `machine not found: ${id}`);
    return machine;
  }

  async list(app_id: string, filter: ListFilter): Promise<ShownMachine[]> {
    return await this.#parts.store.list(app_id, filter);
  }

  async count(app_id: string): Promise<number> {
    return await this.#parts.store.count(app_id);
  }

  async counts(org_id: string): Promise<ReadonlyMap<string, number>> {
    return await this.#parts.store.counts(org_id);
  }

  async create(owner: Owner, wish: CreateWish, asker: Asker): Promise<Machine> {
    const { ledger, leases, store } = this.#parts;
    const { ids } = asker;
    const id = ids.hex(14);
    let name = wish.name ?? machineName(ids);
    checkSlug(name, "body.name");
    refuse(await standbyProblems(this.#parts, { app_id: owner.app_id, machine_id: id }, wish.config));
    let pinned = await this.#volumePlace(owner, wish, id);
    const image_ref = await this.#resolve(wish.config.image, owner.org_id, asker);
    // Placed anew when the host that had room is full by the time it is written.
    for (let race = 0; race < MACHINE_LIMITS.write_races; race++) {
      const { volume, ...place } = pinned;
      const machine = await this.#blank(owner, { ...wish, ...place, name, image_ref }, id, ids);
      const { result, machine: made } = await ledger.insert(
        machine,
        (draft) => {
          if (wish.lease_ttl) leases.grant(draft, { owner: asker.name, description: "", ttl_s: wish.lease_ttl }, ids);
          if (volume) draft.attach(volume);
          draft.note("launch", "created", asker.source ?? "user");
          if (!wish.skip_launch) draft.queue("start", { source: asker.source ?? "user" });
        },
        ids,
      );
      if (result === "inserted") return made;
      if (result === "exists") return (await store.find(id)) ?? made;
      // A made-up name that another machine has is ours to change, not the caller's.
      if (result === "name_taken" && wish.name === undefined) name = machineName(ids);
      // Somebody else was faster; who, is what the refusal says.
      else if (result === "volume") pinned = await this.#volumePlace(owner, wish, id);
      else if (result !== "capacity") refuseInsert(result, name, owner.app_name);
    }
    fail("conflict", "the hosts fill up faster than a machine can be placed; try again", { retry_after_s: 1 });
  }

  /** What the image's name stands for now, as it would for a machine of the organization that is created now. */
  async resolveImage(image: string, org_id: string, signal: AbortSignal): Promise<ImageRef> {
    return await this.#parts.driver.resolve(image, org_id, signal);
  }

  /** Replaces the whole config. The machine becomes a new version and runs, unless it is asked not to. */
  async update(machine: Machine, wish: UpdateWish, asker: Asker): Promise<Machine> {
    const instance_id = asker.ids.ulid();
    const image_ref = await this.#resolve(wish.config.image, machine.org_id, asker);
    return await this.#update(machine, { ...wish, image_ref }, asker, instance_id, () => wish.config);
  }

  /** Merges into the config (JSON merge patch): what is not named stays, null removes. */
  async patch(machine: Machine, wish: Omit<UpdateWish, "config"> & { patch: unknown }, asker: Asker): Promise<Machine> {
    const instance_id = asker.ids.ulid();
    const { image } = (wish.patch ?? {}) as { image?: unknown };
    // An image that is not named stays what it was, whatever its tag stands for by now.
    const named = typeof image === "string" ? { image_ref: await this.#resolve(image, machine.org_id, asker) } : {};
    return await this.#update(machine, { ...wish, ...named }, asker, instance_id, (before) =>
      mergeConfig(before.config, wish.patch),
    );
  }

  async #update(
    machine: Machine,
    wish: Omit<UpdateWish, "config"> & { image_ref?: ImageRef },
    asker: Asker,
    instance_id: string,
    configFrom: (before: Machine) => MachineConfig,
  ): Promise<Machine> {
    const { leases, clock } = this.#parts;
    refuseMoving(machine, wish);
    const { app_id, id: machine_id, config: known } = machine;
    await refuseReferences(this.#parts, { app_id, machine_id, before: known }, keepVolume(configFrom(machine), known));
    return await this.#parts.ledger.change(
      machine.id,
      (draft) => {
        const before = draft.machine;
        // The same request a second time, after a crash between writing and answering.
        if (before.instance_id === instance_id) return false;
        leases.check(before, asker.nonce);
        refuseStale(before, wish.current_version);
        const config = complete(keepVolume(configFrom(before), before.config));
        refuse(volumeProblems(before.config, config));
        const { cpus, memory_mb } = sizeOf(config);
        const launch = runs(draft) || !wish.skip_launch;
        const was_created = draft.projected === "created";
        draft.replaceConfig({
          config,
          instance_id,
          image_ref: wish.image_ref ?? before.image_ref,
          cpus,
          memory_mb,
          checks: {},
          next_run_at:
            before.config.schedule === config.schedule
              ? before.next_run_at
              : firstRun(config.schedule, before, clock.now()),
          ...(wish.min_secrets_version === undefined ? {} : { secrets_version: wish.min_secrets_version }),
          ...(wish.skip_service_registration ? { cordoned: true } : {}),
        });
        if (wish.lease_ttl) {
          leases.grant(draft, { owner: asker.name, description: "", ttl_s: wish.lease_ttl }, asker.ids);
        }
        return accept(draft, "update", { source: asker.source ?? "user", launch, was_created });
      },
      asker.ids,
    );
  }

  /** What a request for a machine says that is otherwise, without being in the way. */
  async warnings({ config }: Machine, { region }: { region?: string | undefined }): Promise<string[]> {
    const { hosts } = this.#parts;
    return [...(await mountWarnings(this.#parts, config)), ...hosts.regionWarnings(region)];
  }

  /** Answers where the machine was. A machine that runs, or is about to, is left alone. */
  async start(id: string, asker: Asker): Promise<{ before: string; machine: Machine }> {
    let before = "";
    const machine = await this.#ask(id, asker, (draft) => {
      before = draft.machine.state;
      return accept(draft, "start", payloadOf(asker));
    });
    return { before, machine };
  }

  async stop(id: string, how: Pick<OperationPayload, "signal" | "timeout_ms">, asker: Asker): Promise<Machine> {
    return await this.#ask(id, asker, (draft) => accept(draft, "stop", { ...payloadOf(asker), ...how }));
  }

  async suspend(id: string, asker: Asker): Promise<Machine> {
    return await this.#ask(id, asker, (draft) => accept(draft, "suspend", payloadOf(asker)));
  }

  async restart(id: string, how: Pick<OperationPayload, "signal" | "timeout_ms">, asker: Asker): Promise<Machine> {
    return await this.#ask(id, asker, (draft) => accept(draft, "restart", { source: asker.source ?? "user", ...how }));
  }

  /** `force` stops a running machine as its config says, `kill` ends it with SIGKILL at once. */
  async destroy(id: string, how: { force?: boolean; kill?: boolean }, asker: Asker): Promise<Machine> {
    return await this.#ask(id, asker, (draft) => {
      if (draft.machine.state !== "destroying" && !how.force && !how.kill && runs(draft)) {
        fail("machine_running", `unable to destroy machine, not currently stopped: it is ${draft.machine.state}`, {
          facts: { current_state: draft.machine.state },
          hint: "stop it first, or add ?force=true",
        });
      }
      return accept(draft, "destroy", { source: asker.source ?? "user", ...(how.kill ? KILL : {}) });
    });
  }

  /** The proxy stops, or goes on, sending requests to it; its state stays. */
  async cordon(id: string, cordoned: boolean, asker: Asker): Promise<Machine> {
    return await this.#ask(id, asker, (draft) => {
      if (draft.machine.cordoned === cordoned) return false;
      draft.set({ cordoned });
      draft.note(cordoned ? "cordon" : "uncordon", draft.machine.state, asker.source ?? "user");
      return true;
    });
  }

  /** Destroys every machine of an app, running or not, for an app that is being deleted. */
  async destroyAll(app_id: string, asker: Asker): Promise<Machine[]> {
    const machines = await this.#parts.store.list(app_id, {});
    return await Promise.all(
      machines.map((machine) =>
        this.#parts.ledger.change(machine.id, (draft) => {
          if (draft.machine.state === "destroyed") return false;
          draft.set({ lease: null });
          return accept(draft, "destroy", { source: asker.source ?? "user", reason: "the app is deleted", ...KILL });
        }),
      ),
    );
  }

  async #ask(id: string, { nonce, ids }: Asker, decide: (draft: Draft) => boolean): Promise<Machine> {
    const { ledger, leases, hosts } = this.#parts;
    return await ledger.change(
      id,
      (draft) => {
        if (draft.machine.state === "destroyed") fail("not_found", `machine not found: ${id} is destroyed`);
        leases.check(draft.machine, nonce);
        if (!hosts.reachable(draft.machine.host_id)) {
          fail(
            "host_unreachable",
            `deploys to this host are temporarily disabled: host ${draft.machine.host_id} has failed`,
          );
        }
        return decide(draft);
      },
      ids,
    );
  }

  /** A machine goes where its volume is. Fails when it cannot: the volume is elsewhere, or taken. */
  async #volumePlace(
    { app_id }: Owner,
    wish: CreateWish,
    machine_id: string,
  ): Promise<{ config: MachineConfig; region?: string; host_id?: string; volume?: string }> {
    const { config, place } = await mountedVolume(this.#parts, { app_id, machine_id }, wish);
    return place ? { config, region: place.region, host_id: place.host_id, volume: place.id } : { config };
  }

  async #blank(
    owner: Owner,
    wish: CreateWish & { name: string; host_id?: string; image_ref: ImageRef },
    id: string,
    ids: Ids,
  ): Promise<Machine> {
    const { hosts, clock, networks } = this.#parts;
    const config = complete(wish.config);
    const { cpus, memory_mb } = sizeOf(config);
    const { region, host_id } = wish;
    const host = await hosts.place({ region, cpus, memory_mb, ...(host_id ? { host_id } : {}) });
    const created_at = clock.now();
    const { org_id, app_id, app_name } = owner;
    const prefix = await networks.prefix(org_id, owner.network);
    return {
      id,
      org_id,
      app_id,
      app_name,
      name: wish.name,
      region: wish.region ?? host.region,
      host_id: host.id,
      private_ip: privateAddress({ id, network: prefix, host_id: host.id }),
      created_at,
      revision: 0,
      updated_at: created_at,
      state: "created",
      instance_id: ids.ulid(),
      image_ref: wish.image_ref,
      cordoned: wish.skip_service_registration ?? false,
      secrets_version: wish.min_secrets_version ?? 0,
      pending: 0,
      deadline_at: null,
      next_run_at: firstRun(config.schedule, { created_at }, created_at),
      boot: null,
      handle: null,
      boot_stop_config: null,
      snapshot: false,
      private_ipv4: null,
      started_at: null,
      restarts: 0,
      cpus,
      memory_mb,
      reserved: false,
      lease: null,
      checks: {},
      events: [],
      config,
    };
  }

  async #resolve(image: string, org_id: string, { signal = NEVER }: Asker): Promise<ImageRef> {
    return await this.resolveImage(image, org_id, signal);
  }
}

const KILL = { signal: "SIGKILL", timeout_ms: 0 } as const;

/** Who asked and why, as it is put down. */
const payloadOf = ({ source, reason }: Asker): OperationPayload => ({
  source: source ?? "user",
  ...(reason === undefined ? {} : { reason }),
});
