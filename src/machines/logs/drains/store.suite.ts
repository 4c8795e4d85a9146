import assert from "node:assert/strict";
import { suite, test } from "node:test";
import type { DrainStore } from "./store.ts";
import type { Drain, DrainState } from "./types.ts";

/** What every DrainStore must do. `open` gives an empty one in which organization o1 has the app a1. */
export function drainStoreSuite(
  name: string,
  open: () => Promise<{ store: DrainStore; close(): Promise<void> }>,
  skip?: string,
): void {
  suite(`log drain store: ${name}`, { skip }, () => {
    test("drains are stored up to the limit, and deleted with their states", async () => {
      const { store, close } = await open();
      const drain: Drain = {
        id: "d1",
        org_id: "o1",
        app_id: "a1",
        kind: "loki",
        target: Uint8Array.of(1, 2),
        address: "https://logs.example",
        since: 4,
        created_at: 5,
        token_id: "t1",
      };
      assert.equal(await store.insert(drain, 2), true);
      assert.equal(await store.insert(drain, 2), true, "a repeated request");
      assert.equal(await store.insert({ ...drain, id: "d2", app_id: null }, 2), true);
      assert.equal(await store.insert({ ...drain, id: "d3" }, 2), false);
      const [first, second, ...more] = await store.drains("o1");
      assert.deepEqual({ ...first, target: [...(first?.target ?? [])] }, { ...drain, target: [1, 2] });
      assert.deepEqual([second?.id, second?.app_id, more], ["d2", null, []]);
      assert.deepEqual(await store.drains("o2"), []);
      assert.equal((await store.drains()).length, 2);

      const state: DrainState = {
        drain_id: "d1",
        host_id: "h1",
        sent: 5_000_000_000,
        refused: 1,
        lost_gaps: 2,
        lost_bytes: 3,
        oldest_at: null,
        last_success_at: 7,
        last_error: null,
        failures: 0,
        updated_at: 8,
      };
      assert.equal(await store.putState(state), true);
      const later = { ...state, oldest_at: 9, last_error: "refused", failures: 4, updated_at: 10 };
      assert.equal(await store.putState(later), true);
      assert.equal(await store.putState({ ...state, host_id: "h2" }), true);
      assert.deepEqual(plain(await store.states("o1")), [later, { ...state, host_id: "h2" }]);
      assert.deepEqual(await store.states("o2"), []);
      assert.deepEqual(plain(await store.hostStates("h1")), [later]);

      assert.equal(await store.delete("o2", "d1"), false);
      assert.equal(await store.delete("o1", "d1"), true);
      assert.equal(await store.putState(state), false);
      assert.deepEqual(await store.states("o1"), []);
      await close();
    });
  });
}

/** Without the prototype of rows. */
const plain = (states: readonly DrainState[]): DrainState[] => states.map((state) => ({ ...state }));
