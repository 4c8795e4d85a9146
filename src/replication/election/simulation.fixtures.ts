/**
 * Elections in simulated time: nodes whose clocks run at different speeds, network partitions from the store, delayed
 * or lost responses, paused processes. Each seed is one deterministic run.
 *
 * As the entry of a thread it simulates many runs: the test runner follows every promise of its own thread, and a run
 * has thousands of them.
 */
import assert from "node:assert/strict";
import { parentPort, Worker, workerData } from "node:worker_threads";
import type { Clock } from "#core/clock.ts";
import { random } from "../../../test/support.ts";
import { type Electable, Elector } from "./elector.ts";
import type { Candidate, Lease, LeaseStore } from "./lease-store.ts";

/** Simulated time, which advances only when everyone waits. */
export class World {
  now_ms = 0;
  readonly #timers: { at_ms: number; order: number; run: () => void }[] = [];
  #order = 0;

  at(at_ms: number, run: () => void): () => void {
    const timer = { at_ms, order: this.#order++, run };
    this.#timers.push(timer);
    return () => {
      const i = this.#timers.indexOf(timer);
      if (i >= 0) this.#timers.splice(i, 1);
    };
  }

  async runUntil(end_ms: number): Promise<void> {
    for (;;) {
      await settle();
      this.#timers.sort((a, b) => a.at_ms - b.at_ms || a.order - b.order);
      const next = this.#timers[0];
      if (!next || next.at_ms > end_ms) break;
      this.#timers.shift();
      this.now_ms = Math.max(this.now_ms, next.at_ms);
      next.run();
    }
    this.now_ms = end_ms;
  }
}

/** Runs all ready promises: a turn of the event loop begins when none is left. */
async function settle(): Promise<void> {
  await new Promise((turn) => {
    setImmediate(turn);
  });
}

/** A clock at `speed` times the world's, which stops with its process. */
export function clockOf(world: World, speed: number, stalled_until: () => number): Clock {
  const wake = (at_ms: number, run: () => void): (() => void) =>
    world.at(at_ms, () => {
      const until_ms = stalled_until();
      if (until_ms > world.now_ms) wake(until_ms, run);
      else run();
    });
  return {
    now: () => world.now_ms * speed,
    monotonic: () => world.now_ms * speed,
    sleep: (ms, signal) =>
      new Promise((done, failed) => {
        const cancel = wake(world.now_ms + ms / speed, done);
        signal?.addEventListener("abort", () => {
          cancel();
          failed(new Error("aborted"));
        });
      }),
  };
}

/** The shared store, in the world's time. */
export class Store {
  readonly #world: World;
  #lease: Lease | undefined;
  #expires_ms = 0;
  #term = 0;
  #served_term = 0;
  readonly given: Lease[] = [];

  constructor(world: World) {
    this.#world = world;
  }

