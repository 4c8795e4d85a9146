import assert from "node:assert/strict";
import { suite, test } from "node:test";
import type { AppRange } from "#apps/store.ts";
import { aMachine } from "./fixtures.ts";
import { inserting } from "./store.suite.ts";
import type { MachineStore } from "./store.ts";
import type { Machine } from "./types.ts";

/** What every MachineStore must do for the status of many apps. `open` is as in `store.suite.ts`. */
export function statusReadsSuite(
  name: string,
  open: () => Promise<{ store: MachineStore; close(): Promise<void> }>,
  skip?: string,
): void {
  suite(`machines of many apps: ${name}`, { skip }, () => {
    test("the oldest of each app on a page are listed, in states or all, at most so many of each", async () => {
      const { store, close } = await open();
      const put = async (id: string, app_id: string, change: Partial<Machine>): Promise<void> => {
        const machine = aMachine({ id, name: id, app_id, ...change });
        assert.equal(await store.insert(inserting(machine), 10), "inserted");
      };
      await put("m3", "a1", { created_at: 30, state: "failed" });
      await put("m1", "a1", { created_at: 10 });
      await put("m2", "a1", { created_at: 20 });
      await put("same", "a1", { created_at: 20, state: "failed" });
      await put("gone", "a1", { created_at: 5, state: "destroyed" });
      await put("other", "a2", { created_at: 15 });
      const oldest = async (range: AppRange, limit: number, states?: string[]): Promise<string[]> => {
        const found = await store.oldestOfEach(range, { limit, ...(states ? { states } : {}) });
        return found.map(({ app_id, id }) => `${app_id} ${id}`).sort();
      };
      assert.deepEqual(await oldest({ app_id: "a1" }, 2), ["a1 m1", "a1 m2"], "and no more of the same age");
      assert.deepEqual(await oldest({ app_id: "a1" }, 9), ["a1 m1", "a1 m2", "a1 m3", "a1 same"]);
      assert.deepEqual(await oldest({ app_id: "a1" }, 1, ["failed"]), ["a1 same"]);
      assert.deepEqual(await oldest({ org_id: "o1" }, 1), ["a1 m1", "a2 other"]);
      assert.deepEqual(await oldest({ org_id: "o1", page: { after: ["a1"], limit: 1 } }, 9), ["a2 other"]);
      const counts = await store.stateCounts({ org_id: "o1", page: { limit: 1 } });
      assert.deepEqual(
        counts.map(({ app_id, state, machines }) => [app_id, state, machines]),
        [
          ["a1", "created", 2],
          ["a1", "failed", 2],
        ],
      );
      await close();
    });
  });
}
