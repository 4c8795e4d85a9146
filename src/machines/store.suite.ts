import assert from "node:assert/strict";
import { suite, test } from "node:test";
import { aMachine } from "./fixtures.ts";
import { MACHINE_LIMITS } from "./limits.ts";
import type { Change, MachineStore, OrgListFilter } from "./store.ts";
import type { Machine, MachineEvent, Operation } from "./types.ts";

const event = (id: string, status: string): MachineEvent => ({
  id,
  type: "start",
  status,
  source: "user",
  timestamp: 7,
});

const operation = (change: Partial<Operation> = {}): Operation => ({
  id: "op1",
  machine_id: "m1",
  host_id: "0001",
  position: 1,
  kind: "start",
  payload: { source: "user" },
  not_before: null,
  begun: false,
  ...change,
});

export function change(machine: Machine, more: Partial<Change> = {}): Change {
  return {
    machine,
    events: [],
    add_operations: [],
    put_operations: [],
    remove_operations: [],
    new_version: false,
    new_metadata: false,
    ...more,
  };
}

export const inserting = (machine: Machine, more: Partial<Change> = {}): Change =>
  change(machine, { new_version: true, events: [event(`${machine.id}-e0`, "created")], ...more });

/**
 * What every MachineStore must do. `open` gives an empty one in which organization o1 has the apps a1 and a2,
 * and there are the hosts 0001, without bounds, and 0002, with 2 cpus and 512 MB.
 */
