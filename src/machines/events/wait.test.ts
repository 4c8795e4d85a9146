import assert from "node:assert/strict";
import { suite, test } from "node:test";
import { workSince } from "../../../test/support.ts";
import { MachineHarness, turns } from "../machine-harness.fixtures.ts";

const never = new AbortController().signal;
const ROOM_LISTENERS = 3;

suite("waiting for a machine state", () => {
  test("one state change wakes a thousand waiters within a second (W1)", async (t) => {
    const harness = await MachineHarness.open();
    const { id } = await harness.create({}, { skip_launch: true });
    const before = process.memoryUsage().heapUsed;
    const waiters = Array.from({ length: 1000 }, () =>
      harness.module.waits.wait(id, { states: ["started"], timeout_s: 60 }, never),
    );
    await turns(2);
    const each = (process.memoryUsage().heapUsed - before) / 1000;
    assert.equal(harness.module.bus.listeners, ROOM_LISTENERS + 1000);
    const began = process.cpuUsage();
    await harness.module.machines.start(id, harness.actor());
    const reached = await Promise.all(waiters);
    const took = workSince(began);
    assert.ok(reached.every((one) => one.state === "started"));
    assert.ok(took < 1000, `${took} ms`);
    assert.ok(each < 32 * 1024, `${each} bytes for each`);
    assert.equal(harness.module.bus.listeners, ROOM_LISTENERS);
    assert.equal(harness.clock.sleepers <= 5, true, "no alarm is left behind");
    t.diagnostic(`1,000 woken in ${took.toFixed(1)} ms, ${Math.round(each)} bytes each`);
    await harness.close();
  });

  test("waiters that disconnect leave no subscription behind (W3)", async () => {
    const harness = await MachineHarness.open();
    const { id } = await harness.create({}, { skip_launch: true });
    const client = new AbortController();
    const waiters = Array.from({ length: 5000 }, () =>
      harness.module.waits.wait(id, { states: ["started"], timeout_s: 60 }, client.signal).catch(() => "left"),
    );
    await turns(2);
    const sleepers = harness.clock.sleepers;
    client.abort();
    assert.ok((await Promise.all(waiters)).every((one) => one === "left"));
    assert.equal(harness.module.bus.listeners, ROOM_LISTENERS);
    assert.equal(harness.clock.sleepers, sleepers - 5000);
    await harness.close();
  });

  test("a wait times out within half a second of its limit and reports the machine's state (W4)", async () => {
    const harness = await MachineHarness.open();
    const { id } = await harness.create({}, { skip_launch: true });
    const waiting = harness.module.waits.wait(id, { states: ["started"], timeout_s: 60 }, never);
    let over = false;
    waiting.catch(() => {
      over = true;
    });
    await turns(2);
    await harness.clock.advance(59_500);
    assert.equal(over, false);
    await harness.clock.advance(501);
    await assert.rejects(waiting, { code: "wait_timeout", message: /desired state, started, currently created/ });
    await harness.close();
  });

  test("a state the machine only passed through ends open waits and those with from_event_id", async () => {
    const harness = await MachineHarness.open();
    const { id } = await harness.create(
      { restart: { policy: "no" }, env: { SIM_RUN_MS: "0", SIM_EXIT_CODE: "0" } },
      { skip_launch: true },
    );
    const [first] = (await harness.find(id)).events;
    const waiting = harness.module.waits.wait(id, { states: ["started"], timeout_s: 60 }, never);
    await turns(2);
    await harness.module.machines.start(id, harness.actor());
    await harness.settle();
    await harness.clock.advance(10);
    assert.equal((await waiting).state, "started");
    await harness.settle();
    assert.equal((await harness.find(id)).state, "stopped");
    const input = { states: ["started"], timeout_s: 1, from_event_id: first?.id };
    assert.equal((await harness.module.waits.wait(id, input, never)).state, "started");
    await assert.rejects(harness.module.waits.wait(id, { ...input, from_event_id: "none" }, never), /from_event_id/);
    await harness.close();
  });

  test("a wait for a destroyed machine or a replaced version fails at once", async () => {
    const harness = await MachineHarness.open();
    const machine = await harness.create();
    await harness.settle();
    const { id, instance_id } = machine;
    const version = harness.module.waits.wait(id, { states: ["stopped"], instance_id, timeout_s: 60 }, never);
    version.catch(() => {});
    const waiting = harness.module.waits.wait(id, { states: ["suspended"], timeout_s: 60 }, never);
    waiting.catch(() => {});
    await turns(2);
    await harness.module.machines.update(machine, { config: { image: "web:2" } }, harness.actor());
    await assert.rejects(version, { code: "version_conflict", message: /currently replaced/ });
    await harness.settle();
    await harness.module.machines.destroy(id, { force: true }, harness.actor());
    await harness.settle();
    await assert.rejects(waiting, { code: "not_found" });
    assert.equal(
      (await harness.module.waits.wait(id, { states: ["destroyed"], timeout_s: 1 }, never)).state,
      "destroyed",
    );
    await harness.close();
  });
});
