import assert from "node:assert/strict";
import { suite, test } from "node:test";
import type { AlertStore } from "./store.ts";

/** What every AlertStore must do. `open` gives an empty one in which organization o1 has the app a1. */
export function alertStoreSuite(
  name: string,
  open: () => Promise<{ store: AlertStore; close(): Promise<void> }>,
  skip?: string,
): void {
  suite(`alert store: ${name}`, { skip }, () => {
    test("rule files are stored up to the limit, replaced, and deleted with their states", async () => {
      const { store, close } = await open();
      const file = {
        org_id: "o1",
        name: "b",
        app_id: null,
        dialect: "promql",
        content: "groups: []",
        updated_at: 1,
      } as const;
      assert.equal(await store.putRuleFile(file, 2), true);
      assert.equal(await store.putRuleFile({ ...file, name: "app:a1", app_id: "a1" }, 2), true);
      assert.equal(await store.putRuleFile({ ...file, name: "c" }, 2), false);
      assert.equal(
        await store.putRuleFile({ ...file, content: "groups:", dialect: "metricsql", updated_at: 2 }, 2),
        true,
      );
      assert.equal(await store.putRuleFile({ ...file, org_id: "o9" }, 2), false, "there is no such organization");
      const files = await store.ruleFiles("o1");
      assert.deepEqual(
        files.map((one) => [one.name, one.app_id, one.app_name === null, one.dialect, one.content, one.updated_at]),
        [
          ["app:a1", "a1", false, "promql", "groups: []", 1],
          ["b", null, true, "metricsql", "groups:", 2],
        ],
      );
      assert.equal((await store.findRuleFile("o1", "b"))?.updated_at, 2);
      assert.equal((await store.ruleFileVersions()).length, 2);
      assert.deepEqual(await store.ruleFiles("o2"), []);
      const claim = { runner: "r", now: 0, until: 10 };
      assert.equal(await store.claim("o1", claim), true);
      assert.equal(await store.putState("o1", { file: "b", group_name: "g", state: "[1]" }, claim), true);
      assert.equal(await store.putState("o1", { file: "b", group_name: "g", state: "[2]" }, claim), true);
      const states = (await store.states("o1")).map((row) => ({ ...row }));
      assert.deepEqual(states, [{ file: "b", group_name: "g", state: "[2]" }]);
      assert.equal(await store.deleteRuleFile("o1", "b"), true);
      assert.equal(await store.deleteRuleFile("o1", "b"), false);
      assert.deepEqual(await store.states("o1"), []);
      await close();
    });

    test("one process has the claim until it ends or is released, and only it stores states", async () => {
      const { store, close } = await open();
      const state = { file: "f", group_name: "g", state: "[]" };
      const claim = (runner: string, now: number) => ({ runner, now, until: now + 10 });
      assert.equal(await store.putState("o1", state, claim("a", 100)), false, "no process has it");
      assert.equal(await store.claim("o1", claim("a", 100)), true);
      assert.equal(await store.claim("o1", claim("b", 109)), false);
      assert.equal(await store.putState("o1", state, claim("b", 109)), false);
      assert.equal(await store.putState("o1", state, claim("a", 108)), true, "which renews it");
      assert.equal(await store.claim("o1", claim("b", 117)), false);
      assert.equal(await store.claim("o1", claim("b", 118)), true, "one that ran out is anybody's");
      assert.equal(await store.putState("o1", state, claim("a", 119)), false);
      await store.release("a");
      assert.equal(await store.claim("o1", claim("a", 119)), false);
      await store.release("b");
      assert.equal(await store.claim("o1", claim("a", 119)), true);
      assert.equal(await store.claim("o9", claim("a", 119)), false, "there is no such organization");
      await close();
    });
  });
}
