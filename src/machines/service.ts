import type { AppRange } from "#apps/store.ts";
import type { Clock } from "#core/clock.ts";
import { fail } from "#core/errors.ts";
import type { Ids } from "#core/ids.ts";
import { checkSlug } from "#core/names.ts";
import type { HostService } from "#hosts/service.ts";
import { complete, mergeConfig, sizeOf } from "./config/config.ts";
import type { Actor, CreateMachineInput, Owner, UpdateMachineInput, VolumeFinder } from "./inputs.ts";
import { accept, runs } from "./lifecycle/accept.ts";
import type { Leases } from "./lifecycle/lease.ts";
import { mountedVolume, mountWarnings, refuseReferences, standbyProblems } from "./lifecycle/references.ts";
import {
  keepVolume,
  refuseInsert,
  refuseMoving,
  refuseStale,
  rejectInvalid,
  volumeProblems,
} from "./lifecycle/rules.ts";
import { firstRun } from "./lifecycle/schedule.ts";
import type { MachineTransaction } from "./lifecycle/transaction.ts";
import type { MachineWriter } from "./lifecycle/writer.ts";
import { MACHINE_LIMITS } from "./limits.ts";
import { machineName, privateAddress } from "./names.ts";
import type { PrivateNetworks } from "./private-networks.ts";
import type { RuntimeDriver } from "./runtime/driver.ts";
import type { ListFilter, MachineStore } from "./store.ts";
import type { ImageRef, Machine, MachineConfig, OperationPayload, ShownMachine } from "./types.ts";

interface MachineParts {
  store: MachineStore;
  writer: MachineWriter;
  leases: Leases;
  hosts: HostService;
  driver: RuntimeDriver;
  networks: Pick<PrivateNetworks, "prefix">;
  clock: Clock;
  volumes?: VolumeFinder;
}

const NEVER = new AbortController().signal;

