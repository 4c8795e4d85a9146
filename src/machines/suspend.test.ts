/** What is written down of a suspend, by kind: events, what the host reserves, and how a lost one starts again. */
import assert from "node:assert/strict";
import { suite, type TestContext, test } from "node:test";
import { MachineHarness } from "./machine-harness.fixtures.ts";
import type { Machine } from "./types.ts";

const FREEZE = { env: { SIM_FREEZE: "CRIU is not installed" } };

async function suspended(
  t: TestContext,
  config: Partial<Machine["config"]>,
): Promise<{ harness: MachineHarness; id: string }> {
  const harness = await MachineHarness.open();
  t.after(() => harness.close());
  const { id } = await harness.create(config);
  await harness.settle();
  await harness.module.machines.suspend(id, harness.actor());
  await harness.settle();
  assert.equal((await harness.find(id)).state, "suspended");
  return { harness, id };
}

const start = async (harness: MachineHarness, id: string): Promise<Machine> => {
  await harness.module.machines.start(id, harness.actor());
  await harness.settle();
  return await harness.find(id);
};

suite("suspended machine", () => {
  test("a machine suspended by snapshot reserves nothing, and its event names the kind", async (t) => {
    const { harness, id } = await suspended(t, {});
    const machine = await harness.find(id);
    assert.deepEqual([machine.snapshot, machine.reserved], [true, false]);
    assert.deepEqual(machine.events[0]?.request, { suspend: "snapshot" });
    assert.deepEqual((await start(harness, id)).events[0]?.request, { resumed: true });
  });

  test("a machine frozen in memory keeps its reservation, and its event says why it is no snapshot", async (t) => {
    const { harness, id } = await suspended(t, FREEZE);
    const machine = await harness.find(id);
    assert.deepEqual([machine.snapshot, machine.reserved], [false, true]);
    const reason = "frozen in memory: CRIU is not installed";
    assert.deepEqual(machine.events[0]?.request, { suspend: "freeze", reason });
    const resumed = await start(harness, id);
    assert.deepEqual([resumed.state, resumed.boot, resumed.reserved], ["started", machine.boot, true]);
    assert.deepEqual(resumed.events[0]?.request, { resumed: true });
  });

  test("a machine frozen in memory stays suspended through a restart and frees its reservation on a stop", async (t) => {
    const { harness, id } = await suspended(t, FREEZE);
    harness.kill();
    await harness.boot();
    await harness.settle();
    assert.deepEqual([(await harness.find(id)).state, (await harness.find(id)).reserved], ["suspended", true]);
    await harness.module.machines.stop(id, {}, harness.actor());
    await harness.settle();
    assert.deepEqual([(await harness.find(id)).state, (await harness.find(id)).reserved], ["stopped", false]);
  });

  test("a machine frozen in memory boots cold after a host reboot, and the event says why", async (t) => {
    const { harness, id } = await suspended(t, FREEZE);
    const { boot } = await harness.find(id);
    harness.kill();
    harness.world.reboot();
    await harness.boot();
    await harness.settle();
    assert.equal((await harness.find(id)).state, "suspended");
    const cold = await start(harness, id);
    assert.equal(cold.state, "started");
    assert.notEqual(cold.boot, boot);
    const reason = "booted cold: the host was restarted while it was suspended";
    assert.deepEqual(cold.events[0]?.request, { resumed: false, reason });
  });
});
