import assert from "node:assert/strict";
import { suite, test } from "node:test";
import { Slots } from "./slots.ts";

const SLOT = 3;

suite("connection slots", () => {
  test("an idle connection holds a slot but does not count as in use", () => {
    const slots = new Slots();
    for (let n = 0; n < 3; n++) assert.ok(slots.acquire(SLOT, 3, 0));
    slots.rest(SLOT, 0, 2);
    assert.deepEqual([slots.load(SLOT), slots.inUse(SLOT), slots.acquire(SLOT, 3, 1)], [3, 1, false]);
    slots.rest(SLOT, 0, -1);
    assert.equal(slots.inUse(SLOT), 2);
    assert.equal(slots.inUse(SLOT + 1), 0);
  });

  test("slots and idle connections of a worker that died are freed", () => {
    const slots = new Slots();
    for (const worker of [0, 0, 1]) assert.ok(slots.acquire(SLOT, 9, worker));
    slots.rest(SLOT, 0, 1);
    slots.forget(0);
    assert.deepEqual([slots.load(SLOT), slots.inUse(SLOT)], [1, 1]);
  });

  test("slots are shared by all users of the same memory", () => {
    const slots = new Slots();
    const others = new Slots(slots.buffer);
    assert.ok(slots.acquire(SLOT, 9, 0));
    others.rest(SLOT, 0, 1);
    assert.deepEqual([others.load(SLOT), slots.inUse(SLOT)], [1, 0]);
  });

  test("the target picked longest ago comes first, across workers and counter overflow", () => {
    const slots = new Slots();
    const others = new Slots(slots.buffer);
    new Int32Array(slots.buffer).fill(2 ** 31 - 2, -1);
    for (const slot of [1, 2, 3]) slots.pick(slot);
    others.pick(1);
    assert.ok(slots.pickedBefore(2, 3) && slots.pickedBefore(3, 1));
    assert.ok(!slots.pickedBefore(1, 2) && !others.pickedBefore(1, 1));
  });
});
