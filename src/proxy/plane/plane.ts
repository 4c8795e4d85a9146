import { isDeepStrictEqual } from "node:util";
import type { Clock } from "#core/clock.ts";
import { randomIds } from "#core/ids.ts";
import { PROXY_LIMITS } from "../limits.ts";
import { Slots } from "../slots.ts";
import {
  type AppTable,
  addressesOf,
  type ClosedListener,
  type RecentRequest,
  type Report,
  type WorkerCommand,
  type WorkerSettings,
} from "../table.ts";
import type { ReplayBudget } from "./balance/replay.ts";
import { Route } from "./balance/route.ts";
import { TargetState, type WorkerContext } from "./balance/target.ts";
import { type Counters, EdgeCounters, TargetCounters } from "./counters.ts";
import type { Peer } from "./header-rewrite.ts";
import { DatagramListener } from "./listen/datagrams.ts";
import { type ListenAddress, Listener, listenerKey } from "./listen/listener.ts";
import { proxyHeader } from "./listen/proxy-protocol.ts";
import { Keyring } from "./listen/tls.ts";
import { RequestIds } from "./request-ids.ts";
import { Buckets } from "./static/bucket.ts";
import { Statics } from "./static/statics.ts";
import { Tracer } from "./trace/tracer.ts";
import type { PlaneServices, Watched } from "./types.ts";

interface AppState {
  table: AppTable;
  targets: Map<number, TargetState>;
  routes: Map<string, Route>;
  counters: EdgeCounters;
  statics: Statics;
}

/**
 * One worker's data plane: its apps, listeners and connections. It receives tables and reports counts; it has no
 * persistent state.
 */
export class Plane implements PlaneServices {
  readonly region: string;
  readonly keys: Keyring;
  /** Responses to ACME challenges, by token. */
  challenges: Readonly<Record<string, string>> = {};
  /** Bodies buffered for replays. */
  readonly replayBudget: ReplayBudget = { bytes: 0 };
  readonly #settings: WorkerSettings;
  readonly #report: (report: Report) => void;
  readonly #clock: Clock;
  readonly #ids: RequestIds;
  readonly #context: WorkerContext;
  readonly #buckets: Buckets;
  readonly #apps = new Map<string, AppState>();
  readonly #listeners = new Map<string, Listener | DatagramListener>();
  readonly #watched = new Set<Watched>();
  readonly tracer: Tracer | undefined;
  /** Failed and slow requests since the last report, by app. */
  readonly #recent = new Map<string, RecentRequest[]>();
  /** Counters of removed apps and machines, reported once more. */
  readonly #leftovers: Counters[] = [];
  /** The first port of each service beyond the listener limit. */
  #leftOut: ClosedListener[] = [];
  #reported: ClosedListener[] = [];
  #draining = false;
  readonly #sweeper: NodeJS.Timeout;

