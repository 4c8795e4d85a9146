/** Machines that are to leave their host while no other has room: they wait, say why, and go when there is some. */
import assert from "node:assert/strict";
import { suite, test } from "node:test";
import { MACHINE_LIMITS } from "./limits.ts";
import { waitingReason } from "./outcomes.ts";
import { OWNER, Rig } from "./rig-fixtures.ts";
import type { Machine, MachineConfig } from "./types.ts";

const [HERE, THERE] = ["000a", "000b"];
const host = (id: string) => ({ id, region: "local", zone: id, cpus: 1, memory_mb: 512 });
const MOVES = { hangar_on_host_loss: "move" };

/** Two hosts with room for one machine each, and one on each. */
async function full(config: Partial<MachineConfig> = {}) {
  const rig = await Rig.open({ hosts: [host(HERE), host(THERE)] });
  const wish = { config: { image: "web:1", metadata: MOVES, ...config } };
  const [one, two] = [
    await rig.room.machines.create(OWNER, wish, rig.asker()),
    await rig.room.machines.create(OWNER, wish, rig.asker()),
  ];
  await rig.settle();
  const [here, there] = one.host_id === HERE ? [one, two] : [two, one];
  assert.deepEqual([here.host_id, there.host_id], [HERE, THERE]);
  const seen = async ({ id }: Machine) => {
    const machine = await rig.find(id);
    return { host: machine.host_id, state: machine.state, waiting: waitingReason(machine) };
  };
  const again = async (): Promise<void> => {
    await rig.clock.advance(MACHINE_LIMITS.relocate_again_ms);
    await rig.room.relocation.again((await rig.hosts.refresh()).filter(({ id }) => id === HERE));
    await rig.settle();
  };
  const makeRoom = async (): Promise<void> => {
    await rig.room.machines.stop(there.id, {}, rig.asker());
    await rig.settle();
  };
  return { rig, here, there, seen, again, makeRoom };
}

suite("machines that are to leave and find no room", () => {
  test("after the loss of their host they wait, say why once, and start elsewhere when there is room", async () => {
    const { rig, here, seen, again, makeRoom } = await full();
    await rig.hosts.setState(HERE, "failed");
    await rig.room.relocation.evacuate(await rig.hosts.find(HERE));
    const { host: at, state, waiting } = await seen(here);
    assert.deepEqual([at, state], [HERE, "started"]);
    assert.match(waiting ?? "", /1 cpus and 256 MB asked for in region local, free there: 0 cpus.* on 000b/);
    const { revision } = await rig.find(here.id);
    await again();
    assert.equal((await rig.find(here.id)).revision, revision, "it is said once");
    await makeRoom();
    await again();
    assert.deepEqual(await seen(here), { host: THERE, state: "started", waiting: undefined });
    await rig.close();
  });

  test("of a host that is emptied they run on, and move when there is room; not when it is wanted again", async () => {
    const { rig, here, there, seen, again, makeRoom } = await full();
    const { moving, stuck } = await rig.room.relocation.drain(HERE, rig.asker());
    assert.deepEqual([moving, stuck.map(({ id }) => id)], [[], [here.id]]);
    assert.match((await seen(here)).waiting ?? "", /insufficient resources/);
    assert.equal((await seen(here)).state, "started", "it runs on meanwhile");
    assert.equal((await rig.hosts.find(HERE)).draining, true);
    await makeRoom();
    await again();
    assert.deepEqual(await seen(here), { host: THERE, state: "started", waiting: undefined });
    assert.equal((await seen(there)).state, "stopped");
    await rig.hosts.setCordoned(HERE, false);
    assert.equal((await rig.hosts.find(HERE)).draining, false);
    await rig.close();
  });

  test("a host that fills up while a machine is on its way there: it comes up again where it was", async () => {
    const { rig, here, there, seen, makeRoom } = await full({ env: { SIM_STOP_MS: "2000" } });
    await makeRoom();
    await rig.room.relocation.move(here.id, { host_id: THERE }, rig.asker());
    assert.equal((await seen(here)).state, "restarting");
    await rig.room.machines.start(there.id, rig.asker());
    await rig.settle();
    const { host: at, state } = await seen(here);
    assert.deepEqual([at, state], [HERE, "started"]);
    assert.ok(
      (await rig.find(here.id)).events.some(({ type, status }) => type === "move" && status === "waiting"),
      "the log says why",
    );
    assert.deepEqual([(await seen(there)).host, (await seen(there)).state], [THERE, "started"]);
    const [used] = (await rig.hosts.refresh()).map(({ used_cpus }) => used_cpus);
    assert.equal(used, 1, "nothing is counted twice");
    await rig.close();
  });

  test("what runs on at a lost host without its lease starts nowhere else, though it may leave by now", async () => {
    const { rig, here, seen, makeRoom } = await full({ metadata: {} });
    await makeRoom();
    const { boot } = await rig.find(here.id);
    assert.deepEqual(
      await rig.store.addExempt({ id: HERE, node_id: "", epoch: 0 }, [{ id: here.id, boot: boot ?? "" }]),
      [here.id],
    );
    await rig.room.metadata.change(here.id, { pairs: MOVES, replace: false }, rig.asker());
    await rig.hosts.setState(HERE, "failed");
    const lost = await rig.hosts.find(HERE);
    await rig.room.relocation.evacuate(lost);
    await rig.settle();
    assert.deepEqual([(await seen(here)).host, (await seen(here)).state], [HERE, "started"]);
    // Whoever read that it is fenced, and writes when it no longer is.
    const exempt = rig.store.exempt.bind(rig.store);
    rig.store.exempt = async () => [];
    await rig.room.relocation.evacuate(lost);
    rig.store.exempt = exempt;
    await rig.settle();
    assert.deepEqual([(await seen(here)).host, (await seen(here)).state], [HERE, "started"]);
    await rig.hosts.setState(HERE, "ok");
    const { epoch } = await rig.hosts.find(HERE);
    await rig.store.removeExempt({ id: HERE, node_id: "", epoch }, [here.id]);
    await rig.hosts.setState(HERE, "failed");
    await rig.room.relocation.evacuate(await rig.hosts.find(HERE));
    await rig.settle();
    assert.deepEqual([(await seen(here)).host, (await seen(here)).state], [THERE, "started"]);
    await rig.close();
  });
});
