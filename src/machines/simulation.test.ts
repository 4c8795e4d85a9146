/**
 * M3: whole days of the machines module under faults, with time that runs as fast as it can be computed. One seed
 * is one run; the seed is printed, and every kind of fault must have happened.
 */
import assert from "node:assert/strict";
import { suite, test } from "node:test";
import { ApiError } from "#core/errors.ts";
import { random, runs, seed } from "../../test/support.ts";
import { isPersistent } from "./lifecycle/states.ts";
import { MachineHarness, turns } from "./machine-harness.fixtures.ts";
import type { Machine, MachineConfig } from "./types.ts";

const MINUTE = 60_000;
const HOUR = 60 * MINUTE;
const never = new AbortController().signal;

const FAULTS = [
  "process killed",
  "process killed in a write",
  "slow start",
  "failed start",
  "hanging start",
  "hanging stop",
  "failed suspend",
  "registry error",
  "exit",
  "exit, notice lost",
  "exit, notice twice",
  "disk full",
  "store failed",
  "clock forward",
  "clock back",
  "caller disconnected",
] as const;
type Fault = (typeof FAULTS)[number];

class Day {
  harness!: MachineHarness;
  readonly #next: () => number;
  readonly #counts: Map<Fault, number>;
  /** Faults happen only while the storm lasts. */
  #storm = true;
  #die_in = 0;
  #full = 0;

  constructor(next: () => number, counts: Map<Fault, number>) {
    this.#next = next;
    this.#counts = counts;
  }

  async run(): Promise<void> {
    this.harness = await MachineHarness.open({
      outside: (call, when) => this.#outside(call, when),
      fault: (call, id, signal) => this.#driver(call, id, signal),
    });
    const ids: string[] = [];
    for (let at = 0; at < 24 * HOUR; ) {
      await this.#something(ids);
      const pause = this.#next() < 0.3 ? 0 : Math.floor(this.#next() * 40 * MINUTE);
      at += pause + MINUTE;
      await this.harness.clock.advance(pause);
      if (this.harness.killed) await this.#bootAgain();
    }
    await this.#calm(ids);
  }

  #happens(fault: Fault, chance: number): boolean {
    if (!this.#storm || this.#next() >= chance) return false;
    this.#count(fault);
    return true;
  }

