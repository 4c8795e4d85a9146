import type { Bus } from "#core/bus.ts";
import { type MachineUpdate, topics } from "#machines/lifecycle/writer.ts";
import type { MachineStore } from "#machines/store.ts";
import type { Machine } from "#machines/types.ts";

/** The fields of a machine that the network needs. */
export type Entry = Pick<
  Machine,
  | "id"
  | "org_id"
  | "app_id"
  | "app_name"
  | "name"
  | "region"
  | "host_id"
  | "instance_id"
  | "private_ip"
  | "private_ipv4"
  | "state"
  | "cordoned"
  | "checks"
  | "created_at"
  | "started_at"
  | "image_ref"
  | "config"
> & { leased: boolean };

type Listed = Omit<Entry, "leased"> & Pick<Machine, "lease">;

interface DirectoryParts {
  store: MachineStore;
  bus: Bus<MachineUpdate>;
}

/**
 * An in-memory index of machines: all running ones, and all of apps that were queried. Read from the store and updated
 * from the bus; when a subscriber is called, the change is included.
 */
export class Directory {
  readonly #parts: DirectoryParts;
  readonly #apps = new Map<string, Map<string, Entry>>();
  /** Apps whose machines are all loaded, including stopped ones. */
  readonly #whole = new Map<string, Promise<void>>();
  /** Updates received during each read of the store: a machine destroyed meanwhile must not be added. */
  readonly #reads = new Set<Set<string>>();
  readonly #listeners = new Set<(app_id: string) => void>();
  readonly #ends: (() => void)[] = [];

  constructor(parts: DirectoryParts) {
    this.#parts = parts;
  }

  async start(): Promise<void> {
    const { store, bus } = this.#parts;
    this.#ends.push(bus.subscribe(topics.every, ({ machine }) => this.#onUpdate(machine)));
    await this.#take(store.aliveAnywhere());
  }

  close(): void {
    for (const end of this.#ends) end();
    this.#listeners.clear();
  }

  /** Called with the app whose machines changed. */
  onChange(listener: (app_id: string) => void): void {
    this.#listeners.add(listener);
  }

  /** Loads all machines of an app, including stopped ones. */
  async load(app: { id: string; name: string; org_id: string }): Promise<void> {
    const known = this.#whole.get(app.id);
    if (known) return await known;
    const loading = this.#load(app);
    this.#whole.set(app.id, loading);
    // A failed read is retried next time.
    loading.catch(() => this.#whole.delete(app.id));
    await loading;
  }

  machines(app_id: string): Entry[] {
    return [...(this.#apps.get(app_id)?.values() ?? [])];
  }

  find(machine_id: string): Entry | undefined {
    for (const machines of this.#apps.values()) {
      const found = machines.get(machine_id);
      if (found) return found;
    }
    return undefined;
  }

  *all(): Generator<Entry> {
    for (const machines of this.#apps.values()) yield* machines.values();
  }

  async #load({ id, name, org_id }: { id: string; name: string; org_id: string }): Promise<void> {
    const read = async (): Promise<Listed[]> =>
      (await this.#parts.store.list(id, {})).map((shown) => ({
        ...shown,
        app_id: id,
        app_name: name,
        org_id,
        started_at: null,
      }));
    await this.#take(read());
  }

  /** Adds what the store returned, except known machines, whose state is as new or newer. */
  async #take(read: Promise<readonly Listed[]>): Promise<void> {
    const updated = new Set<string>();
    this.#reads.add(updated);
    try {
      for (const machine of await read) {
        const { app_id, id } = machine;
        if (!updated.has(id) && !this.#apps.get(app_id)?.has(id)) this.#put(machine);
      }
    } finally {
      this.#reads.delete(updated);
    }
  }

  #onUpdate(machine: Machine): void {
    for (const updated of this.#reads) updated.add(machine.id);
    this.#put(machine);
    for (const listener of this.#listeners) listener(machine.app_id);
  }

  #put(machine: Listed): void {
    const { app_id, id, state } = machine;
    const machines = this.#apps.get(app_id) ?? new Map<string, Entry>();
    // Stopped machines are kept only for queried apps.
    const listed = state !== "destroyed" && (this.#whole.has(app_id) || (state !== "stopped" && state !== "created"));
    if (listed) machines.set(id, entryOf(machine));
    else machines.delete(id);
    if (machines.size > 0) this.#apps.set(app_id, machines);
    else this.#apps.delete(app_id);
  }
}

function entryOf(machine: Listed): Entry {
  const { id, org_id, app_id, app_name, name, region, host_id, instance_id, private_ip, private_ipv4 } = machine;
  const { state, cordoned, checks, created_at, started_at, image_ref, config, lease } = machine;
  const place = { id, org_id, app_id, app_name, name, region, host_id, instance_id, private_ip, private_ipv4 };
  return { ...place, state, cordoned, checks, created_at, started_at, image_ref, config, leased: lease !== null };
}
