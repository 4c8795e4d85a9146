/** A wall clock that is put forward and back, by a second and by years, as clocks of real boxes are. */
import assert from "node:assert/strict";
import { suite, test } from "node:test";
import { virtualClock } from "#core/fixtures.ts";
import { nextRun } from "#machines/lifecycle/schedule.ts";
import { MachineHarness } from "#machines/machine-harness.fixtures.ts";
import { VOLUME_LIMITS } from "#volumes/limits.ts";
import { testPlatform } from "./platform.ts";
import { runs, until } from "./support.ts";

const SECOND = 1000;
const MINUTE = 60 * SECOND;
const HOUR = 60 * MINUTE;
const DAY = 24 * HOUR;
const YEARS = 2 * 365 * DAY;

/** Each is taken back in the end. */
const JUMPS: [name: string, by: readonly number[]][] = [
  ["a second", [SECOND, -SECOND]],
  ["an hour", [-HOUR, HOUR]],
  ["two years", [YEARS, -YEARS, -YEARS, YEARS]],
];

const between = ([least, most]: [number, number], count = 0, what: string): void =>
  assert.ok(count >= least && count <= most, `${what}: ${count}`);

suite("wall clock jumps", () => {
  test("schedules, restarts, checks and leases of machines continue after a clock jump (O2)", async (t) => {
    const began = new Map<string, number>();
    let probes = 0;
    const harness = await MachineHarness.open({
      fault: async (call, id) => {
        if (call === "start") began.set(id, (began.get(id) ?? 0) + 1);
        if (call === "probe") probes++;
      },
    });
    t.after(() => harness.close());
    const hourly = await harness.create({ schedule: "hourly", restart: { policy: "no" }, env: { SIM_RUN_MS: "1000" } });
    const crashing = await harness.create({
      restart: { policy: "always" },
      env: { SIM_RUN_MS: "60000", SIM_EXIT_CODE: "1" },
    });
    const checked = await harness.create({ checks: { alive: { type: "tcp", port: 80, interval: "60s" } } });
    const leases = harness.module.leases;
    const wish = { owner: "test", description: "", ttl_s: 60, wait_s: 0 };
    const take = () => leases.acquire(checked.id, wish, harness.ids, new AbortController().signal);
    await harness.clock.advance(HOUR);

    const jumps = Array.from({ length: runs(1, 4) }, () =>
      JUMPS.flatMap(([name, by]) => by.map((ms) => [name, ms] as const)),
    );
    for (const [name, by] of jumps.flat()) {
      const when = `${by < 0 ? "back" : "forward"} by ${name}`;
      const { lease } = await take();
      harness.clock.jump(by);
      await assert.rejects(take(), /lease currently held/, `${when}: one holder`);
      await harness.clock.advance(59 * SECOND);
      await assert.rejects(take(), /lease currently held/, `${when}: for the whole of its time`);
      await harness.clock.advance(2 * SECOND);
      assert.notEqual((await take()).lease.nonce, lease.nonce, `${when}: and no longer`);
      await harness.clock.advance(60 * SECOND);

      began.clear();
      probes = 0;
      await harness.clock.advance(2 * HOUR);
      between([1, 3], began.get(hourly.id), `${when}: runs of an hourly machine in two hours`);
      between([75, 100], began.get(crashing.id), `${when}: restarts of one that lives a minute`);
      between([118, 121], probes, `${when}: checks of every minute`);
    }
    t.diagnostic(`${jumps.flat().length} jumps, each followed for two hours`);
  });

  test("the next run is the first one after now, whenever now is (O2)", () => {
    const created = Date.UTC(2026, 0, 31, 12);
    const cases: [schedule: "hourly" | "weekly" | "monthly", now: number, next: number][] = [
      ["hourly", created, created + HOUR],
      ["hourly", created - YEARS - 1, created - YEARS],
      ["weekly", created + YEARS, created + Math.ceil((YEARS + 1) / (7 * DAY)) * 7 * DAY],
      ["monthly", created, Date.UTC(2026, 1, 28, 12)],
      ["monthly", Date.UTC(2024, 1, 1), Date.UTC(2024, 1, 29, 12)],
      ["monthly", Date.UTC(2028, 5, 30, 12), Date.UTC(2028, 6, 31, 12)],
    ];
    for (const [schedule, now, next] of cases)
      assert.equal(new Date(nextRun(schedule, created, now)).toISOString(), new Date(next).toISOString(), schedule);
  });

  test("a clock jump deletes nothing, daily snapshots continue, and expired data are deleted in the end (O2)", async (t) => {
    const clock = virtualClock();
    const { ask } = await testPlatform(t, { HANGAR_VOLUME_UNDELETE_HOURS: "48" }, { clock });
    await ask("POST /v1/apps", { body: { app_name: "web" } });
    const make = async (name: string): Promise<string> =>
      (await ask("POST /v1/apps/web/volumes", { body: { name, snapshot_retention: 2 } })).body.id;
    const [kept, deleted] = [await make("kept"), await make("deleted")];
    const snapshots = async (): Promise<{ id: string }[]> =>
      (await ask(`GET /v1/apps/web/volumes/${kept}/snapshots`)).body;
    const count = async (): Promise<number> => (await snapshots()).length;
    await ask(`POST /v1/apps/web/volumes/${kept}/snapshots`);
    /** Time passes, and whoever looks after volumes gets to look each time. */
    const pass = async (ms: number): Promise<void> => {
      for (let gone = 0; gone < ms; gone += VOLUME_LIMITS.upkeep_ms) {
        await clock.advance(VOLUME_LIMITS.upkeep_ms);
        await count();
      }
    };
    const comes = (what: string, done: () => Promise<boolean>) =>
      until(what, async () => {
        await pass(VOLUME_LIMITS.upkeep_ms);
        return await done();
      });
    await comes("the first snapshot is stored", async () => (await count()) === 1);
    const [{ id: first } = { id: "" }] = await snapshots();
    await ask(`DELETE /v1/apps/web/volumes/${deleted}`);

    clock.jump(YEARS);
    await comes("by the clock a day has passed", async () => (await count()) === 2);
    await pass(10 * MINUTE);
    assert.ok(
      (await snapshots()).some(({ id }) => id === first),
      "a snapshot is not old because a clock says so",
    );
    clock.jump(-YEARS);
    await comes("the next daily one does not wait for years", async () => (await count()) === 3);
    await pass(10 * MINUTE);
    assert.equal(await count(), 3, "and there is one of it");
    assert.equal((await ask(`POST /v1/apps/web/volumes/${deleted}/undelete`)).status, 200, "it can be taken back");

    // The control: time that really passes does take away what is old.
    clock.jump(3 * DAY);
    await pass(VOLUME_LIMITS.steady_clock_ms);
    await comes("what is old is gone", async () => !(await snapshots()).some(({ id }) => id === first));
  });

  test("a token that expired by a wrong clock is valid again by a right one (O2)", async (t) => {
    const clock = virtualClock();
    const { ask } = await testPlatform(t, {}, { clock });
    const made = await ask("POST /v1/orgs/personal/tokens", { body: { kind: "org", expiry: "1h" } });
    assert.equal(made.status, 201, made.text);
    const short: string = made.body.token;
    for (const by of [HOUR / 2, -HOUR / 2, YEARS, -YEARS, -YEARS, YEARS]) {
      clock.jump(by);
      assert.equal((await ask("GET /v1/apps")).status, 200, "one without an end");
      // A clock that is behind makes it last longer, and never takes it away.
      const expected = clock.now() < 1_700_000_000_000 + HOUR ? 200 : 401;
      assert.equal((await ask("GET /v1/apps", { token: short })).status, expected, `after a jump by ${by} ms`);
    }
    await clock.advance(HOUR + SECOND);
    assert.equal((await ask("GET /v1/apps", { token: short })).status, 401, "the control: an hour that really passed");
  });
});
