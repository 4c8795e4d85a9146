import type { Clock } from "#core/clock.ts";
import type { Log } from "#core/log.ts";
import type { Addresses } from "#network/addresses.ts";
import type { Directory, Entry } from "#network/directory.ts";
import type { ExposedApp } from "#network/store.ts";
import type { IpAssignment } from "#network/types.ts";
import type { AppNames } from "./certificates.ts";
import { appTable, type Reach } from "./exposure.ts";
import type { Busyness } from "./idle.ts";
import type { ImageLayers } from "./image-layers.ts";
import { PROXY_LIMITS } from "./limits.ts";
import { type OwnService, ownTable } from "./own-service.ts";
import type { Slots } from "./slots.ts";
import { type StaticPlace, staticsOf } from "./statics-config.ts";
import type { AppTable } from "./table.ts";
import type { Workers } from "./workers.ts";

interface ControlParts {
  directory: Directory;
  addresses: Addresses;
  /** Host names of an app, beside its own. */
  names(app_id: string): AppNames;
  workers: Workers;
  slots: Slots;
  domain: string;
  reach: Reach;
  layers: ImageLayers;
  clock: Clock;
  log: Log;
}

/**
 * Keeps the workers' routing tables current: a change of a machine, address or certificate rebuilds its app's table.
 */
export class Control {
  readonly #parts: ControlParts;
  #apps = new Map<string, ExposedApp>();
  #assignments = new Map<string, IpAssignment[]>();
  readonly #tables = new Map<string, AppTable>();
  /** Machines being stopped or suspended for idleness, with the number of requesters. */
  readonly #resting = new Map<string, number>();
  readonly #slots = new Map<string, number>();
  readonly #freeSlots: number[] = [];
  readonly #own = new Set<string>();
  #dirty = new Set<string>();
  #planned = false;
  #refreshing: Promise<void> | undefined;

  constructor(parts: ControlParts) {
    this.#parts = parts;
    parts.directory.onChange((app_id) => this.touch(app_id));
    for (let slot = PROXY_LIMITS.slots - 1; slot >= 0; slot--) this.#freeSlots.push(slot);
  }

  /** Reads which apps have addresses. Called after address changes, and regularly for changes of other processes. */
  async refresh(): Promise<void> {
    // A refresh during another one may concern data that the first has already read.
    const before = this.#refreshing;
    const next = (async () => {
      await before?.catch(() => {});
      await this.#read();
    })();
    this.#refreshing = next;
    await next;
  }

  table(app_id: string): AppTable | undefined {
    return this.#tables.get(app_id);
  }

  /** Serves host names of the platform's own. They have no machine, so their slot is kept. */
  serveOwn(own: OwnService, place: { region: string; host_id: string }): void {
    const slot = this.#slot(own.name, own.local_port);
    if (slot === undefined) return;
    this.#own.add(own.name);
    this.#parts.workers.setApp(ownTable(own, { ...place, slot }));
  }

  /** The app's static sites, served or not. */
  statics(app_id: string): StaticPlace[] {
    const { directory, layers } = this.#parts;
    return staticsOf(directory.machines(app_id), (machine) => layers.of(machine));
  }