export function machineStoreSuite(
  name: string,
  open: () => Promise<{ store: MachineStore; close(): Promise<void> }>,
  skip?: string,
): void {
  suite(`machine store: ${name}`, { skip }, () => {
    async function withStore(work: (store: MachineStore) => Promise<void>): Promise<void> {
      const { store, close } = await open();
      try {
        await work(store);
      } finally {
        await close();
      }
    }

    test("a machine is read back as it was written, with all its fields", () =>
      withStore(async (store) => {
        const machine = aMachine({
          id: "m1",
          handle: { pid: 1 },
          boot: "b1",
          snapshot: true,
          cordoned: true,
          deadline_at: 99,
          lease: { nonce: "n", owner: "o", description: "d", expires_at: 5, ttl_ms: 3 },
          checks: { a: { status: "passing", output: "ok", updated_at: 4 } },
          events: [event("e1", "created")],
          config: { image: "x", metadata: { k: "v" }, env: { É: "ü" } },
        });
        assert.equal(await store.insert(inserting(machine), 10), "inserted");
        assert.deepEqual(await store.find("m1"), machine);
        assert.equal(await store.find("m2"), undefined);
        assert.equal(await store.insert(inserting(machine), 10), "exists");
      }));

    test("a name is unique in its app until its machine is destroyed; the limit and the app are checked", () =>
      withStore(async (store) => {
        const one = aMachine({ id: "m1", name: "web" });
        assert.equal(await store.insert(inserting(one), 2), "inserted");
        assert.equal(await store.insert(inserting(aMachine({ id: "m2", name: "web" })), 2), "name_taken");
        assert.equal(await store.insert(inserting(aMachine({ id: "m2", name: "web", app_id: "a2" })), 2), "inserted");
        assert.equal(await store.insert(inserting(aMachine({ id: "m3", name: "api" })), 2), "limit");
        assert.equal(await store.insert(inserting(aMachine({ id: "m3", app_id: "gone" })), 2), "no_app");
        const destroyed = { ...one, state: "destroyed" as const, revision: 2 };
        assert.equal(await store.commit(change(destroyed, { events: [event("e9", "destroyed")] })), "done");
        assert.equal(await store.insert(inserting(aMachine({ id: "m4", name: "web" })), 2), "inserted");
        assert.equal(await store.count("a1"), 1);
        assert.deepEqual(Object.fromEntries(await store.counts({ org_id: one.org_id })), { a1: 1, a2: 1 });
        assert.equal((await store.counts({ org_id: "none" })).size, 0);
      }));

    test("of many concurrent creates no more succeed than the limit allows, whatever is counted meanwhile", () =>
      withStore(async (store) => {
        const make = (id: string) => store.insert(inserting(aMachine({ id, name: id })), 7);
        const inserted = async (ids: string[]): Promise<number> =>
          (await Promise.all(ids.map(make))).filter((one) => one === "inserted").length;
        const some = (from: number): string[] => Array.from({ length: 12 }, (_, index) => `m${from + index}`);
        const [first] = await Promise.all([inserted(some(0)), store.foldCounts(), store.foldCounts()]);
        assert.equal(first, 7);
        await Promise.all([store.foldCounts(), store.foldCounts()]);
        assert.equal(await make("m90"), "limit");
        const [one] = await store.list("a1", {});
        const machine = await store.find(one?.id ?? "");
        assert.ok(machine);
        const destroyed = { ...machine, state: "destroyed" as const, revision: machine.revision + 1 };
        await store.commit(change(destroyed, { events: [event("e9", "destroyed")] }));
        assert.equal(await inserted(some(20)), 1, "one has made room");
        await store.foldCounts();
        assert.equal(await make("m91"), "limit");
      }));

    test("of many changes based on the same revision one is written", () =>
      withStore(async (store) => {
        const machine = aMachine({ id: "m1" });
        await store.insert(inserting(machine), 10);
        const results = await Promise.all(
          Array.from({ length: 20 }, (_, i) =>
            store.commit(change({ ...machine, revision: 2, instance_id: machine.instance_id, restarts: i })),
          ),
        );
        assert.equal(results.filter((result) => result === "done").length, 1);
        assert.equal(results.filter((result) => result === "conflict").length, 19);
        assert.equal((await store.find("m1"))?.restarts, results.indexOf("done"));
      }));

    test("operations are added, begun and removed with their change, and read together with it", () =>
      withStore(async (store) => {
        const machine = aMachine({ id: "m1" });
        const add_operations = [operation(), operation({ id: "op2", position: 2, kind: "stop", not_before: 12 })];
        await store.insert(inserting({ ...machine, pending: 2 }, { add_operations }), 10);
        assert.deepEqual(await store.unfinished(["0001", "0002"]), ["m1"]);
        assert.deepEqual(await store.unfinished(["0002"]), []);
        const put_operations = [operation({ begun: true, payload: { source: "user", reason: "x" } })];
        const next = { ...machine, revision: 2, pending: 1 };
        await store.commit(change(next, { put_operations, remove_operations: ["op2"] }));
        assert.deepEqual(await store.findWork("m1"), { machine: next, operations: put_operations });
        // A change that comes too late takes nothing with it.
        await store.commit(change(next, { remove_operations: ["op1"] }));
        assert.equal((await store.findWork("m1"))?.operations.length, 1);
        assert.equal(await store.findWork("m2"), undefined);
      }));

    test("a host's capacity is reserved and released with the change, and never exceeded", () =>
      withStore(async (store) => {
        const small = (id: string): Machine => aMachine({ id, name: id, host_id: "0002", reserved: true });
        const reserve = { cpus: 1, memory_mb: 256 };
        const results = await Promise.all(
          ["m1", "m2", "m3", "m4"].map((id) => store.insert(inserting(small(id), { reserve }), 10)),
        );
        assert.deepEqual(results.toSorted(), ["capacity", "capacity", "inserted", "inserted"]);
        const [shown] = await store.list("a1", {});
        const first = await store.find(shown?.id ?? "");
        assert.ok(first);
        const back = change({ ...first, revision: 2, reserved: false }, { reserve: { cpus: -1, memory_mb: -256 } });
        assert.equal(await store.commit(back), "done");
        assert.equal(await store.insert(inserting(small("m5"), { reserve }), 10), "inserted");
        const other = change({ ...first, revision: 3, reserved: true }, { reserve });
        assert.equal(await store.commit(other), "capacity");
        assert.equal((await store.find(first.id))?.revision, 2, "nothing of it was written");
      }));

    test("fence exemptions are recorded under a valid lease only, and exempt machines are not moved", () =>
      withStore(async (store) => {
        const tenure = { id: "0002", node_id: "", epoch: 0 };
        const on = (id: string, more: Partial<Machine> = {}): Machine =>
          aMachine({ id, name: id, host_id: "0002", boot: `${id}-b`, state: "started", ...more });
        const move = { image: "x", metadata: { hangar_on_host_loss: "move" } };
        const stands_by = { image: "x", standbys: ["m3"] };
        for (const machine of [
          on("m1"),
          on("m2", { config: move }),
          on("m3"),
          on("m4", { boot: null, state: "stopped" }),
          aMachine({ id: "m5", name: "m5", config: stands_by }),
        ])
          assert.equal(await store.insert(inserting(machine), 10), "inserted");
        assert.deepEqual(await store.misfenced("0002"), [{ id: "m1", boot: "m1-b", may_leave: false }]);
        const all = ["m1", "m2", "m3"].map((id) => ({ id, boot: `${id}-b` }));
        assert.deepEqual(await store.addExempt({ ...tenure, epoch: 7 }, all), [], "not in a tenure that is over");
        assert.deepEqual(await store.addExempt(tenure, [{ id: "m1", boot: "another" }]), [], "not of another boot");
        assert.deepEqual(await store.addExempt(tenure, all), ["m1"], "not what others may start");
        assert.deepEqual([await store.exempt("0002"), await store.misfenced("0002")], [["m1"], []]);
        // Its host is lost, and it may leave since then: the host does not know.
        const moved_from = { host_id: "0002", epoch: null, cpus: 0, memory_mb: 0 };
        const m1 = (await store.find("m1")) ?? assert.fail();
        const movable = { ...m1, config: move, revision: 2 };
        assert.equal(await store.commit(change(movable, { new_metadata: true })), "done");
        const away = { ...movable, host_id: "0001", revision: 3 };
        assert.equal(await store.commit(change(away, { moved_from: { ...moved_from, epoch: 0 } })), "unmoved");
        assert.deepEqual(await store.misfenced("0002"), [{ id: "m1", boot: "m1-b", may_leave: true }]);
        await store.removeExempt({ ...tenure, epoch: 7 }, ["m1"]);
        assert.deepEqual(await store.exempt("0002"), ["m1"], "not in a tenure that is over");
        await store.removeExempt(tenure, ["m1"]);
        assert.deepEqual([await store.exempt("0002"), await store.misfenced("0002")], [[], []]);
        // A machine that its host itself released is no longer the host's.
        const m3 = (await store.find("m3")) ?? assert.fail();
        await store.commit(change({ ...((await store.find("m5")) ?? assert.fail()), state: "destroyed", revision: 2 }));
        assert.deepEqual(await store.addExempt(tenure, [{ id: "m3", boot: "m3-b" }]), ["m3"]);
        assert.equal(await store.commit(change({ ...m3, host_id: "0001", revision: 2 }, { moved_from })), "done");
        assert.deepEqual(await store.exempt("0002"), []);
      }));

    test("lists are filtered by state, region and metadata, oldest first", () =>
      withStore(async (store) => {
        const rows = [
          "even low started ams",
          "odd low started fra",
          "even low started fra",
          "odd high started fra",
          "even high stopped fra",
          "odd high destroyed fra",
        ];
        for (const [i, row] of rows.entries()) {
          const [parity = "", half = "", state, region = ""] = row.split(" ");
          const config = { image: "x", metadata: { parity, half } };
          const change = {
            id: `m${i}`,
            name: `n${i}`,
            created_at: i,
            config,
            state: state as Machine["state"],
            region,
          };
          await store.insert(inserting(aMachine(change)), 10);
        }
        const ids = async (filter: Parameters<MachineStore["list"]>[1]): Promise<string> =>
          (await store.list("a1", filter)).map((machine) => machine.id.slice(1)).join("");
        assert.equal(await ids({}), "01234");
        assert.equal(await ids({ include_deleted: true }), "012345");
        assert.equal(await ids({ states: ["stopped", "destroyed"] }), "45");
        assert.equal(await ids({ region: "ams" }), "0");
        assert.equal(await ids({ metadata: [["parity", "even"]] }), "024");
        assert.equal(
          await ids({
            metadata: [
              ["parity", "even"],
              ["half", "high"],
            ],
            states: ["stopped"],
          }),
          "4",
        );
        assert.equal(await ids({ metadata: [["parity", "none"]] }), "");
        assert.equal(await ids({ page: { limit: 2 } }), "01");
        assert.equal(await ids({ page: { after: [1, "m1"], limit: 2 } }), "23");
        assert.equal(await ids({ page: { after: [1, "m"], limit: 1 } }), "1");
        assert.equal(await ids({ metadata: [["parity", "even"]], page: { after: [0, "m0"], limit: 9 } }), "24");
        assert.equal(await ids({ states: ["stopped"], page: { after: [4, "m4"], limit: 9 } }), "");
        assert.deepEqual(await store.list("a2", {}), []);
      }));

    test("changed metadata is found by its new value only", () =>
      withStore(async (store) => {
        const machine = aMachine({ id: "m1", config: { image: "x", metadata: { k: "old" } } });
        await store.insert(inserting(machine), 10);
        const after = { ...machine, revision: 2, config: { ...machine.config, metadata: { k: "new" } } };
        await store.commit(change(after, { new_metadata: true }));
        assert.equal((await store.list("a1", { metadata: [["k", "old"]] })).length, 0);
        assert.equal((await store.list("a1", { metadata: [["k", "new"]] })).length, 1);
        assert.equal((await store.versions("m1")).length, 1);
      }));

    test("the log of an organization returns every event once, in the order in which they become visible", () =>
      withStore(async (store) => {
        const ids = Array.from({ length: 24 }, (_, i) => `m${i}`);
        const before = await store.logEnd("o1");
        const published: string[] = [];
        let cursor = before;
        const read = async (): Promise<void> => {
          const { events } = await store.log({ org_id: "o1", after: cursor, limit: 5 });
          for (const { seq, machine_id } of events) {
            assert.ok(seq > cursor, "positions increase");
            cursor = seq;
            published.push(machine_id);
          }
        };
        const written = Promise.all(
          ids.map((id) => store.insert(inserting(aMachine({ id, name: id, app_id: id === "m7" ? "a2" : "a1" })), 99)),
        );
        while (published.length < ids.length) await read();
        await written;
        assert.deepEqual(
          [...published].sort(),
          [...ids].sort(),
          "a concurrent reader misses no event and gets none twice",
        );
        assert.ok((await store.logEnd("o1")) >= cursor);
        const { events: all, behind } = await store.log({ org_id: "o1", after: 0, limit: 100 });
        assert.deepEqual(
          all.map(({ machine_id }) => machine_id),
          published,
        );
        assert.equal(behind, false);
        assert.equal((await store.log({ org_id: "o1", app_id: "a2", after: 0, limit: 100 })).events.length, 1);
        const tail = await store.logTail({ org_id: "o1" }, 2);
        assert.deepEqual((await store.log({ org_id: "o1", after: tail, limit: 9 })).events, all.slice(-2));
        assert.equal(await store.logTail({ org_id: "o1" }, 24), 0);
        assert.deepEqual(await store.logTail({ org_id: "o1", app_id: "a2" }, 1), 0);
        assert.equal(await store.logTail({ org_id: "o1" }, 0), cursor);
        const one = await store.find("m0");
        assert.ok(one);
        await store.commit(
          change({ ...one, revision: 2 }, { events: [event("e1", "starting"), event("e2", "started")] }),
        );
        const own = await store.events("m0", { limit: 10 });
        assert.deepEqual(
          own.map(({ id }) => id),
          ["e2", "e1", "m0-e0"],
        );
        const seq = await store.eventSeq("m0", "e1");
        assert.deepEqual(
          (await store.events("m0", { after: seq ?? 0, limit: 10 })).map(({ id }) => id),
          ["e2"],
        );
        assert.equal(await store.eventSeq("m1", "e1"), undefined);
      }));

    test("an organization's machines are listed in pages by their last change", () =>
      withStore(async (store) => {
        for (const [id, updated_at] of [
          ["m3", 5],
          ["m1", 7],
          ["m2", 7],
          ["m4", 9],
        ] as const) {
          await store.insert(inserting(aMachine({ id, name: id, updated_at })), 10);
        }
        const page = async (
          after?: readonly [number, string],
          filter: Partial<OrgListFilter> = {},
        ): Promise<string[]> =>
          (await store.listOrg("o1", { ...filter, page: { limit: 2, ...(after ? { after } : {}) } })).map(
            ({ id }) => id,
          );
        assert.deepEqual(await page(), ["m3", "m1"]);
        assert.deepEqual(await page([7, "m1"]), ["m2", "m4"]);
        for (const there of [{ region: "local" }, { host_ids: ["ffff", aMachine().host_id] }])
          assert.deepEqual(await page([7, "m1"], there), ["m2", "m4"]);
        for (const none of [{ states: ["stopped"] }, { region: "elsewhere" }, { host_ids: ["ffff"] }, { host_ids: [] }])
          assert.deepEqual(await page(undefined, none), []);
      }));

    test("versions are kept up to the limit; destroyed machines are pruned with everything they had", () =>
      withStore(async (store) => {
        let machine = aMachine({ id: "m1", updated_at: 1, config: { image: "x", standbys: ["m9"] } });
        await store.insert(inserting(machine), 10);
        assert.deepEqual(
          (await store.standbys("m9")).map(({ id }) => id),
          ["m1"],
        );
        for (let i = 1; i <= MACHINE_LIMITS.versions_kept + 3; i++) {
          machine = { ...machine, revision: i + 1, updated_at: i * 10, instance_id: `v${String(i).padStart(4, "0")}` };
          await store.commit(change(machine, { new_version: true }));
        }
        const versions = await store.versions("m1");
        assert.equal(versions.length, MACHINE_LIMITS.versions_kept);
        assert.equal(versions[0]?.instance_id, machine.instance_id);
        const destroyed = { ...machine, revision: machine.revision + 1, state: "destroyed" as const, updated_at: 2000 };
        await store.commit(change(destroyed, { events: [event("e9", "destroyed")] }));
        assert.equal(await store.purge(2000), 0);
        assert.equal(await store.purge(2001), 1);
        assert.equal(await store.find("m1"), undefined);
        assert.deepEqual(await store.events("m1", { limit: 5 }), []);
      }));

    test("live machines are those that run, are in transition, or are scheduled", () =>
      withStore(async (store) => {
        const rows: Partial<Machine>[] = [
          { boot: "b" },
          { deadline_at: 5 },
          { next_run_at: 9 },
          {},
          { boot: "b", host_id: "0002" },
        ];
        for (const [i, row] of rows.entries())
          await store.insert(inserting(aMachine({ id: `m${i}`, name: `n${i}`, ...row })), 10);
        const ids = async (hosts: string[]): Promise<string[]> => (await store.alive(hosts)).map(({ id }) => id).sort();
        assert.deepEqual(await ids(["0001"]), ["m0", "m1", "m2"]);
        assert.deepEqual(await ids(["0001", "0002"]), ["m0", "m1", "m2", "m4"]);
        assert.deepEqual(
          (await store.stateCounts({ app_id: "a1" })).map(({ host_id, machines }) => [host_id, machines]),
          [
            ["0001", 4],
            ["0002", 1],
          ],
        );
        assert.deepEqual(await store.stateCounts({ app_id: "another" }), []);
        assert.equal(await store.anyAlive("0002"), true);
        assert.equal(await store.anyAlive("0003"), false);
      }));
  });
}
