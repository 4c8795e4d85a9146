import assert from "node:assert/strict";
import { suite, test } from "node:test";
import { aMachine } from "./fixtures.ts";
import { change, inserting } from "./store.suite.ts";
import type { MachineStore, OrgListFilter } from "./store.ts";
import type { Machine } from "./types.ts";

/** What every MachineStore finds and counts; `open` as for the suite of the store. */
export function machineSearchSuite(
  name: string,
  open: () => Promise<{ store: MachineStore; close(): Promise<void> }>,
  skip?: string,
): void {
  suite(`search of machines: ${name}`, { skip }, () => {
    async function withStore(work: (store: MachineStore) => Promise<void>): Promise<void> {
      const { store, close } = await open();
      try {
        await work(store);
      } finally {
        await close();
      }
    }

    test("machines are searched by words in name, id, app, region, image and addresses, and counted by state", () =>
      withStore(async (store) => {
        const add = (id: string, more: Partial<Machine>) =>
          store.insert(inserting(aMachine({ id, name: `n-${id}`, instance_id: "v1", ...more })), 10);
        await add("m1", { name: "Blue-River", created_at: 3, config: { image: "Registry.example/shop:42" } });
        await add("m2", { region: "fra", private_ip: "fdaa:7::1", created_at: 1, state: "stopped" });
        await add("m3", { app_id: "a2", app_name: "worker_1", created_at: 2, state: "started" });
        const found = async (search: string, filter: Partial<OrgListFilter> = {}) => {
          const words = search.split(" ").filter(Boolean);
          const page = { limit: 9 };
          return (await store.listOrg("o1", { order: "created", search: words, page, ...filter })).map(({ id }) => id);
        };
        assert.deepEqual(await found(""), ["m2", "m3", "m1"]);
        assert.deepEqual(await found("blue"), ["m1"]);
        assert.deepEqual(await found("shop:42 river web"), ["m1"]);
        assert.deepEqual(await found("shop:42 worker"), []);
        assert.deepEqual(await found("fra"), ["m2"]);
        assert.deepEqual(await found("fdaa:7::1"), ["m2"]);
        assert.deepEqual(await found("m3"), ["m3"]);
        assert.deepEqual(await found("r_1"), ["m3"]);
        assert.deepEqual([await found("b%r"), await found("b_ue"), await found("\\")], [[], [], []]);
        assert.deepEqual(await found("n-", { states: ["stopped"] }), ["m2"]);
        assert.deepEqual(await found("n-", { order: "changed" }), ["m2", "m3"]);
        const after = [1, "m2"] as const;
        assert.deepEqual(await found("", { page: { limit: 1, after } }), ["m3"]);

        const counted = (search: string[], more: { region?: string; limit?: number } = {}) =>
          store.countStates("o1", { search, ...more }, more.limit ?? 9);
        assert.deepEqual(await counted([]), { created: 1, started: 1, stopped: 1 });
        assert.deepEqual(await counted(["n-"], { region: "fra" }), { stopped: 1 });
        assert.equal(
          Object.values(await counted([], { limit: 2 })).reduce((sum, n) => sum + n, 0),
          2,
        );
        assert.deepEqual(await store.countStates("o2", {}, 9), {});
      }));

    test("a search knows a machine's new image, its address while it runs, and its new place after a move", () =>
      withStore(async (store) => {
        const machine = aMachine({ id: "m1", instance_id: "v1", config: { image: "shop:1" } });
        await store.insert(inserting(machine), 10);
        const found = async (word: string) =>
          (await store.listOrg("o1", { search: [word], page: { limit: 9 } })).length === 1;
        const updated = {
          ...machine,
          revision: 2,
          instance_id: "v2",
          config: { image: "shop:2" },
          private_ipv4: "172.20.0.9",
        };
        assert.equal(await store.commit(change(updated, { new_version: true })), "done");
        assert.deepEqual([await found("shop:1"), await found("shop:2")], [false, true]);
        assert.deepEqual([await found("20.0.9"), await found("20.0.8")], [true, false]);
        const moved = { ...updated, revision: 3, host_id: "0002", region: "ams", private_ip: "fdaa:9::9" };
        const moved_from = { host_id: "0001", epoch: null, cpus: 0, memory_mb: 0 };
        assert.equal(await store.commit(change(moved, { moved_from })), "done");
        assert.deepEqual([await found("ams"), await found("fdaa:9::9"), await found("local")], [true, true, false]);
      }));
  });
}
