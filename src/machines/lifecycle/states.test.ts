import assert from "node:assert/strict";
import { suite, test } from "node:test";
import {
  type Action,
  after,
  DEADLINES_MS,
  EVENT_TYPES,
  isPersistent,
  type MachineState,
  next,
  STATE_ALIASES,
  STATES,
  type Trigger,
} from "./states.ts";

const TRIGGERS = Object.keys(EVENT_TYPES) as Trigger[];

/** The whole table as the specification and the behaviour notes have it, written down a second time. */
const EXPECTED = `
created    start>starting stop>stopping restart>restarting update>replacing destroy>destroying
starting   booted>started broke>failed destroy>destroying
started    exited>stopped broke>failed stop>stopping suspend>suspending restart>restarting update>replacing destroy>destroying
stopping   exited>stopped halted>stopped broke>failed destroy>destroying
stopped    start>starting restart>restarting update>replacing destroy>destroying
suspending frozen>suspended exited>stopped halted>stopped broke>failed destroy>destroying
suspended  start>starting stop>stopping restart>restarting update>replacing destroy>destroying broke>failed
restarting exited>stopped start>starting stop>stopping update>replacing broke>failed destroy>destroying
replacing  exited>stopped start>starting rested>stopped readied>created broke>failed destroy>destroying
failed     start>starting stop>stopping restart>restarting update>replacing destroy>destroying
destroying removed>destroyed
destroyed
`;

suite("machine states", () => {
  test("every cell of the state table has the expected value, the empty ones too", () => {
    const rows = EXPECTED.trim()
      .split("\n")
      .map((line) => line.trim().split(/\s+/));
    assert.deepEqual(
      rows.map(([state]) => state),
      STATES,
    );
    let cells = 0;
    for (const [state, ...pairs] of rows) {
      const row = new Map(pairs.map((pair) => pair.split(">") as [string, string]));
      for (const trigger of TRIGGERS) {
        assert.equal(next(state as MachineState, trigger), row.get(trigger), `${state} × ${trigger}`);
        cells++;
      }
    }
    assert.equal(cells, STATES.length * TRIGGERS.length);
  });

  test("only destroyed is final, and every transitional state can fail and be destroyed", () => {
    for (const state of STATES) {
      const targets = TRIGGERS.flatMap((trigger) => next(state, trigger) ?? []);
      assert.equal(targets.length === 0, state === "destroyed", state);
      if (state === "destroyed") continue;
      assert.ok(targets.includes("destroying") || state === "destroying", state);
      if (!isPersistent(state) && state !== "destroying") assert.equal(next(state, "broke"), "failed", state);
    }
  });

  test("every transitional state has a deadline of at most five minutes", () => {
    const passing = STATES.filter((state) => !isPersistent(state));
    assert.deepEqual(passing, ["starting", "stopping", "suspending", "restarting", "replacing", "destroying"]);
    for (const state of passing) assert.ok((DEADLINES_MS[state] ?? 0) <= 300_000, state);
  });

  test("deadlines, targets of operations and event names of transitions are as specified", () => {
    assert.deepEqual(DEADLINES_MS, {
      starting: 180_000,
      stopping: 60_000,
      suspending: 120_000,
      restarting: 60_000,
      replacing: 60_000,
      destroying: 60_000,
    });
    const ends: [Action, MachineState][] = [
      ["start", "started"],
      ["restart", "started"],
      ["stop", "stopped"],
      ["suspend", "suspended"],
      ["destroy", "destroyed"],
    ];
    for (const state of STATES) {
      for (const [action, end] of ends) assert.equal(after(state, action, false), end);
      assert.equal(after(state, "update", true), "started");
      assert.equal(after(state, "update", false), state === "created" ? "created" : "stopped");
    }
    assert.deepEqual(STATE_ALIASES, { updating: "replacing" });
    assert.equal(
      TRIGGERS.map((trigger) => `${trigger}>${EVENT_TYPES[trigger]}`).join(" "),
      "start>start stop>stop suspend>suspend restart>restart update>update destroy>destroy booted>start exited>exit " +
        "halted>stop frozen>suspend rested>update readied>update removed>destroy broke>failed",
    );
  });

  test("every state is reachable from every state that is not being destroyed", () => {
    for (const from of STATES.filter((state) => !state.startsWith("destroy"))) {
      const seen = new Set<MachineState>([from]);
      for (const state of seen)
        for (const trigger of TRIGGERS) if (next(state, trigger)) seen.add(next(state, trigger) as MachineState);
      assert.equal(seen.size, STATES.length, from);
    }
  });
});