  #count(fault: Fault): void {
    this.#counts.set(fault, (this.#counts.get(fault) ?? 0) + 1);
  }

  #outside(call: string, when: "before" | "after"): void {
    if (this.#die_in > 0 && --this.#die_in === 0) {
      this.#count("process killed in a write");
      this.harness.kill();
    }
    if (call !== "write" || when !== "before") return;
    if (this.#full > 0) {
      this.#full--;
      this.#count("disk full");
      throw new ApiError("storage_full", "the disk is full");
    }
    if (this.#happens("store failed", 0.01)) throw new ApiError("storage_failed", "the store failed");
  }

  async #driver(call: string, _id: string, signal?: AbortSignal): Promise<void> {
    if (call === "start") {
      if (this.#happens("slow start", 0.1)) await this.harness.clock.sleep(20_000, signal);
      if (this.#happens("failed start", 0.05)) throw new Error("the first process does not run");
      if (this.#happens("registry error", 0.05)) throw new Error("the registry answers 500");
      if (this.#happens("hanging start", 0.03)) await new Promise(() => {});
    }
    if (call === "stop" && this.#happens("hanging stop", 0.03)) await new Promise(() => {});
    if (call === "suspend" && this.#happens("failed suspend", 0.4)) throw new Error("cannot be frozen");
  }

  async #something(ids: string[]): Promise<void> {
    const { harness } = this;
    if (ids.length < 6 || this.#next() < 0.05) ids.push(...(await this.#create()));
    const id = ids[Math.floor(this.#next() * ids.length)];
    if (this.#happens("process killed", 0.05)) {
      harness.kill();
      await this.#bootAgain();
    }
    if (this.#storm && this.#next() < 0.05) this.#die_in = 1 + Math.floor(this.#next() * 30);
    if (this.#storm && this.#next() < 0.03) this.#full = 1 + Math.floor(this.#next() * 5);
    if (this.#happens("clock forward", 0.03)) harness.clock.jump(HOUR);
    if (this.#happens("clock back", 0.03)) harness.clock.jump(-HOUR);
    if (id !== undefined) await this.#act(id);
  }

  async #act(id: string): Promise<void> {
    const { harness } = this;
    const { machines, waits } = harness.module;
    const actor = harness.actor();
    const exit = { exit_code: 1, signal: -1, oom_killed: false, exited_at: harness.clock.now() };
    const acts: (() => unknown)[] = [
      () => machines.start(id, actor),
      () => machines.stop(id, {}, actor),
      () => machines.suspend(id, actor),
      () => machines.suspend(id, actor),
      () => machines.restart(id, {}, actor),
      async () => machines.update(await harness.find(id), { config: { image: "web:2" } }, actor),
      () => this.#next() < 0.3 && machines.destroy(id, { force: true }, actor),
      () => harness.world.crash(id, exit) && this.#count("exit"),
      () => harness.world.crash(id, exit, "lost") && this.#count("exit, notice lost"),
      () => harness.world.crash(id, exit, "twice") && this.#count("exit, notice twice"),
      () => {
        this.#count("caller disconnected");
        const client = new AbortController();
        const waiting = waits.wait(id, { states: ["failed"], timeout_s: 60 }, client.signal);
        client.abort();
        return waiting;
      },
    ];
    const act = acts[Math.floor(this.#next() * acts.length)];
    // A caller whose process died never gets a response, so the test does not wait for one.
    void Promise.resolve(act?.()).catch(refusal);
    await turns(6);
  }

  async #create(): Promise<string[]> {
    const pick = <T>(list: readonly T[]): T => list[Math.floor(this.#next() * list.length)] as T;
    const config: Partial<MachineConfig> = {
      restart: { policy: pick(["no", "on-failure", "always"]) },
      ...(this.#next() < 0.2 ? { schedule: pick(["hourly", "daily"]) } : {}),
      ...(this.#next() < 0.2 ? { auto_destroy: true } : {}),
      ...(this.#next() < 0.3 ? { env: { SIM_RUN_MS: String(1000 + Math.floor(this.#next() * HOUR)) } } : {}),
    };
    let id: string | undefined;
    this.harness.create(config).then((machine) => {
      id = machine.id;
    }, refusal);
    await turns(6);
    return id === undefined ? [] : [id];
  }

  async #bootAgain(): Promise<void> {
    this.#die_in = 0;
    this.#full = 0;
    const storm = this.#storm;
    // A process that cannot read its store at start ends and is started again; here it can.
    this.#storm = false;
    await this.harness.boot();
    this.#storm = storm;
  }

  /** The storm is over: within minutes everything is somewhere it can stay, and is really there (M5). */
  async #calm(ids: readonly string[]): Promise<void> {
    this.#storm = false;
    if (this.harness.killed) await this.#bootAgain();
    this.#die_in = 0;
    this.#full = 0;
    await this.harness.clock.advance(10 * MINUTE);
    await this.harness.settle(10 * MINUTE);
    for (const id of ids) this.#agree(await this.harness.find(id));
    const strays = [...this.harness.world.boots.values()].filter(
      ({ id, state }) => state !== "exited" && !ids.includes(id),
    );
    for (const { id } of strays) this.#agree(await this.harness.find(id));
    assert.equal(this.harness.module.bus.listeners, 3, "no listener is left");
    await this.harness.module.waits.wait(ids[0] ?? "", { states: ["settled", "destroyed"], timeout_s: 1 }, never);
    await this.harness.close();
  }

  #agree({ id, state, pending, boot }: Machine): void {
    const real = this.harness.world.boots.get(id);
    assert.ok(isPersistent(state) && pending === 0, `${id} is ${state} with ${pending} operations`);
    assert.equal(
      real?.state === "running",
      state === "started",
      `${id} written ${state}, really ${real?.state ?? "gone"}`,
    );
    if (state === "started") assert.equal(real?.boot, boot);
  }
}

function refusal(thrown: unknown): void {
  if (!(thrown instanceof ApiError)) throw thrown as Error;
}

suite("machines, simulated days (M3, M5)", () => {
  test("after a day of faults every machine's actual state matches its stored state", async (t) => {
    const counts = new Map<Fault, number>(FAULTS.map((fault) => [fault, 0]));
    const days = runs(5, 120, 2000);
    const first = seed(t);
    for (let day = 0; day < days; day++) {
      try {
        await new Day(random(first + day), counts).run();
      } catch (thrown) {
        throw new Error(`SEED=${first + day} repeats it`, { cause: thrown });
      }
    }
    t.diagnostic(`${days} days: ${[...counts].map(([fault, n]) => `${fault} ${n}`).join(", ")}`);
    for (const [fault, n] of counts) assert.ok(n > 0, `${fault} never happened`);
  });
});
