/** Autostop: which machines may stop, counted per service, and that it does not stop and start them in turns. */
import assert from "node:assert/strict";
import { suite, test } from "node:test";
import { silentLog } from "#core/log.ts";
import type { Entry } from "#network/directory.ts";
import { random, seed } from "../../test/support.ts";
import { anAppTable, aTarget, OPTIONS } from "./fixtures.ts";
import { IdleWatch } from "./idle.ts";
import { Route } from "./plane/balance/route.ts";
import { TargetState } from "./plane/balance/target.ts";
import { EdgeCounters, TargetCounters } from "./plane/counters.ts";
import { Slots } from "./slots.ts";

const IDLE_S = 120;
const LOOK_S = 5;

/** A service at an exposed port, with autostop. */
const service = (port: number, more: object = {}): object => ({
  protocol: "tcp",
  internal_port: 8000 + port,
  autostart: true,
  autostop: "stop",
  ports: [{ port, handlers: ["http"] }],
  ...more,
});

function machine(id: string, services: readonly object[], more: Partial<Record<keyof Entry, unknown>> = {}): Entry {
  const rest = { app_id: "a1", instance_id: "v1", region: "local", created_at: 1, cordoned: false, leased: false };
  return { id, state: "started", checks: {}, ...rest, ...more, config: { services, env: {} } } as unknown as Entry;
}

/** The machines of a platform, on a clock that the test moves. */
class Fleet {
  time_ms = 0;
  readonly slots = new Slots();
  readonly stops: { id: string; reason: string }[] = [];
  readonly #machines: Entry[];
  readonly #slotOf = new Map<string, number>();
  readonly #watch: IdleWatch;

  constructor(machines: Entry[]) {
    this.#machines = machines;
    const stop = async (id: string, _options: unknown, { reason }: { reason: string }): Promise<never> => {
      this.stops.push({ id, reason });
      this.find(id).state = "stopped";
      return undefined as never;
    };
    this.#watch = new IdleWatch({
      apps: () => [this.#machines],
      busyness: (one) => {
        const slots = this.#slotsOf(one);
        return {
          load: slots.reduce((sum, slot) => sum + this.slots.load(slot), 0),
          active_at_s: Math.max(0, ...slots.map((slot) => this.slots.activeAt(slot))),
        };
      },
      load: ({ id }, port) => this.slots.inUse(this.slot(id, port)),
      takePeak: ({ id }, port) => this.slots.takePeak(this.slot(id, port)),
      withdraw: async () => () => {},
      machines: { stop: stop as never, suspend: stop as never },
      idle_s: IDLE_S,
      clock: {
        now: () => this.time_ms,
        monotonic: () => this.time_ms,
        sleep: () => new Promise((resolve) => setImmediate(resolve)),
      },
      log: silentLog,
    });
  }

  get now_s(): number {
    return Math.floor(this.time_ms / 1000);
  }

  find(id: string): Entry {
    return this.#machines.find((one) => one.id === id) ?? assert.fail(`there is no machine ${id}`);
  }

  slot(id: string, port: number): number {
    const key = `${id} ${port}`;
    const slot = this.#slotOf.get(key) ?? this.#slotOf.size;
    this.#slotOf.set(key, slot);
    return slot;
  }

  #slotsOf({ id, config }: Entry): number[] {
    return (config.services ?? []).map(({ internal_port }) => this.slot(id, internal_port));
  }

  /** Advances the clock by so many seconds, with the autostop checks due in them. */
  async pass(seconds: number, meanwhile: () => void = () => {}): Promise<void> {
    for (let i = 0; i < seconds / LOOK_S; i++) {
      this.time_ms += LOOK_S * 1000;
      meanwhile();
      await this.#watch.look();
    }
  }

  get stopped(): string[] {
    return this.stops.map(({ id }) => id);
  }
}

const ONE = { min_machines_running: 1 };

