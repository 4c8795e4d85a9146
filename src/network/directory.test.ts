import assert from "node:assert/strict";
import { suite, test } from "node:test";
import { LocalBus } from "#core/bus.ts";
import { aMachine } from "#machines/fixtures.ts";
import { type MachineUpdate, topics } from "#machines/lifecycle/writer.ts";
import type { MachineStore } from "#machines/store.ts";
import type { Machine } from "#machines/types.ts";
import { Directory } from "./directory.ts";

/** A directory whose two reads of the store are answered by the test. */
function aDirectory(reads: { alive?: Promise<Machine[]>; list?: () => Promise<Machine[]> }) {
  const bus = new LocalBus<MachineUpdate>({ onError() {}, onFull: () => assert.fail() });
  // Only these two methods of the store are called.
  const store = { aliveAnywhere: () => reads.alive, list: () => reads.list?.() } as unknown as MachineStore;
  const say = (machine: Machine): void => bus.publish(topics.every, { machine, events: [] });
  return { directory: new Directory({ store, bus }), say };
}

const APP = { id: aMachine().app_id, name: "web", org_id: "o1" };

suite("machine directory", () => {
  test("an update received during the initial read wins over the row that was read", async () => {
    const alive = Promise.withResolvers<Machine[]>();
    const list = Promise.withResolvers<Machine[]>();
    const { directory, say } = aDirectory({ alive: alive.promise, list: () => list.promise });
    const starting = directory.start();
    say(aMachine({ id: "m1", state: "stopped" }));
    alive.resolve([aMachine({ id: "m1", state: "started" }), aMachine({ id: "m2", state: "started" })]);
    await starting;
    assert.deepEqual([directory.find("m1"), directory.find("m2")?.state], [undefined, "started"]);
    const loading = directory.load(APP);
    say(aMachine({ id: "m3", state: "destroyed" }));
    list.resolve([aMachine({ id: "m3", state: "stopped" }), aMachine({ id: "m4", state: "stopped" })]);
    await loading;
    assert.deepEqual([directory.find("m3"), directory.find("m4")?.state], [undefined, "stopped"]);
  });

  test("an app that could not be read is read again the next time", async () => {
    let tries = 0;
    const list = async (): Promise<Machine[]> => {
      if (tries++ === 0) throw new Error("the store is away");
      return [aMachine({ id: "m1", state: "stopped" })];
    };
    const { directory } = aDirectory({ list });
    await assert.rejects(directory.load(APP), /away/);
    await directory.load(APP);
    assert.equal(directory.find("m1")?.state, "stopped");
  });
});
