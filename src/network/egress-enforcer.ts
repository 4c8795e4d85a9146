/**
 * Enforces the egress policies of apps for the machines of this process's hosts: the driver gets the policy at a
 * machine's start, and each change after that. Changes come from the API of this process, from notifications of other
 * processes, or from polling when a notification was lost. The DNS server checks here whether a name may be resolved.
 */

import type { AppStore } from "#apps/store.ts";
import type { Bus } from "#core/bus.ts";
import { type Cidr, parseCidr } from "#core/cidr.ts";
import type { Clock } from "#core/clock.ts";
import { closedRange } from "#core/egress.ts";
import { type EgressPolicy, namesAllowed } from "#core/egress-policy.ts";
import type { Log } from "#core/log.ts";
import type { Notifier } from "#core/notifier.ts";
import { type MachineUpdate, topics } from "#machines/lifecycle/writer.ts";
import type { ResolvedAddress, RuntimeDriver } from "#machines/runtime/driver.ts";
import type { MachineStore } from "#machines/store.ts";
import type { Machine } from "#machines/types.ts";
import { NETWORK_LIMITS } from "./limits.ts";

interface KeeperParts {
  host_ids: readonly string[];
  store: Pick<MachineStore, "alive">;
  apps: Pick<AppStore, "egress">;
  driver: Pick<RuntimeDriver, "setEgress" | "admitName">;
  /** Closed ranges that the operator opened. */
  opened: readonly Cidr[];
  bus: Bus<MachineUpdate>;
  notifier: Notifier | undefined;
  clock: Clock;
  log: Log;
}

type Subject = Pick<Machine, "id" | "app_id">;

export class EgressEnforcer {
  readonly #parts: KeeperParts;
  /** Running machines here: their app, and start time. */
  readonly #running = new Map<string, { app_id: string; started_at: number | null }>();
  readonly #policies = new Map<string, Promise<EgressPolicy>>();
  readonly #ends: (() => void)[] = [];
  readonly #closing = new AbortController();

  constructor(parts: KeeperParts) {
    this.#parts = parts;
  }

  async start(): Promise<void> {
    const { host_ids, bus, store, notifier } = this.#parts;
    if (host_ids.length === 0) return;
    for (const id of host_ids)
      this.#ends.push(bus.subscribe(topics.host(id), ({ machine }) => this.#onUpdate(machine)));
    if (notifier)
      this.#ends.push(
        notifier.listen("egress", (app_id) => this.#apply(app_id)),
        notifier.onGap(() => this.#applyAll()),
      );
    for (const machine of await store.alive(host_ids)) this.#onUpdate(machine);
    if (notifier) void this.#poll();
  }

  close(): void {
    this.#closing.abort();
    for (const end of this.#ends.splice(0)) end();
  }

  /** Called when an app's policy changed here. */
  changed(app_id: string): void {
    this.#parts.notifier?.send("egress", app_id);
    this.#apply(app_id);
  }

  /** Whether the machine may query this public name. DNS queries could otherwise carry data out. */
  async mayAsk(machine: Subject, name: string): Promise<boolean> {
    return namesAllowed(await this.#policy(machine.app_id), name);
  }

  /** Opens the name's addresses to the machine, except those in closed ranges. */
  async answered(machine: Subject, name: string, found: readonly ResolvedAddress[]): Promise<void> {
    if ((await this.#policy(machine.app_id)).mode !== "list") return;
    const open = found.filter(({ address }) => {
      const cidr = parseCidr(address);
      return cidr && !closedRange(cidr, this.#parts.opened);
    });
    await this.#parts.driver.admitName(machine.id, name, open);
  }

  #onUpdate({ id, app_id, state, started_at }: Machine): void {
    if (state !== "started") return void this.#running.delete(id);
    if (this.#running.get(id)?.started_at === started_at) return;
    this.#running.set(id, { app_id, started_at });
    // The policy may have changed since the launch.
    this.#policies.delete(app_id);
    void this.#publish({ id, app_id });
  }

  #apply(app_id: string): void {
    this.#policies.delete(app_id);
    for (const [id, machine] of this.#running) if (machine.app_id === app_id) void this.#publish({ id, app_id });
  }

  #applyAll(): void {
    this.#policies.clear();
    for (const [id, { app_id }] of this.#running) void this.#publish({ id, app_id });
  }

  async #publish({ id, app_id }: Subject): Promise<void> {
    try {
      await this.#parts.driver.setEgress(id, await this.#policy(app_id));
    } catch (error) {
      this.#parts.log.error({ error, machine: id }, "a machine's egress policy could not be put in force");
    }
  }

  #policy(app_id: string): Promise<EgressPolicy> {
    const known = this.#policies.get(app_id);
    if (known) return known;
    const read = this.#parts.apps.egress(app_id);
    this.#policies.set(app_id, read);
    read.catch(() => this.#policies.delete(app_id));
    return read;
  }

  async #poll(): Promise<void> {
    const { signal } = this.#closing;
    while (!signal.aborted) {
      await this.#parts.clock.sleep(NETWORK_LIMITS.peer_beat_ms, signal).catch(() => {});
      if (!signal.aborted) this.#applyAll();
    }
  }
}
