/**
 * The machines of the organization, kept up to date by its stream of events:
 *
 *   stream → states change at once, once per frame however many events came
 *          → data that events lack (a new machine, a new config) is fetched, all of it in one request
 *
 * Of a large organization only the apps that a page shows are followed (`followApp`); lists are searched on the server.
 */
import { ClientError } from "#client/client.ts";
import { again } from "./again.ts";
import { Cell } from "./cell.ts";
import { oncePerFrame } from "./frame.ts";
import { forget, takeOngoing } from "./ongoing.ts";
import { call, session } from "./session.ts";

export interface FleetMachine {
  id: string;
  name: string;
  app_name: string;
  state: string;
  region: string;
  version: string;
  private_ip: string;
  /** Requested now and then: no event announces that a host fell silent. */
  host_status: string;
  config: Record<string, unknown>;
  created_at: string;
  updated_at: string;
}

export interface FleetEvent {
  id: string;
  cursor: number;
  type: string;
  status: string;
  source: string;
  timestamp: number;
  app_name: string;
  machine_id: string;
  machine_name: string;
  instance_id: string;
  request?: Record<string, unknown> | undefined;
}

/** How many machines there are, by state. */
export interface Counts {
  machines: number;
  states: Readonly<Record<string, number>>;
  /** False when there are more than the platform counts. */
  exact: boolean;
}

export function countsOf(all: readonly FleetMachine[]): Counts {
  const states: Record<string, number> = {};
  for (const state of all.map(shownState)) states[state] = (states[state] ?? 0) + 1;
  return { machines: all.length, states, exact: true };
}

interface Fleet {
  machines: ReadonlyMap<string, FleetMachine>;
  /** There are too many to follow: `machines` has those of the apps in sight, and `counts` is of all. */
  large: boolean;
  counts: Counts | undefined;
  loaded: boolean;
  /** Newest first. */
  events: readonly FleetEvent[];
  link: "connecting" | "live" | "broken";
  problem: ClientError | undefined;
}

const EMPTY: Fleet = {
  machines: new Map(),
  large: false,
  counts: undefined,
  loaded: false,
  events: [],
  link: "connecting",
  problem: undefined,
};
const STREAM = "GET /v1/orgs/:org_slug/events";
/** Machines of an organization that are all followed; with more, only those in sight are. */
const FOLLOWED = 2000;
const EVENTS_KEPT = 1000;
/** Number of past events shown. */
const EVENTS_BEFORE = 300;
const PAGE = 1000;
/** Changes that events do not carry are batched for this long, then requested together. */
const GATHER_MS = 250;
/** Pause between two requests for the machines whose host does not report. */
const HOSTS_MS = 5000;
const NOT_OK = ["unknown", "unreachable"];
/** The same for a large organization, where counts and whole apps are requested again. */
const GATHER_LARGE_MS = 2000;

/** Apps that pages show, by how many of them. */
const inSight = new Map<string, number>();
const sight = new Cell(0);

/** Follows an app's machines while a page shows them; returns what ends it. */
export function followApp(app_name: string): () => void {
  const add = (count: number): void => {
    inSight.set(app_name, (inSight.get(app_name) ?? 0) + count);
    if (inSight.get(app_name) === 0) inSight.delete(app_name);
    sight.set(sight.value + 1);
  };
  add(1);
  return () => add(-1);
}

export const fleet = new Cell<Fleet>(EMPTY);

/** Machine states; an event's status is one of them, or something else. */
export const STATES = [
  "created",
  "starting",
  "started",
  "stopping",
  "stopped",
  "suspending",
  "suspended",
  "restarting",
  "replacing",
  "failed",
  "destroying",
  "destroyed",
];

/** The state to show: on a host that does not report, the last one is not known to be true. */
export const shownState = ({ state, host_status }: Pick<FleetMachine, "state" | "host_status">): string =>
  host_status === "ok" ? state : host_status;

