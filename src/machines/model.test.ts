/** M1: whatever step the controller dies at, the stored and the actual state agree afterwards. */
import assert from "node:assert/strict";
import { suite, test } from "node:test";
import fc from "fast-check";
import { runs, seed } from "../../test/support.ts";
import { EVENT_TYPES, isPersistent, type MachineState, next, STATES, type Trigger } from "./lifecycle/states.ts";
import { type ExternalStore, Killed, MachineHarness, turns } from "./machine-harness.fixtures.ts";
import type { Machine } from "./types.ts";

type Verb = "start" | "stop" | "suspend" | "restart" | "update" | "rest" | "destroy" | "crash";

interface Step {
  verb: Verb;
  /** The process dies at this call to the outside, counted from the request; 0 is not at all. */
  die_at: number;
}

/** States a machine may be in after an acknowledged request; refusals leave it where it is. */
const MODEL: Record<Verb, (state: MachineState) => MachineState> = {
  start: () => "started",
  restart: () => "started",
  update: () => "started",
  stop: () => "stopped",
  suspend: (state) => (state === "started" ? "suspended" : state),
  rest: (state) => (state === "started" ? "started" : state === "created" ? "created" : "stopped"),
  crash: (state) => (state === "started" ? "stopped" : state),
  destroy: () => "destroyed",
};

const steps = fc.array(
  fc.record<Step>({
    verb: fc.constantFrom<Verb>(
      "start",
      "stop",
      "suspend",
      "restart",
      "update",
      "rest",
      "crash",
      "start",
      "stop",
      "destroy",
    ),
    die_at: fc.oneof(
      { weight: 2, arbitrary: fc.constant(0) },
      { weight: 1, arbitrary: fc.integer({ min: 1, max: 25 }) },
    ),
  }),
  { minLength: 1, maxLength: 8 },
);

/** Counts calls to the outside and ends the process at the chosen one. */
class Reaper {
  left = 0;
  deaths = 0;
  readonly outside: ExternalStore = () => {
    if (this.left === 0 || --this.left > 0) return;
    this.deaths++;
    throw new Killed();
  };
}

function send(harness: MachineHarness, id: string, verb: Verb): Promise<unknown> {
  const { machines } = harness.module;
  const actor = harness.actor();
  switch (verb) {
    case "start":
      return machines.start(id, actor);
    case "stop":
      return machines.stop(id, {}, actor);
    case "suspend":
      return machines.suspend(id, actor);
    case "restart":
      return machines.restart(id, {}, actor);
    case "destroy":
      return machines.destroy(id, { force: true }, actor);
    case "crash":
      harness.world.crash(id, { exit_code: 1, signal: -1, oom_killed: false, exited_at: harness.clock.now() });
      return Promise.resolve();
    case "update":
    case "rest":
      return update(harness, id, verb === "rest");
  }
}

const SIGNALS = ["SIGTERM", "SIGUSR1", "SIGQUIT", "SIGHUP"] as const;

/** A version with a stop signal of its own, which its image names: so the machine's log shows which stopped which. */
function version(number: number) {
  const signal: (typeof SIGNALS)[number] = SIGNALS[number % SIGNALS.length] ?? "SIGTERM";
  return { image: `web:${signal}`, stop_config: { signal }, restart: { policy: "no" as const } };
}

async function update(harness: MachineHarness, id: string, skip_launch: boolean): Promise<unknown> {
  const machine = await harness.find(id);
  const input = { config: version(machine.revision), skip_launch };
  return await harness.module.machines.update(machine, input, harness.actor());
}

/** Sends the request and returns whether it was acknowledged before the process died. */
async function attempt(
  harness: MachineHarness,
  id: string,
  verb: Verb,
): Promise<"acknowledged" | "refused" | "unknown"> {
  let outcome: "acknowledged" | "refused" | "unknown" = "unknown";
  send(harness, id, verb).then(
    () => {
      outcome = "acknowledged";
    },
    () => {
      outcome = "refused";
    },
  );
  while (outcome === "unknown" && !harness.killed) await turns(1);
  return outcome;
}

