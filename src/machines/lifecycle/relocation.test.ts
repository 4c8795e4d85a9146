/** Machines that are to leave their host while no other has room: they wait, say why, and go when there is some. */
import assert from "node:assert/strict";
import { suite, test } from "node:test";
import { MACHINE_LIMITS } from "../limits.ts";
import { MachineHarness, OWNER } from "../machine-harness.fixtures.ts";
import type { Machine, MachineConfig } from "../types.ts";
import { waitingReason } from "./outcomes.ts";

const [HERE, THERE] = ["000a", "000b"];
const host = (id: string) => ({ id, region: "local", zone: id, cpus: 1, memory_mb: 512 });
const MOVES = { hangar_on_host_loss: "move" };

/** Two hosts with room for one machine each, and one on each. */
async function full(config: Partial<MachineConfig> = {}) {
  const harness = await MachineHarness.open({ hosts: [host(HERE), host(THERE)] });
  const input = { config: { image: "web:1", metadata: MOVES, ...config } };
  const [one, two] = [
    await harness.module.machines.create(OWNER, input, harness.actor()),
    await harness.module.machines.create(OWNER, input, harness.actor()),
  ];
  await harness.settle();
  const [here, there] = one.host_id === HERE ? [one, two] : [two, one];
  assert.deepEqual([here.host_id, there.host_id], [HERE, THERE]);
  const seen = async ({ id }: Machine) => {
    const machine = await harness.find(id);
    return { host: machine.host_id, state: machine.state, waiting: waitingReason(machine) };
  };
  const again = async (): Promise<void> => {
    await harness.clock.advance(MACHINE_LIMITS.relocate_again_ms);
    await harness.module.relocation.again((await harness.hosts.refresh()).filter(({ id }) => id === HERE));
    await harness.settle();
  };
  const makeRoom = async (): Promise<void> => {
    await harness.module.machines.stop(there.id, {}, harness.actor());
    await harness.settle();
  };
  return { harness, here, there, seen, again, makeRoom };
}

suite("machines that must move while no host has room", () => {
  test("machines of a lost host wait, report why once, and start elsewhere when there is room", async () => {
    const { harness, here, seen, again, makeRoom } = await full();
    await harness.hosts.setState(HERE, "failed");
    await harness.module.relocation.evacuate(await harness.hosts.find(HERE));
    const { host: at, state, waiting } = await seen(here);
    assert.deepEqual([at, state], [HERE, "started"]);
    assert.match(waiting ?? "", /1 cpus and 256 MB requested in region local, free there: 0 cpus.* on 000b/);
    const { revision } = await harness.find(here.id);
    await again();
    assert.equal((await harness.find(here.id)).revision, revision, "it is said once");
    await makeRoom();
    await again();
    assert.deepEqual(await seen(here), { host: THERE, state: "started", waiting: undefined });
    await harness.close();
  });

  test("machines of a drained host keep running and move when there is room, not after undrain", async () => {
    const { harness, here, there, seen, again, makeRoom } = await full();
    const { moving, stuck } = await harness.module.relocation.drain(HERE, harness.actor());
    assert.deepEqual([moving, stuck.map(({ id }) => id)], [[], [here.id]]);
    assert.match((await seen(here)).waiting ?? "", /insufficient resources/);
    assert.equal((await seen(here)).state, "started", "it runs on meanwhile");
    assert.equal((await harness.hosts.find(HERE)).draining, true);
    await makeRoom();
    await again();
    assert.deepEqual(await seen(here), { host: THERE, state: "started", waiting: undefined });
    assert.equal((await seen(there)).state, "stopped");
    await harness.hosts.setCordoned(HERE, false);
    assert.equal((await harness.hosts.find(HERE)).draining, false);
    await harness.close();
  });

  test("a machine whose destination fills up during the move starts again where it was", async () => {
    const { harness, here, there, seen, makeRoom } = await full({ env: { SIM_STOP_MS: "2000" } });
    await makeRoom();
    await harness.module.relocation.move(here.id, { host_id: THERE }, harness.actor());
    assert.equal((await seen(here)).state, "restarting");
    await harness.module.machines.start(there.id, harness.actor());
    await harness.settle();
    const { host: at, state } = await seen(here);
    assert.deepEqual([at, state], [HERE, "started"]);
    assert.ok(
      (await harness.find(here.id)).events.some(({ type, status }) => type === "move" && status === "waiting"),
      "the log says why",
    );
    assert.deepEqual([(await seen(there)).host, (await seen(there)).state], [THERE, "started"]);
    const [used] = (await harness.hosts.refresh()).map(({ used_cpus }) => used_cpus);
    assert.equal(used, 1, "nothing is counted twice");
    await harness.close();
  });

  test("a machine exempt from the fence is not moved from a lost host, even if its config now allows it", async () => {
    const { harness, here, seen, makeRoom } = await full({ metadata: {} });
    await makeRoom();
    const { boot } = await harness.find(here.id);
    assert.deepEqual(
      await harness.store.addExempt({ id: HERE, node_id: "", epoch: 0 }, [{ id: here.id, boot: boot ?? "" }]),
      [here.id],
    );
    await harness.module.metadata.change(here.id, { pairs: MOVES, replace: false }, harness.actor());
    await harness.hosts.setState(HERE, "failed");
    const lost = await harness.hosts.find(HERE);
    await harness.module.relocation.evacuate(lost);
    await harness.settle();
    assert.deepEqual([(await seen(here)).host, (await seen(here)).state], [HERE, "started"]);
    // A writer that read "fenced" and writes when the machine no longer is.
    const exempt = harness.store.exempt.bind(harness.store);
    harness.store.exempt = async () => [];
    await harness.module.relocation.evacuate(lost);
    harness.store.exempt = exempt;
    await harness.settle();
    assert.deepEqual([(await seen(here)).host, (await seen(here)).state], [HERE, "started"]);
    await harness.hosts.setState(HERE, "ok");
    const { epoch } = await harness.hosts.find(HERE);
    await harness.store.removeExempt({ id: HERE, node_id: "", epoch }, [here.id]);
    await harness.hosts.setState(HERE, "failed");
    await harness.module.relocation.evacuate(await harness.hosts.find(HERE));
    await harness.settle();
    assert.deepEqual([(await seen(here)).host, (await seen(here)).state], [THERE, "started"]);
    await harness.close();
  });
});
