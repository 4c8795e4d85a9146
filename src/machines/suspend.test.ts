/** What is written down of a suspend, by kind: events, what the host reserves, and how a lost one starts again. */
import assert from "node:assert/strict";
import { suite, type TestContext, test } from "node:test";
import { Rig } from "./rig-fixtures.ts";
import type { Machine } from "./types.ts";

const FREEZE = { env: { SIM_FREEZE: "CRIU is not installed" } };

async function suspended(t: TestContext, config: Partial<Machine["config"]>): Promise<{ rig: Rig; id: string }> {
  const rig = await Rig.open();
  t.after(() => rig.close());
  const { id } = await rig.create(config);
  await rig.settle();
  await rig.room.machines.suspend(id, rig.asker());
  await rig.settle();
  assert.equal((await rig.find(id)).state, "suspended");
  return { rig, id };
}

const start = async (rig: Rig, id: string): Promise<Machine> => {
  await rig.room.machines.start(id, rig.asker());
  await rig.settle();
  return await rig.find(id);
};

suite("a suspended machine", () => {
  test("by snapshot takes nothing of its host, and its event says which kind it is", async (t) => {
    const { rig, id } = await suspended(t, {});
    const machine = await rig.find(id);
    assert.deepEqual([machine.snapshot, machine.reserved], [true, false]);
    assert.deepEqual(machine.events[0]?.request, { suspend: "snapshot" });
    assert.deepEqual((await start(rig, id)).events[0]?.request, { resumed: true });
  });

  test("frozen in memory keeps its size reserved, and its event says why it is no snapshot", async (t) => {
    const { rig, id } = await suspended(t, FREEZE);
    const machine = await rig.find(id);
    assert.deepEqual([machine.snapshot, machine.reserved], [false, true]);
    const reason = "frozen in memory: CRIU is not installed";
    assert.deepEqual(machine.events[0]?.request, { suspend: "freeze", reason });
    const resumed = await start(rig, id);
    assert.deepEqual([resumed.state, resumed.boot, resumed.reserved], ["started", machine.boot, true]);
    assert.deepEqual(resumed.events[0]?.request, { resumed: true });
  });

  test("frozen in memory stays suspended through a restart of ours, and gives its size back when it is stopped", async (t) => {
    const { rig, id } = await suspended(t, FREEZE);
    rig.kill();
    await rig.boot();
    await rig.settle();
    assert.deepEqual([(await rig.find(id)).state, (await rig.find(id)).reserved], ["suspended", true]);
    await rig.room.machines.stop(id, {}, rig.asker());
    await rig.settle();
    assert.deepEqual([(await rig.find(id)).state, (await rig.find(id)).reserved], ["stopped", false]);
  });

  test("frozen in memory boots cold after a restart of the host, and the event says why", async (t) => {
    const { rig, id } = await suspended(t, FREEZE);
    const { boot } = await rig.find(id);
    rig.kill();
    rig.world.reboot();
    await rig.boot();
    await rig.settle();
    assert.equal((await rig.find(id)).state, "suspended");
    const cold = await start(rig, id);
    assert.equal(cold.state, "started");
    assert.notEqual(cold.boot, boot);
    const reason = "booted cold: the host was restarted while it was suspended";
    assert.deepEqual(cold.events[0]?.request, { resumed: false, reason });
  });
});
