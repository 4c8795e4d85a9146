import assert from "node:assert/strict";
import { suite, test } from "node:test";
import { systemClock } from "#core/clock.ts";
import type { RuntimeDriver } from "../runtime/driver.ts";
import type { MachineStore } from "../store.ts";
import { Logs } from "./logs.ts";

suite("machines of a log search", () => {
  test("the most recently changed ones are searched, how many are left out is told, and each is found by name", async () => {
    const machines = Array.from({ length: 12 }, (_, at) => ({
      id: `m${at}`,
      name: `n${at}`,
      host_id: "h",
      updated_at: at,
    }));
    const store = { list: async () => machines } as unknown as MachineStore;
    const logs = new Logs({ store, driver: {} as RuntimeDriver, clock: systemClock });
    const { sources, left_out } = await logs.choose("a1", undefined, 10);
    assert.deepEqual([sources.length, sources[0]?.id, left_out], [10, "m11", 2]);
    assert.deepEqual(await logs.choose("a1", "n0", 10), {
      sources: [{ id: "m0", name: "n0", host_id: "h" }],
      left_out: 0,
    });
    assert.deepEqual(await logs.choose("a1", "none", 10), { sources: [], left_out: 0 });
  });
});
