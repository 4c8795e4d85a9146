import assert from "node:assert/strict";
import { suite, test } from "node:test";
import { aMachine } from "../fixtures.ts";
import { MACHINE_LIMITS } from "../limits.ts";
import { change, inserting } from "../store.suite.ts";
import type { MachineStore } from "../store.ts";
import type { Machine } from "../types.ts";
import { EXIT_NOT_SEEN } from "./record.ts";
import type { Run } from "./types.ts";

const RUN: Run = {
  id: "r1",
  app_id: "a1",
  machine_id: aMachine().id,
  machine_name: "one",
  kind: "once",
  command: "migrate",
  image: "debian:1",
  instance_id: "i1",
  state: "running",
  started_by: "the owner",
  started_at: 1,
  ended_at: null,
  exit_code: null,
  signal: null,
  oom_killed: false,
  error: null,
};

/** What every MachineStore does with runs. `open` as for the other cases of the port. */
export function runStoreSuite(
  name: string,
  open: () => Promise<{ store: MachineStore; close(): Promise<void> }>,
  skip?: string,
): void {
  suite(`runs: ${name}`, { skip }, () => {
    async function withStore(work: (store: MachineStore) => Promise<void>): Promise<void> {
      const { store, close } = await open();
      try {
        await work(store);
      } finally {
        await close();
      }
    }

    test("runs begin and end with changes of their machine, at most one at a time, and stay when it is pruned", () =>
      withStore(async (store) => {
        const page = { limit: 10 };
        const machine = aMachine();
        const begun = (id: string, started_at: number) => ({ begin: { ...RUN, id, started_at } });
        await store.insert(inserting(machine, { runs: [begun("r1", 10)] }), 10);
        const next = (revision: number): Machine => ({ ...machine, revision });
        await store.commit(change(next(machine.revision + 1), { runs: [begun("r2", 20)] }));
        const states = async () => (await store.runs("a1", { page })).map(({ id, state, error }) => [id, state, error]);
        assert.deepEqual(await states(), [
          ["r2", "running", null],
          ["r1", "failed", EXIT_NOT_SEEN],
        ]);
        const end = {
          state: "failed",
          exit_code: 137,
          signal: 9,
          oom_killed: true,
          error: null,
          ended_at: 30,
        } as const;
        const skip = { ...RUN, id: "r3", started_at: 25, ended_at: 25, state: "skipped" } as const;
        await store.commit(change(next(machine.revision + 2), { runs: [{ skip }, { end }] }));
        assert.deepEqual((await store.run("a1", "r2"))?.run, { ...RUN, id: "r2", started_at: 20, ...end });
        assert.deepEqual(
          [(await store.run("a1", "r1"))?.next_at, (await store.run("a1", "r2"))?.next_at],
          [20, null],
          "one that was skipped wrote nothing",
        );
        assert.equal(await store.run("a2", "r1"), undefined);
        const ids = async (filter: object) => (await store.runs("a1", { page, ...filter })).map(({ id }) => id);
        assert.deepEqual(await ids({ states: ["skipped"] }), ["r3"]);
        assert.deepEqual(await ids({ machine_id: "another" }), []);
        assert.deepEqual(await ids({ page: { limit: 1, after: [25, "r3"] } }), ["r2"]);
        // The change is not written, and so its run is not.
        assert.equal(await store.commit(change(next(1), { runs: [begun("r4", 40)] })), "conflict");
        assert.equal(await store.run("a1", "r4"), undefined);
        const many = Array.from({ length: MACHINE_LIMITS.runs_per_app }, (_, at) => ({
          skip: { ...skip, id: `s${at}`, started_at: 100 + at },
        }));
        await store.commit(change(next(machine.revision + 3), { runs: many }));
        const stored = await store.runs("a1", { page: { limit: 2 * MACHINE_LIMITS.runs_per_app } });
        assert.equal(stored.length, MACHINE_LIMITS.runs_per_app);
        assert.ok(stored.every(({ id }) => id.startsWith("s")));
      }));
  });
}
