/** M2, W2: every interleaving of what clients, the executor and the store do one after the other. */
import assert from "node:assert/strict";
import { suite, test } from "node:test";
import fc, { type Scheduler } from "fast-check";
import { runs, seed } from "../../test/support.ts";
import { isPersistent } from "./lifecycle/states.ts";
import { topics } from "./lifecycle/writer.ts";
import { MachineHarness, turns } from "./machine-harness.fixtures.ts";
import type { MachineStore } from "./store.ts";

const never = new AbortController().signal;

/** A harness in which the scheduler decides, at each call to the outside, who goes on. */
class Stage {
  harness!: MachineHarness;
  scheduler: Scheduler | undefined;

  static async open(wrapStore?: (store: MachineStore) => MachineStore): Promise<Stage> {
    const stage = new Stage();
    stage.harness = await MachineHarness.open({
      // Both ways: a call may reach the outside late, and its answer may come back late.
      outside: async (call, when) => {
        if (stage.scheduler) await stage.scheduler.schedule(Promise.resolve(), `${when} ${call}`);
      },
      ...(wrapStore ? { wrapStore } : {}),
    });
    return stage;
  }

  /** Runs everybody to the end under the scheduler, then lets the rest happen. */
  async run<T>(scheduler: Scheduler, clients: (() => Promise<T>)[]): Promise<PromiseSettledResult<T>[]> {
    this.scheduler = scheduler;
    const all = Promise.allSettled(clients.map((client) => client()));
    await scheduler.waitIdle();
    while (!this.harness.module.executor.idle) {
      await turns(1);
      await scheduler.waitIdle();
    }
    const results = await all;
    this.scheduler = undefined;
    await this.harness.settle();
    return results;
  }
}

type Verb = "start" | "stop" | "suspend" | "restart" | "update" | "destroy" | "lease";
const VERBS: Verb[] = ["start", "stop", "suspend", "restart", "update", "lease", "destroy"];

async function act({ harness }: Stage, id: string, verb: Verb): Promise<unknown> {
  const { machines, leases } = harness.module;
  switch (verb) {
    case "lease": {
      const input = { owner: "x", description: "", ttl_s: 10, wait_s: 0 };
      const { lease } = await leases.acquire(id, input, harness.ids, never);
      return await leases.release(id, lease.nonce);
    }
    case "update":
      return await machines.update(await harness.find(id), { config: { image: "web:2" } }, harness.actor());
    case "destroy":
      return await machines.destroy(id, { force: true }, harness.actor());
    case "stop":
    case "restart":
      return await machines[verb](id, {}, harness.actor());
    case "start":
    case "suspend":
      return await machines[verb](id, harness.actor());
  }
}

suite("machines, interleavings (M2)", () => {
  test("three concurrent clients: the stored and the actual state agree in every order", async (t) => {
    const stage = await Stage.open();
    const clients = fc.array(fc.array(fc.constantFrom(...VERBS), { minLength: 1, maxLength: 3 }), {
      minLength: 3,
      maxLength: 3,
    });
    const property = fc.asyncProperty(fc.scheduler(), clients, async (scheduler, plans) => {
      const { harness } = stage;
      const { id } = await harness.create();
      await stage.run(
        scheduler,
        plans.map((plan) => async () => {
          for (const verb of plan) await act(stage, id, verb).catch(refusal);
        }),
      );
      const machine = await harness.find(id);
      const real = harness.world.boots.get(id)?.state;
      assert.ok(isPersistent(machine.state) && machine.pending === 0, `${machine.state} with ${machine.pending}`);
      assert.equal(real === "running", machine.state === "started", `written ${machine.state}, really ${real}`);
      assert.equal(real === "frozen", machine.state === "suspended");
    });
    const numRuns = runs(60, 1200, 20_000);
    await fc.assert(property, { numRuns, seed: seed(t) });
    t.diagnostic(`${numRuns} schedules`);
    await stage.harness.close();
  });

  const leaseRace = (stage: Stage) =>
    fc.asyncProperty(fc.scheduler(), async (scheduler) => {
      const { harness } = stage;
      const { id } = await harness.create({}, { skip_launch: true });
      const input = { owner: "x", description: "", ttl_s: 10, wait_s: 0 };
      const results = await stage.run(
        scheduler,
        Array.from({ length: 4 }, () => () => harness.module.leases.acquire(id, input, harness.ids, never)),
      );
      assert.equal(results.filter((result) => result.status === "fulfilled").length, 1, "exactly one winner");
    });

  test("a lease has exactly one winner in every order", async (t) => {
    const stage = await Stage.open();
    await fc.assert(leaseRace(stage), { numRuns: runs(100, 1000, 10_000), seed: seed(t) });
    await stage.harness.close();
  });

  test("control: a lease that is read and then written without a guard is detected", async (t) => {
    const stage = await Stage.open((store) => ({
      ...store,
      async commit(change) {
        const now = await store.find(change.machine.id);
        return await store.commit({ ...change, machine: { ...change.machine, revision: (now?.revision ?? 0) + 1 } });
      },
    }));
    await assert.rejects(
      fc.assert(leaseRace(stage), { numRuns: 500, seed: seed(t), endOnFailure: true }),
      causedBy(/winner/),
    );
  });

  /** A waiter and a start, in every order; `wait` is the one under test. */
  const wakeUp = (stage: Stage, wait: (stage: Stage, id: string) => Promise<unknown>) =>
    fc.asyncProperty(fc.scheduler(), async (scheduler) => {
      const { harness } = stage;
      const { id } = await harness.create({}, { skip_launch: true });
      let woken = false;
      await stage.run(scheduler, [
        async () => {
          void wait(stage, id).then(() => {
            woken = true;
          });
        },
        async () => void (await harness.module.machines.start(id, harness.actor())),
      ]);
      assert.ok(woken, "the waiter was woken");
    });

  test("no wake-up is lost in any order of checking, subscribing and changing (W2)", async (t) => {
    const stage = await Stage.open();
    const wait = ({ harness }: Stage, id: string) =>
      harness.module.waits.wait(id, { states: ["started"], timeout_s: 60 }, never);
    await fc.assert(wakeUp(stage, wait), { numRuns: runs(100, 5000, 20_000), seed: seed(t) });
    assert.equal(stage.harness.module.bus.listeners, 3, "only the room itself still listens");
    await stage.harness.close();
  });

  test("control: checking before subscribing is detected", async () => {
    const stage = await Stage.open();
    const wait = async ({ harness }: Stage, id: string): Promise<void> => {
      const machine = await harness.store.find(id);
      if (machine?.state === "started") return;
      await new Promise<void>((resolve) => {
        harness.module.bus.subscribe(topics.machine(id), (update) => update.machine.state === "started" && resolve());
      });
    };
    // It is caught with any seed; with this one soon.
    await assert.rejects(
      fc.assert(wakeUp(stage, wait), { numRuns: 2000, seed: 1, endOnFailure: true }),
      causedBy(/woken/),
    );
  });
});

/** fast-check reports the failure as the cause of its own error. */
const causedBy =
  (text: RegExp) =>
  (error: Error): boolean =>
    text.test(String((error.cause as Error | undefined)?.message));

function refusal(thrown: unknown): void {
  if ((thrown as { http?: number }).http === undefined) throw thrown as Error;
}