  constructor(settings: WorkerSettings, parts: { clock: Clock; report(report: Report): void }) {
    this.region = settings.region;
    this.keys = new Keyring(settings.fallback, settings.ticket_keys);
    this.#settings = settings;
    this.#report = parts.report;
    this.#clock = parts.clock;
    this.#buckets = new Buckets(settings.buckets, parts.clock);
    this.#ids = new RequestIds(parts.clock, randomIds(parts.clock));
    const { clock } = parts;
    this.tracer = settings.traces && new Tracer(settings.traces, clock);
    // Each thread has its own monotonic origin; shared seconds use the control thread's.
    const ahead = settings.monotonic_ms - clock.monotonic();
    this.#context = {
      slots: new Slots(settings.slots),
      worker: settings.worker,
      now: () => clock.monotonic(),
      shared_s: () => Math.floor((clock.monotonic() + ahead) / 1000),
      unreachable: ({ machine_id, port }) => this.#report({ type: "unreachable", machine_id, port }),
    };
    this.#sweeper = setInterval(() => this.#sweep(), PROXY_LIMITS.sweep_ms);
  }

  now(): number {
    return this.#clock.monotonic();
  }

  /** A flood of failures leaves the newest. */
  report(app_id: string, request: RecentRequest): void {
    const list = this.#recent.get(app_id) ?? [];
    this.#recent.set(app_id, list);
    list.push(request);
    if (list.length > PROXY_LIMITS.requests_reported) list.shift();
  }

  requestId(): string {
    return this.#ids.next();
  }

  get crowded(): boolean {
    return this.#watched.size >= PROXY_LIMITS.connections;
  }

  watch(watched: Watched): void {
    this.#watched.add(watched);
    if (this.#draining) watched.drain(true);
  }

  unwatch(watched: Watched): void {
    this.#watched.delete(watched);
  }

  /** The PROXY protocol header for a machine that wants one. */
  preface({ table }: Route, peer: Peer): Buffer | undefined {
    const version = table.options.proxy_protocol;
    return version === 0 ? undefined : proxyHeader(version, peer);
  }

  sibling(app_name: string, like: Route): Route | undefined {
    if (app_name === like.app.app_name) return this.#apps.get(like.app.app_id)?.routes.get(like.key);
    for (const { table, routes } of this.#apps.values()) {
      if (table.app_name !== app_name || table.org_id !== like.app.org_id) continue;
      const same = routes.get(like.key);
      return [...(same ? [same] : []), ...routes.values()].find((route) => route.table.options.http);
    }
    return undefined;
  }

  /** Microseconds since 1970, for timestamps in headers. */
  now_us(): number {
    return this.#clock.now() * 1000;
  }

  apply(order: WorkerCommand): void {
    switch (order.type) {
      case "app":
        this.#setApp(order.app);
        this.#updateListeners();
        return;
      case "no app":
        this.#dropApp(order.app_id);
        this.#updateListeners();
        return;
      case "certificates":
        this.keys.set(order.certificates);
        return;
      case "challenges":
        this.challenges = order.answers;
        return;
      case "unreachable":
        this.#explain(order);
        return;
      case "ready?":
        return void this.#reportReady(order.id);
      case "drain":
        return void this.#drain(order.patient);
    }
  }

  /** Closes everything at once. */
  close(): void {
    clearInterval(this.#sweeper);
    for (const listener of this.#listeners.values()) listener.close();
    for (const watched of this.#watched) watched.cut();
    for (const { targets } of this.#apps.values()) for (const target of targets.values()) target.retire();
    this.#buckets.close();
    this.#reportCounts();
    this.#reportRequests();
  }

  #explain({ machine_id, port, reason }: Extract<WorkerCommand, { type: "unreachable" }>): void {
    for (const { targets } of this.#apps.values())
      for (const target of targets.values())
        if (target.table.machine_id === machine_id && target.table.port === port) target.reason = reason;
  }

  #setApp(table: AppTable): void {
    const before = this.#apps.get(table.app_id);
    const counters = before?.counters ?? this.#edgeCounters(table);
    const statics = this.#statics(before, table);
    const targets = new Map<number, TargetState>();
    const routes = new Map<string, Route>();
    for (const port of table.ports) {
      for (const target of port.targets) {
        if (!targets.has(target.slot)) targets.set(target.slot, this.#target(before, target, table));
      }
      const own = port.targets.map(({ slot }) => targets.get(slot) as TargetState);
      const request = { type: "start", app_id: table.app_id, port: port.start, protocol: port.protocol } as const;
      const requestStart = (reason: string, machine_id?: string): void =>
        this.#report({ ...request, reason, ...(machine_id ? { machine_id } : {}) });
      const parts = { app: table, table: port, targets: own, counters, statics, floor: this.#context, requestStart };
      const route = new Route(parts);
      routes.set(route.key, route);
    }
    this.#apps.set(table.app_id, { table, targets, routes, counters, statics });
    if (before) this.#replace(before, { targets, routes });
  }

  /** Unchanged static sites are kept, with their caches. */
  #statics(before: AppState | undefined, { statics }: AppTable): Statics {
    if (before && isDeepStrictEqual(before.table.statics, statics)) return before.statics;
    return new Statics(statics, this.#buckets);
  }

  #target(before: AppState | undefined, table: TargetState["table"], app: AppTable): TargetState {
    const known = before?.targets.get(table.slot);
    const same = known?.table.machine_id === table.machine_id && known.table.mode === table.mode;
    const there = known?.table.host === table.host && known.table.ipv4 === table.ipv4;
    if (known && same && there && known.table.instance_id === table.instance_id) {
      known.table = table;
      return known;
    }
    const labels = { app: app.app_name, region: table.region, host: table.host_id, instance: table.instance_id };
    return new TargetState(table, this.#context, new TargetCounters(app.org_id, labels));
  }

  #replace(before: AppState, now: Pick<AppState, "targets" | "routes">): void {
    for (const [slot, target] of before.targets) {
      if (now.targets.get(slot) === target) continue;
      target.retire();
      this.#leftovers.push(target.counters);
    }
    for (const [key, route] of before.routes) {
      const next = now.routes.get(key);
      if (next) route.handOver(next);
      else for (const pending of route.close()) pending.refused(CLOSED);
    }
  }

  #dropApp(app_id: string): void {
    const before = this.#apps.get(app_id);
    if (!before) return;
    this.#apps.delete(app_id);
    this.#replace(before, { targets: new Map(), routes: new Map() });
    this.#leftovers.push(before.counters);
  }

  #edgeCounters({ org_id, app_name }: AppTable): EdgeCounters {
    return new EdgeCounters(org_id, { app: app_name, region: this.region, host: this.#settings.host_id });
  }

  /** Opens required listeners and closes others. */
  #updateListeners(): void {
    if (this.#draining) return;
    const { wanted, left_out } = this.#wantedListeners();
    this.#leftOut = left_out;
    for (const [key, listener] of this.#listeners) {
      if (wanted.has(key)) continue;
      listener.routes = [];
      listener.close();
      this.#listeners.delete(key);
      for (const watched of this.#watched) if (watched.listener === listener) watched.drain(false);
    }
    for (const [key, place] of wanted) {
      let listener = this.#listeners.get(key);
      if (!listener) {
        listener = place.protocol === "udp" ? new DatagramListener(place, this) : new Listener(place, this);
        this.#listeners.set(key, listener);
      }
      listener.routes = place.routes;
    }
    this.#reportListeners();
  }

  #wantedListeners(): { wanted: Map<string, ListenAddress>; left_out: ClosedListener[] } {
    const wanted = new Map<string, ListenAddress>();
    const left_out: ClosedListener[] = [];
    const apps = [...this.#apps.values()].sort(byAge);
    for (const { table, routes } of apps) {
      for (const route of routes.values()) {
        for (const address of addressesOf(table, this.#settings.listen_host)) {
          left_out.push(...addListeners(wanted, address, route));
        }
      }
    }
    return { wanted, left_out };
  }

  async #reportReady(id: number): Promise<void> {
    await Promise.all([...this.#listeners.values()].map((listener) => listener.opened));
    this.#reportListeners();
    this.#report({ type: "ready", id });
  }

  /** Reports which ports are not open, and why, when that changes. */
  #reportListeners(): void {
    const closed = [...this.#listeners.values()].flatMap(({ address, port, protocol, problem }): ClosedListener[] =>
      problem ? [{ address, port, protocol, problem }] : [],
    );
    const failed = [...closed, ...this.#leftOut];
    if (isDeepStrictEqual(failed, this.#reported)) return;
    this.#reported = failed;
    this.#report({ type: "listeners", failed });
  }

  #sweep(): void {
    const now = this.now();
    for (const watched of this.#watched) watched.sweep(now);
    for (const { targets } of this.#apps.values()) for (const target of targets.values()) target.sweep();
    for (const listener of this.#listeners.values()) if (listener.problem) listener.reopen(now);
    this.#reportListeners();
    this.#reportCounts();
    this.#reportRequests();
  }

  #reportCounts(): void {
    // What is still in progress at a withdrawn machine is counted when it ends.
    const sources: Counters[] = this.#leftovers.splice(0);
    this.#leftovers.push(...sources.filter(({ busy }) => busy));
    for (const { counters, targets } of this.#apps.values()) {
      sources.push(counters);
      for (const target of targets.values()) sources.push(target.counters);
    }
    const counts = sources.flatMap((source) => source.take());
    if (counts.length > 0) this.#report({ type: "counts", counts });
  }

  #reportRequests(): void {
    for (const [app_id, requests] of this.#recent) this.#report({ type: "requests", app_id, requests });
    this.#recent.clear();
    const traced = this.tracer?.take();
    if (traced) this.#report({ type: "spans", ...traced });
  }

  async #drain(patient: boolean): Promise<void> {
    const again = this.#draining;
    this.#draining = true;
    for (const watched of this.#watched) watched.drain(patient);
    if (again) return;
    await Promise.all([...this.#listeners.values()].map((listener) => listener.stop()));
    const until = this.now() + PROXY_LIMITS.drain_ms;
    while (this.#watched.size > 0 && this.now() < until) await this.#clock.sleep(50);
    this.close();
    this.#report({ type: "drained" });
  }
}

/** Oldest app first; ties are ordered the same way in every worker. */
const byAge = ({ table: a }: AppState, { table: b }: AppState): number =>
  a.since - b.since || (a.app_id < b.app_id ? -1 : 1);

const CLOSED = { status: 503, reason: "no_machine", text: "the app is no longer served at this port" };

/** Returns the first port beyond the listener limit, if any. A port that is already open needs no new listener. */
function addListeners(wanted: Map<string, ListenAddress>, address: string, route: Route): ClosedListener[] {
  const { protocol, start, end } = route.table;
  let left_out: ClosedListener | undefined;
  for (let port = start; port <= end; port++) {
    const key = listenerKey({ protocol, address, port });
    const place = wanted.get(key);
    if (place) place.routes.push(route);
    else if (wanted.size < PROXY_LIMITS.listeners) wanted.set(key, { protocol, address, port, routes: [route] });
    else left_out ??= { protocol, address, port, problem: noRoom(address, port) };
  }
  return left_out ? [left_out] : [];
}

const noRoom = (address: string, port: number): string =>
  `${address} port ${port} is not open: at most ${PROXY_LIMITS.listeners} are, on all addresses together (limit listeners)`;