  /** Machines of every app with an open port. */
  *machines(): Generator<Entry[]> {
    for (const app_id of this.#tables.keys()) yield this.#parts.directory.machines(app_id);
  }

  /** Load of all services of a machine together. */
  busyness({ id, config }: Entry): Busyness {
    const { slots } = this.#parts;
    const busy: Busyness = { load: 0, active_at_s: 0 };
    for (const { internal_port } of config.services ?? []) {
      const slot = this.#slots.get(`${id} ${internal_port}`);
      if (slot === undefined) continue;
      busy.load += slots.load(slot);
      busy.active_at_s = Math.max(busy.active_at_s, slots.activeAt(slot));
    }
    return busy;
  }

  /** Requests or connections in progress at a service of a machine, without idle kept-alive ones. */
  load(machine_id: string, internal_port: number): number {
    const slot = this.#slots.get(`${machine_id} ${internal_port}`);
    return slot === undefined ? 0 : this.#parts.slots.inUse(slot);
  }

  /** Peak concurrency of a service since the last call, as recorded at one of its machines. */
  takePeak(machine_id: string, internal_port: number): number {
    const slot = this.#slots.get(`${machine_id} ${internal_port}`);
    return slot === undefined ? 0 : this.#parts.slots.takePeak(slot);
  }

  /** Resolves when every worker uses the current tables, or after `patience_ms`. */
  async settled(patience_ms: number = PROXY_LIMITS.open_ms, signal?: AbortSignal): Promise<void> {
    const { workers, clock } = this.#parts;
    const reported = new AbortController();
    const ends = signal ? AbortSignal.any([reported.signal, signal]) : reported.signal;
    const late = clock.sleep(patience_ms, ends).catch(() => {});
    await Promise.race([workers.settled(), late]);
    reported.abort();
  }

  /**
   * Resolves when the ports of a starting machine are open, so that a machine reported as started is reachable. The
   * first port takes longest, because it starts the workers.
   */
  async opened(machine_id: string, signal: AbortSignal): Promise<void> {
    const machine = this.#parts.directory.find(machine_id);
    if (!machine?.config.services?.length || !this.#apps.has(machine.app_id)) return;
    this.#make(machine.app_id);
    await this.settled(PROXY_LIMITS.open_ms, signal);
  }

  /**
   * Resolves when a withdrawn machine has finished its requests, or after `patience_ms`. UDP traffic has no end and is
   * not waited for.
   */
  async quiet(machine_id: string, patience_ms: number, signal: AbortSignal): Promise<void> {
    const { directory, clock } = this.#parts;
    const until = clock.monotonic() + Math.min(patience_ms, PROXY_LIMITS.quiet_ms);
    const machine = patience_ms > 0 ? directory.find(machine_id) : undefined;
    const services = (machine?.config.services ?? []).filter(({ protocol }) => protocol === "tcp");
    if (!machine || services.length === 0 || !this.#tables.has(machine.app_id)) return;
    // From here on the app's table contains the change of the machine.
    this.#make(machine.app_id);
    await this.settled(until - clock.monotonic(), signal);
    const load = (): number => services.reduce((sum, one) => sum + this.load(machine_id, one.internal_port), 0);
    while (load() > 0 && clock.monotonic() < until && !signal.aborted) await clock.sleep(PROXY_LIMITS.quiet_look_ms);
  }

  /** Removes a machine from routing; returns the function that restores it. */
  async withdraw({ id, app_id }: Entry): Promise<() => void> {
    this.#resting.set(id, (this.#resting.get(id) ?? 0) + 1);
    this.#make(app_id);
    await this.#parts.workers.settled();
    return () => {
      const left = (this.#resting.get(id) ?? 1) - 1;
      if (left > 0) this.#resting.set(id, left);
      else this.#resting.delete(id);
      this.touch(app_id);
    };
  }

  /** Rebuilds the app's table, batched with other changes of the same moment. */
  touch(app_id: string): void {
    if (!this.#apps.has(app_id)) return;
    this.#dirty.add(app_id);
    if (this.#planned) return;
    this.#planned = true;
    setImmediate(() => {
      this.#planned = false;
      const dirty = this.#dirty;
      this.#dirty = new Set();
      for (const id of dirty) this.#make(id);
    });
  }

  async #read(): Promise<void> {
    const { addresses, directory, workers } = this.#parts;
    const [apps, assignments] = await Promise.all([addresses.exposed(), addresses.list()]);
    this.#apps = new Map(apps.map((app) => [app.id, app]));
    this.#assignments = Map.groupBy(assignments, ({ app_id }) => app_id);
    for (const app_id of this.#tables.keys()) {
      if (this.#apps.has(app_id)) continue;
      this.#tables.delete(app_id);
      workers.dropApp(app_id);
    }
    await Promise.all(apps.map((app) => directory.load(app)));
    for (const app of apps) this.#make(app.id);
    this.#sweepSlots();
  }

  #make(app_id: string): void {
    const { directory, workers, domain, reach, layers, names } = this.#parts;
    const app = this.#apps.get(app_id);
    const before = this.#tables.get(app_id);
    const table = app
      ? appTable({
          app,
          machines: directory.machines(app_id),
          assignments: this.#assignments.get(app_id) ?? [],
          names: names(app_id),
          domain,
          reach,
          slot: (machine_id, port) => this.#slot(machine_id, port),
          layers: (machine) => layers.of(machine),
          resting: this.#resting,
          now: this.#parts.clock.now(),
        })
      : undefined;
    if (!table) {
      this.#tables.delete(app_id);
      if (before) workers.dropApp(app_id);
      return;
    }
    this.#tables.set(app_id, table);
    // Most machine updates do not affect the table.
    if (!before || JSON.stringify(before) !== JSON.stringify(table)) workers.setApp(table);
  }

  #slot(machine_id: string, port: number): number | undefined {
    const key = `${machine_id} ${port}`;
    const known = this.#slots.get(key);
    if (known !== undefined) return known;
    const slot = this.#freeSlots.pop();
    if (slot === undefined) {
      this.#parts.log.warn(
        { machine_id, port },
        "too many services for the proxy (limit slots); this one gets nothing",
      );
      return undefined;
    }
    this.#parts.slots.reset(slot, Math.floor(this.#parts.clock.monotonic() / 1000));
    this.#slots.set(key, slot);
    return slot;
  }

  /** Frees slots of removed machines once they have no load. */
  #sweepSlots(): void {
    const { slots, directory, layers } = this.#parts;
    layers.keep(directory.all());
    const known = new Set([...this.#own, ...[...directory.all()].map(({ id }) => id)]);
    for (const [key, slot] of this.#slots) {
      if (known.has(key.split(" ")[0] ?? "") || slots.load(slot) > 0) continue;
      this.#slots.delete(key);
      this.#freeSlots.unshift(slot);
    }
  }
}
