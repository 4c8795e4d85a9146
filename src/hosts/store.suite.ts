import assert from "node:assert/strict";
import { suite, test } from "node:test";
import type { HostStore } from "./store.ts";

/** What every HostStore must do. `open` gives an empty one. */
export function hostStoreSuite(
  name: string,
  open: () => Promise<{ store: HostStore; close(): Promise<void> }>,
  skip?: string,
): void {
  suite(`host store: ${name}`, { skip }, () => {
    test("declared hosts are there with their size, keep their state, and go when no longer declared", async () => {
      const { store, close } = await open();
      const a = { id: "000a", region: "ams", zone: "z1", cpus: 4, memory_mb: 1024 };
      const b = { id: "000b", region: "fra", zone: "z2", cpus: 0, memory_mb: 0 };
      await store.declare([a, b]);
      assert.ok(await store.setState("000a", "failed"));
      assert.equal(await store.setState("ffff", "failed"), false);
      await store.declare([{ ...a, cpus: 8 }]);
      assert.deepEqual(
        (await store.hosts()).map((host) => ({ ...host })),
        [{ ...a, cpus: 8, state: "failed", used_cpus: 0, used_memory_mb: 0 }],
      );
      await close();
    });
  });
}