async function play(harness: MachineHarness, reaper: Reaper, sequence: readonly Step[]): Promise<void> {
  reaper.left = 0;
  const { id } = await harness.create(version(0), { skip_launch: sequence.length % 2 === 0 });
  await harness.settle();
  let state = (await harness.find(id)).state;
  for (const { verb, die_at } of sequence) {
    if (state === "destroyed") break;
    reaper.left = die_at;
    const outcome = await attempt(harness, id, verb);
    await harness.settle();
    reaper.left = 0;
    if (harness.killed) {
      await harness.boot();
      await harness.settle();
    }
    const machine = await harness.find(id);
    const wanted = MODEL[verb](state);
    const allowed = outcome === "acknowledged" ? [wanted] : outcome === "refused" ? [state] : [state, wanted];
    assert.ok(
      allowed.includes(machine.state),
      `${state} ${verb} (${outcome}) is ${machine.state}, not ${allowed.join(" or ")}`,
    );
    await agree(harness, machine);
    state = machine.state;
  }
}

/** The stored state matches the actual one, nothing is left to do, and the log explains the state. */
async function agree(harness: MachineHarness, machine: Machine): Promise<void> {
  const { id, state, boot, pending, snapshot } = machine;
  assert.ok(isPersistent(state) && pending === 0, `${state} with ${pending} operations`);
  assert.deepEqual((await harness.store.findWork(id))?.operations, []);
  const real = harness.world.boots.get(id);
  const runs = real?.state === "running";
  assert.equal(runs, state === "started", `written ${state}, really ${real?.state ?? "nothing"}`);
  assert.equal(real?.state === "frozen", state === "suspended");
  assert.equal(snapshot, state === "suspended");
  if (runs) assert.equal(real.boot, boot);
  checkStops(real?.log ?? []);
  await checkLog(harness, machine);
}

/** Every version was stopped by its own signal, whatever version the machine had become by then. */
function checkStops(log: readonly { message: string }[]): void {
  let own = "";
  for (const { message } of log) {
    own = /^started .*:(SIG\w+)$/.exec(message)?.[1] ?? own;
    const by = /^stopped by (SIG\w+)$/.exec(message)?.[1];
    if (by !== undefined && own !== "") assert.equal(by, own, `the version with stop signal ${own} got ${by}`);
  }
}

/** M8: every change of state is one event, and every event that names another state is a change the table has. */
async function checkLog(harness: MachineHarness, machine: Machine): Promise<void> {
  const events = (await harness.store.events(machine.id, { limit: 1000 })).reverse();
  let state: MachineState = "created";
  let time = 0;
  for (const { type, status, timestamp, request } of events.slice(1)) {
    const hop = HOPS.get(`${state} ${type} ${status}`);
    assert.ok(hop || status === state, `${state} to ${status} by ${type}`);
    assert.ok(timestamp >= time);
    if (type === "exit") assert.ok(request?.exit_event, "an exit says how");
    state = status as MachineState;
    time = timestamp;
  }
  assert.equal(state, machine.state, "the newest event has the state");
  assert.deepEqual(machine.events[0]?.id, events.at(-1)?.id);
}

const HOPS = new Map<string, Trigger>(
  STATES.flatMap((state) =>
    (Object.keys(EVENT_TYPES) as Trigger[]).flatMap((trigger) => {
      const to = next(state, trigger);
      return to ? [[`${state} ${EVENT_TYPES[trigger]} ${to}`, trigger] as const] : [];
    }),
  ),
);

const SEQUENCES_PER_RIG = 20;

suite("machines, model (M1, M8)", () => {
  test("after a crash at any step the stored and the actual state agree, and no acknowledged write is lost", async (t) => {
    const reaper = new Reaper();
    const total = runs(250, 10_000, 50_000);
    const first = seed(t);
    let commands = 0;
    // A platform of its own for a few: each start looks at all machines there are, and what died stays in memory.
    for (let done = 0; done < total; done += SEQUENCES_PER_RIG) {
      const harness = await MachineHarness.open({ outside: reaper.outside });
      const property = fc.asyncProperty(steps, async (sequence) => {
        commands += sequence.length;
        await play(harness, reaper, sequence);
      });
      await fc.assert(property, { numRuns: Math.min(SEQUENCES_PER_RIG, total - done), seed: first + done });
      await harness.close();
    }
    t.diagnostic(`${total} sequences, ${commands} commands, ${reaper.deaths} deaths`);
    assert.ok(reaper.deaths > total / 10, "the process died often enough to prove anything");
  });

  test("control: an executor that acts before its intent is stored is detected", async (t) => {
    const reaper = new Reaper();
    // Operations are forgotten by this store: the intent is only in memory.
    const harness = await MachineHarness.open({
      outside: reaper.outside,
      wrapStore: (store) => ({ ...store, unfinished: async () => [] }),
    });
    const property = fc.asyncProperty(steps, (sequence) => play(harness, reaper, sequence));
    await assert.rejects(fc.assert(property, { numRuns: 200, seed: seed(t), endOnFailure: true }));
  });
});
