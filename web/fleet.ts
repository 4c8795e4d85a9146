/**
 * The machines of the organization, kept up to date by its stream of events:
 *
 *   stream → states change at once, once per frame however many events came
 *          → data that events lack (a new machine, a new config) is fetched, all of it in one request
 */
import { ClientError } from "#client/client.ts";
import { again } from "./again.ts";
import { Cell } from "./cell.ts";
import { oncePerFrame } from "./frame.ts";
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

interface Fleet {
  machines: ReadonlyMap<string, FleetMachine>;
  loaded: boolean;
  /** Newest first. */
  events: readonly FleetEvent[];
  link: "connecting" | "live" | "broken";
  problem: ClientError | undefined;
}

const EMPTY: Fleet = { machines: new Map(), loaded: false, events: [], link: "connecting", problem: undefined };
const STREAM = "GET /v1/orgs/:org_slug/events";
const EVENTS_KEPT = 1000;
/** Number of past events shown. */
const EVENTS_BEFORE = 300;
const PAGE = 1000;
/** Changes that events do not carry are batched for this long, then requested together. */
const GATHER_MS = 250;
/** Pause between two requests for the machines whose host does not report. */
const HOSTS_MS = 5000;
const NOT_OK = ["unknown", "unreachable"];

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
  #link: Fleet["link"] = "connecting";
  #problem: ClientError | undefined;
  readonly #drawing = oncePerFrame(() => this.#publish());
  #gathering: ReturnType<typeof setTimeout> | undefined;
  #watching: ReturnType<typeof setTimeout> | undefined;
  /** The newest `updated_at` seen; later changes are requested from here. */
  #seen = "";

  constructor(org_slug: string) {
    this.#org_slug = org_slug;
  }

  start(): void {
    fleet.set(EMPTY);
    void this.#follow();
    void this.#load();
  }

  stop(): void {
    this.#ending.abort();
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
      query: this.#cursor === undefined ? { tail: EVENTS_BEFORE } : { cursor: this.#cursor },
      signal: this.#signal,
    };
    const events = client.stream<typeof STREAM, FleetEvent>(STREAM, input, () => {
      this.#link = "live";
      this.#changed();
    });
    for await (const event of events) {
      onMessage();
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
    for await (const machine of this.#list(this.#seen ? { updated_after: this.#seen } : {})) {
      this.#machines.set(machine.id, machine);
      if (machine.updated_at > this.#seen) this.#seen = machine.updated_at;
    }
  }

  async *#list(filter: { updated_after?: string; host_status?: string[] }): AsyncGenerator<FleetMachine> {
    let cursor: string | undefined;
    do {
      const { machines, next_cursor } = await call("GET /v1/orgs/:org_slug/machines", {
        params: { org_slug: this.#org_slug },
        query: { limit: PAGE, ...filter, ...(cursor ? { cursor } : {}) },
        signal: this.#signal,
      });
      yield* machines;
      cursor = next_cursor;
    } while (cursor);
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
    for await (const { id, host_status } of this.#list({ host_status: NOT_OK })) found.set(id, host_status);
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
      loaded: this.#loaded,
      events: this.#events,
      link: this.#link,
      problem: this.#problem,
    });
  }

  #apply(event: FleetEvent): void {
    const { machine_id, status } = event;
    const machine = this.#machines.get(machine_id);
    if (status === "destroyed") {
      this.#machines.delete(machine_id);
      return;
    }
    if (!machine || machine.version !== event.instance_id) {
      this.#gather();
      return;
    }
    // The stream begins in the past, so the list may be newer than its first events.
    const old = event.timestamp < Date.parse(machine.updated_at);
    if (old || !STATES.includes(status) || machine.state === status) return;
    const updated_at = new Date(event.timestamp).toISOString();
    this.#machines.set(machine_id, { ...machine, state: status, updated_at });
  }

  #gather(): void {
    this.#gathering ??= setTimeout(() => {
      this.#gathering = undefined;
      this.#sync().then(
        () => this.#changed(),
        () => this.#over || this.#gather(),
      );
    }, GATHER_MS);
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
