/** Several processes on one database evaluate every rule once, and go on when one of them stops. */
import assert from "node:assert/strict";
import { type TestContext, test } from "node:test";
import { anOrg } from "#auth/fixtures.ts";
import { silentLog } from "#core/log.ts";
import { MovingClock } from "#core/moving-clock.ts";
import { migrate } from "../stores/migrate.ts";
import { MIGRATIONS } from "../stores/migrations.ts";
import { sqlAlertStore } from "../stores/sql/alerts.ts";
import { sqlAuthStore } from "../stores/sql/auth.ts";
import { inlineSqlite } from "../stores/sqlite/inline.ts";
import { ALERT_LIMITS } from "./limits.ts";
import { RuleRunner } from "./rule-runner.ts";

const START = Date.UTC(2026, 0, 10, 12);
const INTERVAL = 10_000;
const ORGS = Array.from({ length: 12 }, (_, i) => ({ id: `o${i}`, slug: `o${i}` }));
const FIRING = '{"data":{"resultType":"vector","result":[{"metric":{"app":"web"},"value":[0,"1"]}]}}';
const CONTENT = JSON.stringify({
  groups: [{ name: "g", interval: `${INTERVAL / 1000}s`, rules: [{ alert: "Down", expr: "down", for: "1m" }] }],
});

interface Evaluated {
  org: string;
  at_ms: number;
  by: string;
}

/** Control processes with clocks of their own: one that does not run is frozen, or was killed. */
async function house(t: TestContext, names: readonly string[]) {
  const database = inlineSqlite();
  await migrate(database, MIGRATIONS);
  const store = sqlAlertStore(database);
  for (const org of ORGS) {
    assert.equal(await sqlAuthStore(database).insertOrg(anOrg(org), 100), "inserted");
    const file = {
      org_id: org.id,
      name: "f",
      app_id: null,
      dialect: "promql",
      content: CONTENT,
      updated_at: 1,
    } as const;
    await store.putRuleFile(file, 9);
  }
  const evaluated: Evaluated[] = [];
  const processes = names.map((name) => {
    const clock = new MovingClock({ start_ms: START, frozen: true });
    const runner = new RuleRunner({
      store,
      orgs: async () => ORGS,
      engine: () => ({
        append: async () => ({ samples: 0, dropped: 0, problems: [], problem_count: 0 }),
        async query(org, request) {
          if (request.query === "down") evaluated.push({ org, at_ms: request.start_ms ?? 0, by: name });
          return new TextEncoder().encode(FIRING);
        },
      }),
      hasMetrics: () => false,
      dialects: true,
      is_shared: true,
      runner: name,
      external_url: () => "",
      clock,
      log: silentLog,
      changed: () => {},
    });
    runner.start();
    t.after(() => runner.close());
    return { name, clock, runner };
  });
  const pass = async (ms: number, running = processes): Promise<void> => {
    for (let done = 0; done < ms; done += 1000) for (const { clock } of running) await clock.advance(1000);
  };
  return { evaluated, processes, pass, store };
}

const timesOf = (evaluated: readonly Evaluated[], org: string): number[] =>
  evaluated.filter((one) => one.org === org).map(({ at_ms }) => at_ms);

test("three processes evaluate every group at every interval, and once", async (t) => {
  const { evaluated, processes, pass } = await house(t, ["a", "b", "c"]);
  await pass(10 * 60_000);
  for (const { id } of ORGS) {
    const times = timesOf(evaluated, id);
    assert.equal(new Set(times).size, times.length, `${id} is evaluated once for each time`);
    const gaps = times.slice(1).map((at, i) => at - (times[i] ?? 0));
    assert.ok(gaps.every((gap) => gap === INTERVAL) && times.length >= 58, `${id}: ${times.length}, ${gaps.join()}`);
  }
  const held = processes.flatMap(({ runner }) => runner.held).sort();
  assert.deepEqual(held, ORGS.map(({ id }) => id).sort(), "each organization is held by one process");
});

test("what a process that stopped had is evaluated by another one within the claim, and alerts keep their age", async (t) => {
  const { evaluated, processes, pass, store } = await house(t, ["a", "b"]);
  const [a, b] = processes;
  assert.ok(a && b);
  await pass(3 * 60_000);
  const lost = [...a.runner.held];
  assert.ok(lost.length > 0, "the first one has organizations");
  const before = await store.states(lost[0] ?? "");
  const stopped_at = a.clock.now();
  await pass(3 * 60_000, [b]);
  assert.equal(b.runner.held.length, ORGS.length);
  for (const id of lost) {
    const [next] = evaluated.filter((one) => one.org === id && one.by === "b");
    const late = (next?.at_ms ?? Number.POSITIVE_INFINITY) - stopped_at;
    assert.ok(late <= ALERT_LIMITS.claim_ms + ALERT_LIMITS.look_ms + INTERVAL, `${id} after ${late} ms`);
  }
  const group = b.runner.groups(lost[0] ?? "")?.find(({ file }) => file === "f");
  const [active] = [...(group?.states[0]?.active.values() ?? [])];
  assert.ok(active && active.active_at_ms <= START + INTERVAL + 1000, `since ${active?.active_at_ms} of ${START}`);
  assert.equal(active.state, "firing");
  assert.ok(before.length > 0, "its state was stored");

  // It wakes up: what it had is not its own any more.
  const count = evaluated.filter(({ by }) => by === "a").length;
  a.clock.jump(3 * 60_000);
  await pass(2 * 60_000);
  assert.equal(evaluated.filter(({ by }) => by === "a").length, count);
  for (const { id } of ORGS) {
    const times = timesOf(evaluated, id);
    assert.equal(new Set(times).size, times.length, `${id} is evaluated once for each time`);
  }
});