suite("autostop of machines without requests", () => {
  const others: [what: string, machine: Entry][] = [
    ["a worker without services", machine("other", [])],
    ["a machine of another port", machine("other", [service(81, { autostop: "off" })])],
    ["a machine of another protocol", machine("other", [service(80, { protocol: "udp", autostop: "off" })])],
    ["a machine whose check fails", machine("other", [service(80, ONE)], { checks: { up: { status: "critical" } } })],
    ["a cordoned machine", machine("other", [service(80, ONE)], { cordoned: true })],
  ];
  for (const [what, other] of others)
    test(`${what} does not count for min_machines_running`, async () => {
      const fleet = new Fleet([machine("web", [service(80, ONE)]), other]);
      await fleet.pass(10 * IDLE_S);
      assert.ok(!fleet.stopped.includes("web"), JSON.stringify(fleet.stops));
    });

  test("min_machines_running keeps one of two machines, and without it all may stop", async () => {
    const fleet = new Fleet([machine("a", [service(80, ONE)]), machine("b", [service(80, ONE)])]);
    await fleet.pass(10 * IDLE_S);
    assert.deepEqual(fleet.stopped, ["a"]);
    const none = new Fleet([machine("a", [service(80)]), machine("b", [service(80)])]);
    await none.pass(10 * IDLE_S);
    assert.deepEqual(none.stopped, ["a", "b"]);
  });

  test("a machine with two services keeps running when one of them would fall below its minimum", async () => {
    const both = machine("both", [service(80), service(81, ONE)]);
    const fleet = new Fleet([both, machine("web", [service(80)])]);
    await fleet.pass(10 * IDLE_S);
    assert.deepEqual(fleet.stopped, ["web"]);
  });

  test("the largest minimum of a service's machines counts, and the home region is the service's own", async () => {
    const fleet = new Fleet([
      machine("worker", [], { region: "ams", created_at: 0 }),
      machine("a", [service(80)], { region: "fra" }),
      machine("b", [service(80, { min_machines_running: 2 })], { region: "fra", created_at: 2 }),
      machine("far", [service(80)], { region: "ams", created_at: 3 }),
    ]);
    await fleet.pass(10 * IDLE_S);
    assert.deepEqual(fleet.stopped, ["far"]);
  });

  test("a machine without an open port is not stopped for lack of requests", async () => {
    const fleet = new Fleet([machine("closed", [service(80, { ports: [] })])]);
    await fleet.pass(10 * IDLE_S);
    assert.deepEqual(fleet.stops, []);
  });
});

/** Requests for port 80 of the machines, balanced as a worker does it; they start a machine when they need it. */
class Traffic {
  readonly starts: string[] = [];
  readonly #fleet: Fleet;
  readonly #ids: readonly string[];
  readonly #soft: number;
  readonly #chance: () => number;
  readonly #ends: { at_ms: number; target: TargetState }[] = [];
  #route: { ids: string; route: Route } | undefined;

  constructor(fleet: Fleet, ids: readonly string[], { soft, chance }: { soft: number; chance(): number }) {
    this.#fleet = fleet;
    this.#ids = ids;
    this.#soft = soft;
    this.#chance = chance;
  }

  /** Requests at random moments of the time until now: so many a second, each of so long on average. */
  flow(per_s: number, mean_ms: number): void {
    const until_ms = this.#fleet.time_ms;
    for (let at = until_ms - LOOK_S * 1000; ; ) {
      at += (-Math.log(1 - this.#chance()) * 1000) / per_s;
      if (at >= until_ms) break;
      this.#endUntil(at);
      this.#request(at, -Math.log(1 - this.#chance()) * mean_ms);
    }
    this.#endUntil(until_ms);
  }

  #request(at_ms: number, ms: number): void {
    this.#current().obtain({
      kind: "seat",
      fresh: false,
      preface: undefined,
      since: 0,
      refused_at: undefined,
      aborted: false,
      got: (target) => void (target && this.#ends.push({ at_ms: at_ms + ms, target })),
      refused: ({ text }) => assert.fail(text),
    });
  }

