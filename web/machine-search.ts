/**
 * Machines that the platform finds, for organizations with more than the dashboard follows:
 *
 *   scrolling → pages are requested as they come into sight, and forgotten when they are far from it
 *   events    → states of what is here change at once; new configs and counts are requested
 */
import { Cell } from "./cell.ts";
import { type Counts, type FleetEvent, type FleetMachine, fleet, STATES } from "./fleet.ts";
import { oncePerFrame } from "./frame.ts";
import { call, org } from "./session.ts";

export interface Wanted {
  text: string;
  state: string;
}

/** The place of a machine that is not here. */
export interface Gap {
  id: string;
  gap: true;
}

export const isGap = (row: FleetMachine | Gap): row is Gap => "gap" in row;

interface Found {
  rows: readonly (FleetMachine | Gap)[];
  counts: Counts | undefined;
  loaded: boolean;
  problem: unknown;
}

interface Page {
  /** What the platform is asked for it; undefined for the first one. */
  cursor: string | undefined;
  size: number;
  machines: FleetMachine[] | undefined;
}

/** Rows of a page. */
const PAGE = 100;
/** Pages kept around those in sight. */
const KEPT = 12;
/** Changes that events do not carry are batched for this long. */
const GATHER_MS = 500;
/** Counts are requested at most this often while machines change. */
const COUNT_MS = 2000;

const gap = (place: number): Gap => ({ id: `place ${place}`, gap: true });

/** One search in one organization, until it is stopped. */
export class MachineSearch {
  readonly found = new Cell<Found>({ rows: [], counts: undefined, loaded: false, problem: undefined });
  readonly #wanted: Wanted;
  readonly #ending = new AbortController();
  readonly #drawing = oncePerFrame(() => this.#publish());
  readonly #pages: Page[] = [];
  readonly #places = new Map<string, Page>();
  readonly #asked = new Set<Page>();
  readonly #stale = new Set<Page>();
  readonly #timers = new Map<() => void, ReturnType<typeof setTimeout>>();
  /** The next page's cursor, if there is one. */
  #next: string | undefined;
  #counts: Counts | undefined;
  #problem: unknown;
  #sight: readonly [first: number, last: number] = [0, 0];
  #seen = fleet.value.events[0]?.cursor ?? 0;
  readonly #unwatch = fleet.watch(() => this.#follow());

  constructor(wanted: Wanted) {
    this.#wanted = wanted;
    void this.#load(this.#add(undefined), true);
  }

  stop(): void {
    this.#ending.abort();
    this.#unwatch();
    this.#drawing.stop();
    for (const timer of this.#timers.values()) clearTimeout(timer);
  }

  /** Rows in sight: their pages are requested, and others are forgotten. */
  see(first: number, last: number): void {
    this.#sight = [first, last];
    let place = 0;
    for (const page of this.#pages) {
      if (!page.machines && place < last && place + page.size > first) void this.#load(page);
      place += page.size;
    }
    if (last > place && this.#next !== undefined) {
      const cursor = this.#next;
      this.#next = undefined;
      void this.#load(this.#add(cursor));
    }
    this.#forget();
  }

  #add(cursor: string | undefined): Page {
    const page: Page = { cursor, size: 0, machines: undefined };
    this.#pages.push(page);
    return page;
  }

  async #load(page: Page, count = false): Promise<void> {
    if (this.#asked.has(page)) return;
    this.#asked.add(page);
    try {
      const { machines, next_cursor, counts } = await this.#ask(page.cursor, PAGE, count);
      if (counts) this.#counts = counts;
      page.machines = machines;
      page.size = machines.length;
      for (const { id } of machines) this.#places.set(id, page);
      if (page === this.#pages.at(-1)) this.#next = next_cursor;
      this.#problem = undefined;
    } catch (thrown) {
      if (this.#over) return;
      this.#problem = thrown;
      if (page.size === 0 && this.#pages.length > 1) {
        this.#pages.pop();
        this.#next = page.cursor;
      }
    } finally {
      this.#asked.delete(page);
    }
    this.#drawing.ask();
  }

  #ask(cursor: string | undefined, limit: number, count: boolean) {
    const { text, state } = this.#wanted;
    return call("GET /v1/orgs/:org_slug/machines", {
      params: { org_slug: org() },
      query: {
        sort: "created",
        limit,
        search: text,
        ...(state === "" ? {} : { state: [state] }),
        ...(cursor === undefined ? {} : { cursor }),
        ...(count ? { count } : {}),
      },
      signal: this.#ending.signal,
    });
  }

  /** Pages far from those in sight keep their place only. */
  #forget(): void {
    const here = this.#pages.filter(({ machines }) => machines);
    if (here.length <= KEPT) return;
    const middle = (this.#sight[0] + this.#sight[1]) / 2 / PAGE;
    const far = (page: Page): number => Math.abs(this.#pages.indexOf(page) - middle);
    for (const page of here.sort((x, y) => far(y) - far(x)).slice(0, here.length - KEPT)) {
      for (const { id } of page.machines ?? []) this.#places.delete(id);
      page.machines = undefined;
    }
  }

  /** New events of the organization's stream. */
  #follow(): void {
    const { events } = fleet.value;
    const before = this.#seen;
    const end = events.findIndex(({ cursor }) => cursor <= before);
    const fresh = end < 0 ? events : events.slice(0, end);
    if (fresh.length === 0) return;
    this.#seen = fresh[0]?.cursor ?? before;
    for (const event of fresh.toReversed()) this.#apply(event);
    this.#later(this.#recount, COUNT_MS);
    if (this.#stale.size > 0) this.#later(this.#reload, GATHER_MS);
  }

  #apply({ machine_id, status, instance_id, timestamp }: FleetEvent): void {
    const page = this.#places.get(machine_id);
    const at = page?.machines?.findIndex(({ id }) => id === machine_id) ?? -1;
    const machine = page?.machines?.[at];
    if (!page?.machines || !machine) return;
    if (machine.version !== instance_id) this.#stale.add(page);
    if (timestamp < Date.parse(machine.updated_at) || !STATES.includes(status) || machine.state === status) return;
    page.machines[at] = { ...machine, state: status, updated_at: new Date(timestamp).toISOString() };
    this.#drawing.ask();
  }

  readonly #recount = (): void => {
    this.#ask(undefined, 1, true).then(
      ({ counts }) => {
        this.#counts = counts;
        this.#drawing.ask();
      },
      () => {},
    );
  };

  readonly #reload = (): void => {
    for (const page of this.#stale) if (page.machines) void this.#load(page);
    this.#stale.clear();
  };

  #later(work: () => void, pause_ms: number): void {
    if (this.#timers.has(work)) return;
    const run = (): void => {
      this.#timers.delete(work);
      work();
    };
    this.#timers.set(work, setTimeout(run, pause_ms));
  }

  #publish(): void {
    if (this.#over) return;
    const rows = this.#pages.flatMap(
      ({ machines, size }, index): (FleetMachine | Gap)[] =>
        machines ?? Array.from({ length: size }, (_, row) => gap(index * PAGE + row)),
    );
    const more = this.#next !== undefined || this.#asked.has(this.#pages.at(-1) as Page);
    if (more) for (let row = 0; row < PAGE; row++) rows.push(gap(this.#pages.length * PAGE + row));
    const loaded = this.found.value.loaded || (this.#pages[0]?.size ?? 0) > 0 || this.#asked.size === 0;
    this.found.set({ rows, counts: this.#counts, loaded, problem: this.#problem });
  }

  get #over(): boolean {
    return this.#ending.signal.aborted;
  }
}