/** The rules about machines, without HTTP, SQL or containers: those come in through `parts`. */
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

  async counts(range: AppRange): Promise<ReadonlyMap<string, number>> {
    return await this.#parts.store.counts(range);
  }

  async create(owner: Owner, input: CreateMachineInput, actor: Actor): Promise<Machine> {
    const { writer, leases, store } = this.#parts;
    const { ids } = actor;
    const id = ids.hex(14);
    let name = input.name ?? machineName(ids);
    checkSlug(name, "body.name");
    rejectInvalid(await standbyProblems(this.#parts, { app_id: owner.app_id, machine_id: id }, input.config));
    let pinned = await this.#volumePlace(owner, input, id);
    const image_ref = await this.#resolve(input.config.image, owner.org_id, actor);
    // Chooses a host again when the first one filled up before the write.
    for (let race = 0; race < MACHINE_LIMITS.write_races; race++) {
      const { volume, ...place } = pinned;
      const machine = await this.#blank(owner, { ...input, ...place, name, image_ref }, id, ids);
      const { result, machine: made } = await writer.insert(
        machine,
        (transaction) => {
          if (input.lease_ttl)
            leases.grant(transaction, { owner: actor.name, description: "", ttl_s: input.lease_ttl }, ids);
          if (volume) transaction.attach(volume);
          transaction.recordEvent("launch", "created", actor.source ?? "user");
          if (!input.skip_launch) transaction.queue("start", payloadOf(actor));
        },
        ids,
      );
      if (result === "inserted") return made;
      if (result === "exists") return (await store.find(id)) ?? made;
      // A generated name that is taken is generated again; only a requested one is refused.
      if (result === "name_taken" && input.name === undefined) name = machineName(ids);
      // Another request was faster; the refusal names its machine.
      else if (result === "volume") pinned = await this.#volumePlace(owner, input, id);
      else if (result !== "capacity") refuseInsert(result, name, owner.app_name);
    }
    fail("conflict", "concurrent requests used the free capacity of all hosts; try again", { retry_after_s: 1 });
  }

  /** Resolves an image name as a new machine of the organization would. */
  async resolveImage(image: string, org_id: string, signal: AbortSignal): Promise<ImageRef> {
    return await this.#parts.driver.resolve(image, org_id, signal);
  }

  /** Replaces the whole config. The machine gets a new version and starts, unless `skip_launch` is set. */
  async update(machine: Machine, input: UpdateMachineInput, actor: Actor): Promise<Machine> {
    const instance_id = actor.ids.ulid();
    const image_ref = await this.#resolve(input.config.image, machine.org_id, actor);
    return await this.#update(machine, { ...input, image_ref }, actor, instance_id, () => input.config);
  }

  /** Applies a JSON merge patch to the config: unnamed fields stay, null removes. */
  async patch(
    machine: Machine,
    input: Omit<UpdateMachineInput, "config"> & { patch: unknown },
    actor: Actor,
  ): Promise<Machine> {
    const instance_id = actor.ids.ulid();
    const { image } = (input.patch ?? {}) as { image?: unknown };
    // An unnamed image keeps its digest, whatever its tag resolves to now.
    const named = typeof image === "string" ? { image_ref: await this.#resolve(image, machine.org_id, actor) } : {};
    return await this.#update(machine, { ...input, ...named }, actor, instance_id, (before) =>
      mergeConfig(before.config, input.patch),
    );
  }

  async #update(
    machine: Machine,
    input: Omit<UpdateMachineInput, "config"> & { image_ref?: ImageRef },
    actor: Actor,
    instance_id: string,
    configFrom: (before: Machine) => MachineConfig,
  ): Promise<Machine> {
    const { leases, clock } = this.#parts;
    refuseMoving(machine, input);
    const { app_id, id: machine_id, config: known } = machine;
    await refuseReferences(this.#parts, { app_id, machine_id, before: known }, keepVolume(configFrom(machine), known));
    return await this.#parts.writer.change(
      machine.id,
      (transaction) => {
        const before = transaction.machine;
        // The same request again, after a crash between write and response.
        if (before.instance_id === instance_id) return false;
        leases.check(before, actor.nonce);
        refuseStale(before, input.current_version);
        const config = complete(keepVolume(configFrom(before), before.config));
        rejectInvalid(volumeProblems(before.config, config));
        const { cpus, memory_mb } = sizeOf(config);
        const launch = runs(transaction) || !input.skip_launch;
        const was_created = transaction.projected === "created";
        transaction.replaceConfig({
          config,
          instance_id,
          image_ref: input.image_ref ?? before.image_ref,
          cpus,
          memory_mb,
          checks: {},
          next_run_at:
            before.config.schedule === config.schedule
              ? before.next_run_at
              : firstRun(config.schedule, before, clock.now()),
          ...(input.min_secrets_version === undefined ? {} : { secrets_version: input.min_secrets_version }),
          ...(input.skip_service_registration ? { cordoned: true } : {}),
        });
        if (input.lease_ttl) {
          leases.grant(transaction, { owner: actor.name, description: "", ttl_s: input.lease_ttl }, actor.ids);
        }
        return accept(transaction, "update", { ...payloadOf(actor), launch, was_created });
      },
      actor.ids,
    );
  }

  /** Warnings about request fields that differ from the result without preventing it. */
  async warnings({ config }: Machine, { region }: { region?: string | undefined }): Promise<string[]> {
    const { hosts } = this.#parts;
    return [...(await mountWarnings(this.#parts, config)), ...hosts.regionWarnings(region)];
  }

  /** Starts the machine and returns its previous state. A running or starting machine is left alone. */
  async start(id: string, actor: Actor): Promise<{ before: string; machine: Machine }> {
    let before = "";
    const machine = await this.#request(id, actor, (transaction) => {
      before = transaction.machine.state;
      return accept(transaction, "start", payloadOf(actor));
    });
    return { before, machine };
  }

  async stop(id: string, how: Pick<OperationPayload, "signal" | "timeout_ms">, actor: Actor): Promise<Machine> {
    return await this.#request(id, actor, (transaction) =>
      accept(transaction, "stop", { ...payloadOf(actor), ...how }),
    );
  }

  async suspend(id: string, actor: Actor): Promise<Machine> {
    return await this.#request(id, actor, (transaction) => accept(transaction, "suspend", payloadOf(actor)));
  }

  async restart(id: string, how: Pick<OperationPayload, "signal" | "timeout_ms">, actor: Actor): Promise<Machine> {
    return await this.#request(id, actor, (transaction) =>
      accept(transaction, "restart", { ...payloadOf(actor), ...how }),
    );
  }

  /** `force` stops a running machine as its config says; `kill` sends SIGKILL at once. */
  async destroy(id: string, how: { force?: boolean; kill?: boolean }, actor: Actor): Promise<Machine> {
    return await this.#request(id, actor, (transaction) => {
      if (transaction.machine.state !== "destroying" && !how.force && !how.kill && runs(transaction)) {
        fail(
          "machine_running",
          `unable to destroy machine, not currently stopped: it is ${transaction.machine.state}`,
          {
            facts: { current_state: transaction.machine.state },
            hint: "stop it first, or add ?force=true",
          },
        );
      }
      return accept(transaction, "destroy", { source: actor.source ?? "user", ...(how.kill ? KILL : {}) });
    });
  }

  /** Excludes the machine from the proxy's targets, or includes it again; its state stays. */
  async cordon(id: string, cordoned: boolean, actor: Actor): Promise<Machine> {
    return await this.#request(id, actor, (transaction) => {
      if (transaction.machine.cordoned === cordoned) return false;
      transaction.set({ cordoned });
      transaction.recordEvent(cordoned ? "cordon" : "uncordon", transaction.machine.state, actor.source ?? "user");
      return true;
    });
  }

  /** Destroys every machine of an app that is being deleted, running or not. */
  async destroyAll(app_id: string, actor: Actor): Promise<Machine[]> {
    const machines = await this.#parts.store.list(app_id, {});
    return await Promise.all(
      machines.map((machine) =>
        this.#parts.writer.change(machine.id, (transaction) => {
          if (transaction.machine.state === "destroyed") return false;
          transaction.set({ lease: null });
          return accept(transaction, "destroy", {
            source: actor.source ?? "user",
            reason: "the app is deleted",
            ...KILL,
          });
        }),
      ),
    );
  }

  async #request(
    id: string,
    { nonce, ids }: Actor,
    decide: (transaction: MachineTransaction) => boolean,
  ): Promise<Machine> {
    const { writer, leases, hosts } = this.#parts;
    return await writer.change(
      id,
      (transaction) => {
        if (transaction.machine.state === "destroyed") fail("not_found", `machine not found: ${id} is destroyed`);
        leases.check(transaction.machine, nonce);
        if (!hosts.reachable(transaction.machine.host_id)) {
          fail(
            "host_unreachable",
            `deploys to this host are temporarily disabled: host ${transaction.machine.host_id} has failed`,
          );
        }
        return decide(transaction);
      },
      ids,
    );
  }

  /** Places a machine on its volume's host. Fails when the volume is elsewhere or attached. */
  async #volumePlace(
    { app_id }: Owner,
    input: CreateMachineInput,
    machine_id: string,
  ): Promise<{ config: MachineConfig; region?: string; host_id?: string; volume?: string }> {
    const { config, place } = await mountedVolume(this.#parts, { app_id, machine_id }, input);
    return place ? { config, region: place.region, host_id: place.host_id, volume: place.id } : { config };
  }

  async #blank(
    owner: Owner,
    input: CreateMachineInput & { name: string; host_id?: string; image_ref: ImageRef },
    id: string,
    ids: Ids,
  ): Promise<Machine> {
    const { hosts, clock, networks } = this.#parts;
    const config = complete(input.config);
    const { cpus, memory_mb } = sizeOf(config);
    const { region, host_id } = input;
    const host = await hosts.place({ region, cpus, memory_mb, ...(host_id ? { host_id } : {}) });
    const created_at = clock.now();
    const { org_id, app_id, app_name } = owner;
    const prefix = await networks.prefix(org_id, owner.network);
    return {
      id,
      org_id,
      app_id,
      app_name,
      name: input.name,
      region: input.region ?? host.region,
      host_id: host.id,
      private_ip: privateAddress({ id, network: prefix, host_id: host.id }),
      created_at,
      revision: 0,
      updated_at: created_at,
      state: "created",
      instance_id: ids.ulid(),
      image_ref: input.image_ref,
      cordoned: input.skip_service_registration ?? false,
      secrets_version: input.min_secrets_version ?? 0,
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

  async #resolve(image: string, org_id: string, { signal = NEVER }: Actor): Promise<ImageRef> {
    return await this.resolveImage(image, org_id, signal);
  }
}

const KILL = { signal: "SIGKILL", timeout_ms: 0 } as const;

/** The source and reason that are recorded with the operation. */
const payloadOf = ({ source, reason, name }: Actor): OperationPayload => ({
  ...(source === undefined ? { source: "user", by: name } : { source }),
  ...(reason === undefined ? {} : { reason }),
});
