import assert from "node:assert/strict";
import { suite, test } from "node:test";
import { Slots } from "./slots.ts";

const SLOT = 3;

suite("slots", () => {
  test("an unused connection has a seat, and is not in use", () => {
    const slots = new Slots();
    for (let n = 0; n < 3; n++) assert.ok(slots.acquire(SLOT, 3, 0));
    slots.rest(SLOT, 0, 2);
    assert.deepEqual([slots.load(SLOT), slots.inUse(SLOT), slots.acquire(SLOT, 3, 1)], [3, 1, false]);
    slots.rest(SLOT, 0, -1);
    assert.equal(slots.inUse(SLOT), 2);
    assert.equal(slots.inUse(SLOT + 1), 0);
  });

  test("what a worker that is gone had is free, its unused connections with it", () => {
    const slots = new Slots();
    for (const worker of [0, 0, 1]) assert.ok(slots.acquire(SLOT, 9, worker));
    slots.rest(SLOT, 0, 1);
    slots.forget(0);
    assert.deepEqual([slots.load(SLOT), slots.inUse(SLOT)], [1, 1]);
  });

  test("all who share the memory see the same", () => {
    const slots = new Slots();
    const others = new Slots(slots.buffer);
    assert.ok(slots.acquire(SLOT, 9, 0));
    others.rest(SLOT, 0, 1);
    assert.deepEqual([others.load(SLOT), slots.inUse(SLOT)], [1, 0]);
  });

  test("what was picked longer ago comes first, for all who share the memory and across the wrap of the count", () => {
    const slots = new Slots();
    const others = new Slots(slots.buffer);
    new Int32Array(slots.buffer).fill(2 ** 31 - 2, -1);
    for (const slot of [1, 2, 3]) slots.pick(slot);
    others.pick(1);
    assert.ok(slots.pickedBefore(2, 3) && slots.pickedBefore(3, 1));
    assert.ok(!slots.pickedBefore(1, 2) && !others.pickedBefore(1, 1));
  });
});