  acquire({ node, url, complete_term }: Candidate, ttl_ms: number): Lease | undefined {
    const holder = this.holder();
    if ((holder && holder.node !== node) || complete_term < this.#served_term) return undefined;
    this.#term++;
    this.#lease = { node, url, term: this.#term };
    this.#expires_ms = this.#world.now_ms + ttl_ms;
    this.given.push(this.#lease);
    return this.#lease;
  }

  renew(lease: Lease, ttl_ms: number): boolean {
    if (this.holder()?.term !== lease.term) return false;
    this.#served_term = lease.term;
    this.#expires_ms = this.#world.now_ms + ttl_ms;
    return true;
  }

  release(lease: Lease): void {
    if (this.#lease?.term === lease.term) this.#lease = undefined;
  }

  holder(): Lease | undefined {
    return this.#world.now_ms < this.#expires_ms ? this.#lease : undefined;
  }
}

export interface Faults {
  cut: boolean;
  delay_ms: () => number;
}

/** A node's connection to the store. Requests and responses are delayed, and lost during a partition. */
export function remote(world: World, store: Store, faults: Faults): LeaseStore {
  const call = <T>(act: () => T): Promise<T> =>
    new Promise((done) => {
      world.at(world.now_ms + faults.delay_ms(), () => {
        if (faults.cut) return;
        const result = act();
        world.at(world.now_ms + faults.delay_ms(), () => {
          if (!faults.cut) done(result);
        });
      });
    });
  return {
    acquire: (candidate, ttl_ms) => call(() => store.acquire(candidate, ttl_ms)),
    renew: (lease, ttl_ms) => call(() => store.renew(lease, ttl_ms)),
    release: (lease) => call(() => store.release(lease)),
    holder: () => call(() => store.holder()),
    close: () => Promise.resolve(),
  };
}

export class SimulatedNode implements Electable {
  readonly id: string;
  complete_term = 0;
  term = 0;
  primary = false;
  until_ms: () => number = () => 0;

  constructor(id: string) {
    this.id = id;
  }

  claim(term: number): void {
    this.complete_term = term;
  }

  becomePrimary(term: number, until_ms: () => number): Promise<void> {
    this.term = term;
    this.until_ms = until_ms;
    this.primary = true;
    return Promise.resolve();
  }

  becomeReplica(): Promise<void> {
    this.primary = false;
    return Promise.resolve();
  }

  fence(): Promise<void> {
    this.primary = false;
    return Promise.resolve();
  }
}

interface Outcome {
  accepted: Map<number, Set<string>>;
  terms: number;
  together: string[];
  stalls: number;
  cuts: number;
}

const TTL_MS = 10_000;
/** No more faults from then on. */
const QUIET_MS = 120_000;

async function simulate(start: number, margin_ms: number): Promise<Outcome> {
  const next = random(start);
  const world = new World();
  const store = new Store(world);
  const outcome: Outcome = { accepted: new Map(), terms: 0, together: [], stalls: 0, cuts: 0 };
  const stop = new AbortController();
  const nodes = ["a", "b", "c"].map((id) => {
    const node = new SimulatedNode(id);
    const faults = {
      cut: false,
      stalled_until_ms: 0,
      delay_ms: () => next() * (next() < 0.05 && world.now_ms < QUIET_MS ? 4000 : 50),
    };
    // Clocks differ by up to 1 %, far more than real ones.
    const clock = clockOf(world, 0.99 + next() * 0.02, () => faults.stalled_until_ms);
    const leases = remote(world, store, faults);
    const elector = new Elector({
      node,
      url: `http://${id}`,
      leases,
      clock,
      candidate: true,
      log: () => undefined,
      ttl_ms: TTL_MS,
      renew_ms: 3000,
      margin_ms,
    });
    void elector.run(stop.signal);
    return { node, faults, clock };
  });

  /**
   * Applications write continuously: nodes that would accept are recorded. Replicas learn the term of a reachable
   * primary.
   */
  const write = (): void => {
    const accepting = nodes.filter(({ node, faults, clock }) => {
      const running = faults.stalled_until_ms <= world.now_ms;
      return running && node.primary && clock.monotonic() < node.until_ms();
    });
    for (const { node } of accepting) {
      const known = outcome.accepted.get(node.term) ?? new Set();
      outcome.accepted.set(node.term, known.add(node.id));
    }
    if (accepting.length > 1)
      outcome.together.push(`${world.now_ms}: ${accepting.map(({ node }) => node.id).join(" and ")}`);
    const [primary] = accepting;
    for (const { node, faults } of nodes) {
      const reached = primary && !faults.cut && !primary.faults.cut && faults.stalled_until_ms <= world.now_ms;
      if (reached) node.complete_term = Math.max(node.complete_term, primary.node.term);
    }
    world.at(world.now_ms + 50 + next() * 100, write);
  };
  write();

  const disturb = (): void => {
    const victim = nodes[Math.floor(next() * nodes.length)];
    if (!victim || world.now_ms >= QUIET_MS) return;
    if (next() < 0.5) {
      outcome.cuts++;
      victim.faults.cut = !victim.faults.cut;
    } else {
      outcome.stalls++;
      victim.faults.stalled_until_ms = world.now_ms + next() * 25_000;
    }
    world.at(world.now_ms + next() * 15_000, disturb);
  };
  world.at(5000, disturb);
  await world.runUntil(QUIET_MS);
  for (const { faults } of nodes) Object.assign(faults, { cut: false, stalled_until_ms: 0 });
  await world.runUntil(QUIET_MS + 6 * TTL_MS);
  outcome.terms = store.given.length;
  assert.ok(
    nodes.some(({ node }) => node.primary),
    "when everything works again, somebody is primary",
  );
  stop.abort();
  return outcome;
}

/** Totals of many runs. `wrong` lists each time two nodes would have accepted writes. */
export interface Sums {
  terms: number;
  cuts: number;
  stalls: number;
  wrong: string[];
}

interface Seeds {
  first: number;
  count: number;
  margin_ms: number;
}

/** Up to the first failing run. */
async function simulateAll({ first, count, margin_ms }: Seeds): Promise<Sums> {
  const sums: Sums = { terms: 0, cuts: 0, stalls: 0, wrong: [] };
  for (let seed = first; seed < first + count && sums.wrong.length === 0; seed++) {
    const { accepted, together, terms, cuts, stalls } = await simulate(seed, margin_ms);
    for (const [term, ids] of accepted) {
      if (ids.size > 1) sums.wrong.push(`SEED=${seed}: term ${term} of ${[...ids].join(" and ")}`);
    }
    for (const when of together) sums.wrong.push(`SEED=${seed}: at ${when}`);
    sums.terms += terms;
    sums.cuts += cuts;
    sums.stalls += stalls;
  }
  return sums;
}

/** Simulates the runs of these seeds, in a thread. */
export async function simulateInThread(seeds: Seeds): Promise<Sums> {
  const worker = new Worker(new URL(import.meta.url), { workerData: { election_seeds: seeds } });
  try {
    return await new Promise((done, failed) => {
      worker.once("message", done);
      worker.once("error", failed);
    });
  } finally {
    await worker.terminate();
  }
}

const { election_seeds } = (workerData ?? {}) as { election_seeds?: Seeds };
if (election_seeds) {
  // The stacks of these errors are not used.
  Error.stackTraceLimit = 0;
  parentPort?.postMessage(await simulateAll(election_seeds));
}