  #endUntil(at_ms: number): void {
    this.#ends.sort((a, b) => a.at_ms - b.at_ms);
    while ((this.#ends[0]?.at_ms ?? at_ms) < at_ms) this.#ends.shift()?.target.release();
  }

  /** The machines that run now. */
  #current(): Route {
    const running = this.#ids.filter((id) => this.#fleet.find(id).state === "started");
    const ids = running.join(" ");
    if (this.#route?.ids !== ids) this.#route = { ids, route: this.#routeOf(running) };
    return this.#route.route;
  }

  #routeOf(ids: readonly string[]): Route {
    const fleet = this.#fleet;
    const targets = ids.map((id) => aTarget(1, { machine_id: id, slot: fleet.slot(id, 8080), soft: this.#soft }));
    const startable = this.#ids
      .filter((id) => !ids.includes(id))
      .map((machine_id) => ({ machine_id, region: "local" }));
    const table = { protocol: "tcp", start: 80, end: 80, options: OPTIONS, targets, startable, empty: "" } as const;
    const clock = { now: () => fleet.time_ms, shared_s: () => fleet.now_s };
    const floor = { slots: fleet.slots, worker: 0, ...clock, unreachable: () => {} };
    return new Route({
      app: anAppTable("web", table),
      table,
      targets: targets.map((one) => new TargetState(one, floor, new TargetCounters("o1", {}))),
      counters: new EdgeCounters("o1", {}),
      statics: undefined as never,
      floor,
      requestStart: () => this.#start(),
    });
  }

  #start(): void {
    const id = this.#ids.find((one) => this.#fleet.find(one).state !== "started");
    if (id === undefined) return;
    this.#fleet.find(id).state = "started";
    this.starts.push(id);
  }
}

const HOUR_S = 3600;

suite("autostop under steady requests", () => {
  /** An hour to settle, three more to see. */
  async function hours(t: { diagnostic(text: string): void }, load: { soft: number; per_s: number; mean_ms: number }) {
    const web = service(80, { ...ONE, concurrency: { type: "requests", soft_limit: load.soft } });
    const ids = ["a", "b", "c"];
    const fleet = new Fleet([machine("worker", []), ...ids.map((id) => machine(id, [web]))]);
    const traffic = new Traffic(fleet, ids, { soft: load.soft, chance: random(seed(t)) });
    const flow = (): void => traffic.flow(load.per_s, load.mean_ms);
    await fleet.pass(HOUR_S, flow);
    const settled = { stops: fleet.stops.length, starts: traffic.starts.length };
    await fleet.pass(3 * HOUR_S, flow);
    const running = ids.filter((id) => fleet.find(id).state === "started").length;
    const stops = fleet.stops.length - settled.stops;
    t.diagnostic(`${running} run; ${settled.stops} stops in the first hour, ${stops} in three more`);
    return { running, stops, starts: traffic.starts.length - settled.starts, reasons: fleet.stops };
  }

  test("a light load ends at one machine, and no machine is stopped after that", async (t) => {
    const { running, stops, starts, reasons } = await hours(t, { soft: 20, per_s: 1, mean_ms: 200 });
    assert.deepEqual({ running, stops, starts }, { running: 1, stops: 0, starts: 0 });
    assert.match(
      reasons.at(-1)?.reason ?? "",
      /^1 of 2 machines were enough for tcp 80 for 120 s \(at most \d at once, soft limit 20; autostop stop\)$/,
    );
  });

  test("short bursts between two samples keep the machines that they need", async (t) => {
    // Nearly always none or one at a time, several times a minute three or more, and every few minutes five.
    const { running, stops } = await hours(t, { soft: 2, per_s: 10, mean_ms: 40 });
    assert.ok(running >= 2, `${running} run`);
    assert.ok(stops <= 3, `${stops} stops in three hours`);
  });
});
