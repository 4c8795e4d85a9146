import type { Clock } from "#core/clock.ts";
import { ApiError, fail, StoreError } from "#core/errors.ts";
import { randomIds } from "#core/ids.ts";
import type { Log } from "#core/log.ts";
import { Slots } from "#core/slots.ts";
import type { HostService } from "#hosts/service.ts";
import type { Host } from "#hosts/types.ts";
import { ON_HOST_LOSS } from "../exemptions.ts";
import type { Actor, VolumeFinder } from "../inputs.ts";
import { MACHINE_LIMITS } from "../limits.ts";
import { addressOn } from "../names.ts";
import type { MachineStore } from "../store.ts";
import type { Machine, Place, ShownMachine } from "../types.ts";
import { accept, runs } from "./accept.ts";
import type { Leases } from "./lease.ts";
import { isFull, recordWaiting } from "./outcomes.ts";
import { clear } from "./phases.ts";
import { next } from "./states.ts";
import type { MachineTransaction } from "./transaction.ts";
import type { MachineWriter } from "./writer.ts";

interface RelocationParts {
  store: MachineStore;
  writer: MachineWriter;
  leases: Leases;
  hosts: HostService;
  clock: Clock;
  log: Log;
  volumes: VolumeFinder | undefined;
}

/** A machine that could not be moved, and why. */
export interface Stuck {
  id: string;
  reason: string;
}

/** Moves machines between hosts: on request, when a host is drained, or when it is lost. */
export class Relocation {
  readonly #parts: RelocationParts;
  /** Last attempt for machines that found no capacity, on the monotonic clock. */
  #tried = Number.NEGATIVE_INFINITY;

  constructor(parts: RelocationParts) {
    this.#parts = parts;
  }

  /**
   * Moves a machine. A running one is stopped on its host and started on the other; the write that records the stop
   * also assigns the new host, so at no time may both run it. Its address changes, and its root file system starts
   * anew. Its volume follows, and the start waits for it.
   */
  async move(id: string, input: { host_id?: string | undefined }, actor: Actor): Promise<Machine> {
    const { store, writer, leases } = this.#parts;
    const machine = (await store.find(id)) ?? fail("not_found", `machine not found: ${id}`);
    if (input.host_id === machine.host_id) return machine;
    const place = await this.#placeFor(machine, input.host_id);
    const moved = await writer.change(
      id,
      (transaction) => {
        leases.check(transaction.machine, actor.nonce);
        if (transaction.machine.host_id !== machine.host_id) return false;
        // It is already moving.
        if (transaction.operations.some((operation) => operation.payload.move_to)) return false;
        const payload = { source: actor.source ?? "user", move_to: place } as const;
        if (runs(transaction) || transaction.machine.state === "suspended")
          return accept(transaction, "restart", payload);
        this.#settled(transaction);
        transaction.recordEvent("move", transaction.machine.state, payload.source, {
          from: machine.host_id,
          to: place.host_id,
        });
        transaction.move(place);
        return true;
      },
      actor.ids,
    );
    const volume = volumeOf(moved);
    // At rest nothing has the volume open, so it can move before the next start.
    if (volume !== undefined && moved.host_id === place.host_id && moved.boot === null)
      await this.#parts.volumes?.follow?.(volume, place.host_id);
    return moved;
  }

  /**
   * Cordons the host and moves its machines elsewhere; those that cannot move are retried. Returns what moves and what
   * cannot yet.
   */
  async drain(host_id: string, actor: Actor): Promise<{ moving: string[]; stuck: Stuck[] }> {
    await this.#parts.hosts.setDraining(host_id);
    return await this.#empty(host_id, actor);
  }