/** Follows one organization until stopped. */
export class Follower {
  readonly #org_slug: string;
  readonly #ending = new AbortController();
  readonly #machines = new Map<string, FleetMachine>();
  #events: FleetEvent[] = [];
  #incoming: FleetEvent[] = [];
  #waiting: FleetEvent[] = [];
  #cursor: number | undefined;
  #loaded = false;
  #large = false;
  #counts: Counts | undefined;
  #link: Fleet["link"] = "connecting";
  #problem: ClientError | undefined;
  readonly #drawing = oncePerFrame(() => this.#publish());
  #gathering: ReturnType<typeof setTimeout> | undefined;
  #watching: ReturnType<typeof setTimeout> | undefined;
  /** The newest `updated_at` seen; later changes are requested from here. */
  #seen = "";
  /** Apps of a large organization whose machines are here, and complete. */
  readonly #apps = new Set<string>();
  #unwatch = (): void => {};

  constructor(org_slug: string) {
    this.#org_slug = org_slug;
  }

  start(): void {
    fleet.set(EMPTY);
    forget();
    this.#unwatch = sight.watch(() => this.#large && this.#gather(0));
    void this.#follow();
    void this.#load();
  }

  stop(): void {
    this.#ending.abort();
    this.#unwatch();
    this.#drawing.stop();
    clearTimeout(this.#gathering);
    clearTimeout(this.#watching);
  }

  async #follow(): Promise<void> {
    const refused = await again(
      {
        round: (alive) => this.#stream(alive),
        broken: () => {
          this.#link = "broken";
          this.#changed();
        },
      },
      this.#signal,
    );
    if (refused) this.#fail(refused);
  }

  async #stream(onMessage: () => void): Promise<void> {
    const client = session.value?.client;
    if (!client) return;
    const input = {
      params: { org_slug: this.#org_slug },
      query: { ongoing: true, ...(this.#cursor === undefined ? { tail: EVENTS_BEFORE } : { cursor: this.#cursor }) },
      signal: this.#signal,
    };
    const events = client.stream<typeof STREAM, FleetEvent>(STREAM, input, () => {
      this.#link = "live";
      this.#changed();
    });
    for await (const event of events) {
      onMessage();
      if (takeOngoing(event)) continue;
      this.#cursor = event.cursor;
      this.#incoming.push(event);
      this.#changed();
    }
  }

  async #load(): Promise<void> {
    try {
      await this.#sync();
      this.#loaded = true;
      this.#watchHosts();
    } catch (thrown) {
      if (!this.#over) this.#fail(thrown);
    }
    this.#changed();
  }

  /** Requests everything changed since the last time; at first, everything. */
  async #sync(): Promise<void> {
    if (this.#large) return await this.#syncLarge();
    let cursor: string | undefined;
    let known = 0;
    do {
      const { machines, next_cursor, counts } = await call("GET /v1/orgs/:org_slug/machines", {
        params: { org_slug: this.#org_slug },
        query: {
          limit: PAGE,
          ...(cursor ? { cursor } : this.#seen ? { updated_after: this.#seen } : { count: true }),
        },
        signal: this.#signal,
      });
      for (const machine of machines) {
        this.#machines.set(machine.id, machine);
        if (machine.updated_at > this.#seen) this.#seen = machine.updated_at;
      }
      known = Math.max(known, counts?.machines ?? 0, this.#machines.size);
      cursor = next_cursor;
    } while (cursor && known <= FOLLOWED);
    if (known <= FOLLOWED) return;
    this.#large = true;
    this.#machines.clear();
    await this.#syncLarge();
  }

  /** Requests the counts, and the machines of the apps in sight. */
  async #syncLarge(): Promise<void> {
    const params = { org_slug: this.#org_slug };
    const query = { count: true, limit: 1, sort: "created" as const };
    const { counts } = await call("GET /v1/orgs/:org_slug/machines", { params, query, signal: this.#signal });
    this.#counts = counts;
    for (const app_name of inSight.keys()) {
      if (this.#apps.has(app_name)) continue;
      const machines = await this.#ofApp(app_name);
      this.#drop(app_name);
      for (const machine of machines) this.#machines.set(machine.id, machine);
      this.#apps.add(app_name);
    }
    for (const app_name of this.#apps) if (!inSight.has(app_name)) this.#drop(app_name);
  }

  #drop(app_name: string): void {
    this.#apps.delete(app_name);
    for (const machine of this.#machines.values()) if (machine.app_name === app_name) this.#machines.delete(machine.id);
  }

  /** An app's machines, up to the number that is followed; none when there is no such app. */
  async #ofApp(app_name: string): Promise<FleetMachine[]> {
    const all: FleetMachine[] = [];
    const pages = session.value?.client.pages("GET /v1/apps/:app_name/machines", {
      params: { app_name },
      query: { summary: true, limit: PAGE },
      signal: this.#signal,
    });
    try {
      for await (const page of pages ?? []) {
        for (const { instance_id, image_ref, ...machine } of page) {
          const image = `${image_ref.repository}${image_ref.tag ? `:${image_ref.tag}` : ""}`;
          all.push({ ...machine, app_name, version: instance_id, host_status: "ok", config: { image } });
        }
        if (all.length >= FOLLOWED) break;
      }
    } catch (thrown) {
      if (!(thrown instanceof ClientError && thrown.http === 404)) throw thrown;
    }
    return all;
  }

  #watchHosts(): void {
    this.#watching = setTimeout(() => {
      (document.hidden ? Promise.resolve() : this.#readHosts()).then(
        () => this.#over || this.#watchHosts(),
        () => this.#over || this.#watchHosts(),
      );
    }, HOSTS_MS);
  }

  /** Most often no machine is listed. */
  async #readHosts(): Promise<void> {
    const found = new Map<string, string>();
    const pages = session.value?.client.pages("GET /v1/orgs/:org_slug/machines", {
      params: { org_slug: this.#org_slug },
      query: { host_status: NOT_OK, limit: PAGE },
      signal: this.#signal,
    });
    for await (const page of pages ?? []) for (const { id, host_status } of page) found.set(id, host_status);
    for (const machine of this.#machines.values()) {
      const host_status = found.get(machine.id) ?? "ok";
      if (host_status === machine.host_status) continue;
      this.#machines.set(machine.id, { ...machine, host_status });
      this.#changed();
    }
  }

  #changed(): void {
    if (!this.#over) this.#drawing.ask();
  }

  #publish(): void {
    if (this.#over) return;
    const incoming = this.#incoming;
    this.#incoming = [];
    if (incoming.length > 0) {
      this.#events = [...incoming.toReversed(), ...this.#events].slice(0, EVENTS_KEPT);
      this.#waiting.push(...incoming);
    }
    // The list first: buffered events are newer, or already included.
    if (this.#loaded) for (const event of this.#waiting.splice(0)) this.#apply(event);
    fleet.set({
      machines: this.#machines,
      large: this.#large,
      counts: this.#counts,
      loaded: this.#loaded,
      events: this.#events,
      link: this.#link,
      problem: this.#problem,
    });
  }

  #apply(event: FleetEvent): void {
    const { machine_id, status } = event;
    const machine = this.#machines.get(machine_id);
    if (this.#large) this.#gather(GATHER_LARGE_MS);
    if (status === "destroyed") {
      this.#machines.delete(machine_id);
      return;
    }
    if (!machine || machine.version !== event.instance_id) {
      this.#apps.delete(event.app_name);
      this.#gather();
      return;
    }
    // The stream begins in the past, so the list may be newer than its first events.
    const old = event.timestamp < Date.parse(machine.updated_at);
    if (old || !STATES.includes(status) || machine.state === status) return;
    const updated_at = new Date(event.timestamp).toISOString();
    this.#machines.set(machine_id, { ...machine, state: status, updated_at });
  }

  #gather(pause_ms = GATHER_MS): void {
    this.#gathering ??= setTimeout(() => {
      this.#gathering = undefined;
      this.#sync().then(
        () => this.#changed(),
        () => this.#over || this.#gather(),
      );
    }, pause_ms);
  }

  #fail(thrown: unknown): void {
    this.#problem = thrown instanceof ClientError ? thrown : new ClientError(0, { error: String(thrown) });
    this.#link = "broken";
    this.#changed();
  }

  get #signal(): AbortSignal {
    return this.#ending.signal;
  }

  get #over(): boolean {
    return this.#ending.signal.aborted;
  }
}
