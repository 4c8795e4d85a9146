import assert from "node:assert/strict";
import { suite, test } from "node:test";
import { type HealthInput, appHealth as healthAt } from "./health.ts";

const NOW = 1_000_000_000;
const appHealth = (machines: readonly HealthInput[], problems?: ReadonlyMap<string, string>) =>
  healthAt(machines, NOW, problems);

const exit = (more: object) => ({
  id: "e",
  type: "exit",
  status: "stopped",
  source: "host" as const,
  timestamp: NOW - 120_000,
  request: {
    exit_event: {
      exit_code: 0,
      guest_exit_code: 0,
      signal: 0,
      guest_signal: 0,
      oom_killed: false,
      requested_stop: false,
      restarting: false,
      exited_at: "",
      ...more,
    },
  },
});

function machine(name: string, state: HealthInput["state"], more: Partial<HealthInput> = {}): HealthInput {
  return {
    id: `id-${name}`,
    name,
    state,
    cordoned: false,
    checks: {},
    events: [],
    config: { image: "x" },
    ...more,
  } as HealthInput;
}

const critical = { http: { status: "critical", output: "connection refused\nmore", updated_at: 0 } } as const;

suite("health of an app", () => {
  test("an app whose machines run and pass their checks is healthy", () => {
    const health = appHealth([machine("a", "started"), machine("b", "suspended")]);
    assert.deepEqual([health.state, health.reason, health.failures], ["healthy", "1 machine running", []]);
  });

  test("a started machine with a critical check is never healthy", () => {
    const failing = machine("a", "started", { checks: critical });
    assert.equal(appHealth([failing]).state, "down");
    const both = appHealth([failing, machine("b", "started")]);
    assert.equal(both.state, "degraded");
    assert.equal(both.reason, "1 of 2 machines fails: a: check http is critical: connection refused");
    assert.deepEqual(both.failures, [
      { machine_id: "id-a", machine_name: "a", reason: "check http is critical: connection refused" },
    ]);
  });

  test("a machine that listens elsewhere fails with that reason", () => {
    const problems = new Map([["id-a", "the program listens on 127.0.0.1:8080 only"]]);
    assert.match(appHealth([machine("a", "started")], problems).reason, /listens on 127\.0\.0\.1:8080 only/);
  });

  test("a crash is a failure, a requested stop and an end with code 0 are not", () => {
    const crashed = (state: HealthInput["state"], more: object) =>
      appHealth([machine("a", state, { events: [exit(more)] })]);
    assert.equal(
      crashed("stopped", { exit_code: 3 }).reason,
      "1 of 1 machine fails: a: its program ended with exit code 3",
    );
    assert.equal(crashed("restarting", { exit_code: 3 }).state, "down");
    assert.match(crashed("stopped", { exit_code: 137, oom_killed: true }).reason, /out of memory/);
    assert.equal(crashed("stopped", { exit_code: 143, signal: 15, requested_stop: true }).state, "asleep");
    assert.equal(crashed("stopped", {}).state, "asleep");
  });

  test("a machine that crashed a moment ago and runs again is not healthy yet", () => {
    const crashed = (age_ms: number) => ({ ...exit({ exit_code: 1 }), timestamp: NOW - age_ms });
    const state = (age_ms: number) => appHealth([machine("a", "started", { events: [crashed(age_ms)] })]).state;
    assert.deepEqual([state(10_000), state(120_000)], ["down", "healthy"]);
  });

  test("a person's start begins anew", () => {
    const start = { id: "s", type: "start", status: "starting", source: "user" as const, timestamp: NOW };
    assert.equal(appHealth([machine("a", "starting", { events: [start, exit({ exit_code: 1 })] })]).state, "starting");
  });

  test("an app is asleep when all machines rest, and the reason says what wakes it", () => {
    const services = [{ protocol: "tcp", internal_port: 80, autostart: true }];
    const config = { image: "x", services } as HealthInput["config"];
    assert.match(appHealth([machine("a", "suspended", { config })]).reason, /a request starts one/);
    const still = appHealth([machine("a", "stopped")]);
    assert.equal(still.state, "asleep");
    assert.match(still.reason, /hangar machines start/);
  });

  test("an app without machines is empty, also while the last one is destroyed", () => {
    assert.equal(appHealth([]).state, "empty");
    assert.equal(appHealth([machine("a", "destroying")]).state, "empty");
  });
});
