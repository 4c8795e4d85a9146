import assert from "node:assert/strict";
import { suite, test } from "node:test";
import { StoreError } from "#core/errors.ts";
import { MACHINE_LIMITS } from "../limits.ts";
import { MachineHarness } from "../machine-harness.fixtures.ts";
import { DEADLINES_MS } from "./states.ts";

suite("executor", () => {
  test("a driver that hangs while it removes one orphan does not delay the others", async () => {
    const hangs = new Map<string, number>();
    const harness = await MachineHarness.open({
      fault: async (call, id) => {
        const left = hangs.get(id) ?? 0;
        if (call !== "stop" || left === 0) return;
        hangs.set(id, left - 1);
        await new Promise(() => {});
      },
    });
    const machines = [await harness.create({}), await harness.create({})];
    await harness.settle();
    const running = () => machines.filter(({ id }) => harness.world.boots.get(id)?.state === "running").length;
    assert.equal(running(), 2);
    // Twice each: once while it is stopped, which fails it and leaves a stray, and once while that is removed.
    for (const { id } of machines) {
      hangs.set(id, 2);
      await harness.module.machines.stop(id, {}, harness.actor());
    }
    await harness.settle();
    for (const { id } of machines) assert.equal((await harness.find(id)).state, "failed");
    assert.equal(running(), 2);
    const round = MACHINE_LIMITS.reconcile_ms + 2 * ((DEADLINES_MS.destroying ?? 0) + MACHINE_LIMITS.abort_grace_ms);
    await harness.clock.advance(2 * round);
    assert.equal(running(), 0);
    await harness.close();
  });

  test("a machine whose start meets an unreachable database starts once the database is back", async () => {
    let away = true;
    const harness = await MachineHarness.open({
      fault: async (call) => {
        if (call === "start" && away) throw new StoreError("storage_failed", "the database cannot be reached");
      },
    });
    const { id } = await harness.create({});
    await harness.clock.advance(10 * MACHINE_LIMITS.retry_ms);
    assert.equal((await harness.find(id)).state, "starting");
    away = false;
    await harness.clock.advance(2 * MACHINE_LIMITS.retry_ms);
    await harness.settle();
    assert.equal((await harness.find(id)).state, "started");
    await harness.close();
  });

  test("an exit notice is kept while the database does not respond", async () => {
    let away = false;
    const harness = await MachineHarness.open({
      wrapStore: (store) => ({
        ...store,
        findWork: (id) => (away ? Promise.reject(new Error("the store is away")) : store.findWork(id)),
      }),
    });
    const { id } = await harness.create({ restart: { policy: "no" } });
    await harness.settle();
    away = true;
    assert.ok(harness.world.crash(id, { exit_code: 3, signal: -1, oom_killed: false, exited_at: harness.clock.now() }));
    await harness.clock.advance(10);
    away = false;
    await harness.clock.advance(2 * MACHINE_LIMITS.retry_ms);
    await harness.settle();
    assert.equal((await harness.find(id)).state, "stopped");
    await harness.close();
  });
});