  /** Retries machines that have not left these hosts: lost ones already evacuated, and ones being drained. */
  async again(hosts: readonly Host[]): Promise<void> {
    const { clock } = this.#parts;
    const now = clock.monotonic();
    if (now - this.#tried < MACHINE_LIMITS.relocate_again_ms) return;
    this.#tried = now;
    const actor: Actor = { name: "the platform", source: "host", ids: randomIds(clock) };
    for (const host of hosts) await (host.state === "failed" ? this.evacuate(host) : this.#empty(host.id, actor));
  }

  async #empty(host_id: string, actor: Actor): Promise<{ moving: string[]; stuck: Stuck[] }> {
    const { store } = this.#parts;
    const moving: string[] = [];
    const stuck: Stuck[] = [];
    for (const { id } of await store.onHost(host_id)) {
      try {
        await this.move(id, {}, actor);
        moving.push(id);
      } catch (thrown) {
        if (!(thrown instanceof ApiError)) throw thrown;
        stuck.push({ id, reason: thrown.message });
        if (isFull(thrown)) await this.#waits(id, host_id, thrown.message);
      }
    }
    return { moving, stuck };
  }

  /**
   * Evacuates a lost host, on which no movable machine runs any more. Machines that allow it start elsewhere, or wait
   * for capacity; the others wait for the host. Each move is one write that applies only while the host is lost, so
   * several processes may do this at once, and again after a crash.
   */
  async evacuate({ id, epoch }: Host): Promise<void> {
    const { store, log } = this.#parts;
    const slots = new Slots(MACHINE_LIMITS.rescues_parallel);
    const rescue = async (machine: Machine): Promise<void> => {
      try {
        await slots.use(() => this.#rescue(machine, epoch));
      } catch (error) {
        if (!(error instanceof ApiError) || error instanceof StoreError) throw error;
        log.warn({ error, machine: machine.id, host: id }, "a machine of a lost host could not be started elsewhere");
        if (isFull(error)) await this.#waits(machine.id, id, error.message);
      }
    };
    const exempt = new Set(await store.exempt(id));
    const leaving = (await store.alive([id])).filter((machine) => mayLeave(machine) && !exempt.has(machine.id));
    await Promise.all(leaving.map(rescue));
  }

  /** Records the reason, which is shown until the machine has left. */
  async #waits(id: string, host_id: string, reason: string): Promise<void> {
    await this.#parts.writer.change(
      id,
      (transaction) => transaction.machine.host_id === host_id && recordWaiting(transaction, reason),
    );
  }

  async #rescue(machine: Machine, epoch: number): Promise<void> {
    const place = await this.#placeFor(machine);
    await this.#parts.writer.change(machine.id, (transaction) => {
      if (transaction.machine.host_id !== machine.host_id || !runs(transaction)) return false;
      const request = { reason: `host ${machine.host_id} was lost; started on ${place.host_id}` };
      for (const operation of transaction.operations) transaction.finish(operation);
      clear(transaction);
      const { state } = transaction.machine;
      if (state === "started") transaction.transition("exited", "host", request);
      else if (next(state, "broke")) transaction.transition("broke", "host", request);
      transaction.move(place, epoch);
      return accept(transaction, "start", { source: "host", ...request });
    });
  }

  #settled({ machine, operations }: MachineTransaction): void {
    if (operations.length === 0 && next(machine.state, "start")) return;
    fail("wrong_state", `machine ${machine.id} is ${machine.state}; wait for it to settle, then move it`, {
      facts: { current_state: machine.state },
      retry_after_s: 1,
    });
  }

  async #placeFor(machine: Machine, host_id?: string): Promise<Place> {
    const { id, region, cpus, memory_mb, private_ip } = machine;
    const volume = volumeOf(machine);
    if (volume !== undefined && !this.#parts.volumes?.movable) {
      fail("not_movable", `machine ${id} mounts volume ${volume}, which is on host ${machine.host_id}`, {
        hint: "volumes move through an object store that all hosts share: set HANGAR_OBJECTS_URL on all processes",
      });
    }
    const named = host_id === undefined ? undefined : await this.#parts.hosts.find(host_id);
    const host = await this.#parts.hosts.place({
      region: named?.region ?? region,
      cpus,
      memory_mb,
      not_hosts: [machine.host_id],
      ...(named ? { host_id: named.id } : {}),
    });
    return { host_id: host.id, region: host.region, private_ip: addressOn(private_ip, host.id) };
  }
}

const volumeOf = ({ config }: Pick<ShownMachine, "config">): string | undefined => config.mounts?.[0]?.volume;

const mayLeave = (machine: Machine): boolean =>
  machine.config.metadata?.[ON_HOST_LOSS.key] === ON_HOST_LOSS.value && volumeOf(machine) === undefined;
