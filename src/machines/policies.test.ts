/** What machines do by themselves: restart, destroy themselves, keep a schedule, stand by, fail in time. */
import assert from "node:assert/strict";
import { suite, test } from "node:test";
import { aVolume } from "#volumes/fixtures.ts";
import { MACHINE_LIMITS } from "./limits.ts";
import { OWNER, Rig } from "./rig-fixtures.ts";
import { nextRun } from "./schedule.ts";
import { DEADLINES_MS } from "./states.ts";
import type { MachineConfig } from "./types.ts";

const HOUR = 3_600_000;
const failing = { exit_code: 3, signal: -1, oom_killed: false, exited_at: 0 };

async function started(config: Partial<MachineConfig> = {}) {
  const rig = await Rig.open();
  const { id } = await rig.create(config);
  await rig.settle();
  const crash = async (exit_code = 3): Promise<void> => {
    assert.ok(rig.world.crash(id, { ...failing, exit_code, exited_at: rig.clock.now() }), "it was running");
    await rig.settle();
  };
  return { rig, id, crash, state: async () => (await rig.find(id)).state };
}

suite("restart policy", () => {
  test("the default restarts a failure ten times with growing pauses, and leaves a clean exit down", async () => {
    const { rig, id, crash, state } = await started();
    for (let i = 0; i < MACHINE_LIMITS.restart_retries; i++) {
      await crash();
      assert.equal(await state(), "started", `after crash ${i + 1}`);
    }
    await crash();
    assert.equal(await state(), "stopped");
    const exits = (await rig.store.events(id, { limit: 1000 })).filter(({ type }) => type === "exit").reverse();
    assert.deepEqual(
      exits.map(({ request }) => [request?.restart_count, request?.exit_event?.restarting]),
      Array.from({ length: 11 }, (_, i) => [i, i < 10]),
    );
    assert.equal(exits[0]?.request?.exit_event?.exit_code, 3);
    await rig.room.machines.start(id, rig.asker());
    await rig.settle();
    await crash(0);
    assert.equal(await state(), "stopped");
    await rig.close();
  });

  test("no: stays down; always: comes back from a clean exit too; max_retries is heeded", async () => {
    const down = await started({ restart: { policy: "no" } });
    await down.crash();
    assert.equal(await down.state(), "stopped");
    const always = await started({ restart: { policy: "always" } });
    for (let i = 0; i < 15; i++) await always.crash(0);
    assert.equal(await always.state(), "started");
    const twice = await started({ restart: { policy: "on-failure", max_retries: 2 } });
    for (let i = 0; i < 3; i++) await twice.crash();
    assert.equal(await twice.state(), "stopped");
    for (const { rig } of [down, always, twice]) await rig.close();
  });

  test("a machine that ran long enough is counted from zero again", async () => {
    const { rig, crash, state } = await started({ restart: { policy: "on-failure", max_retries: 1 } });
    for (let i = 0; i < 4; i++) {
      await rig.clock.advance(MACHINE_LIMITS.restart_window_ms + 1);
      await crash();
      assert.equal(await state(), "started");
    }
    await rig.close();
  });

  test("a restart that is put off gives way to a stop, and comes at once for a start", async () => {
    const { rig, id } = await started();
    const fall = async (): Promise<void> => {
      rig.world.crash(id, { ...failing, exited_at: rig.clock.now() });
      while ((await rig.find(id)).state !== "restarting") await new Promise((resolve) => setImmediate(resolve));
    };
    await fall();
    await rig.room.machines.stop(id, {}, rig.asker());
    await rig.settle();
    assert.equal((await rig.find(id)).state, "stopped");
    await rig.room.machines.start(id, rig.asker());
    await rig.settle();
    await fall();
    const before = rig.clock.monotonic();
    await rig.room.machines.start(id, rig.asker());
    await rig.settle();
    assert.equal((await rig.find(id)).state, "started");
    assert.ok(rig.clock.monotonic() - before < 1000);
    await rig.close();
  });
});

suite("machines that look after themselves", () => {
  test("auto_destroy: gone when it is done, not while the policy brings it back", async () => {
    const { rig, id, crash, state } = await started({
      auto_destroy: true,
      restart: { policy: "on-failure", max_retries: 1 },
    });
    await crash();
    assert.equal(await state(), "started");
    await crash(0);
    assert.equal(await state(), "destroyed");
    assert.equal(rig.world.boots.has(id), false);
    assert.ok((await rig.find(id)).events.some(({ type, request }) => type === "exit" && request?.exit_event));
    await rig.close();
  });

  test("a schedule counts from creation; what was missed while we were away is one run", async () => {
    const { rig, id, state } = await started({ schedule: "hourly", env: { SIM_RUN_MS: "1000" } });
    await rig.clock.advance(2000);
    await rig.settle();
    assert.equal(await state(), "stopped");
    const runsSince = async () =>
      (await rig.store.events(id, { limit: 1000 })).filter(
        ({ source, status }) => source === "schedule" && status === "starting",
      ).length;
    await rig.clock.advance(3 * HOUR);
    await rig.settle();
    assert.equal(await runsSince(), 3);
    rig.kill();
    await rig.clock.advance(5 * HOUR);
    await rig.boot();
    await rig.clock.advance(2000);
    await rig.settle();
    assert.equal(await runsSince(), 4);
    const { created_at, next_run_at } = await rig.find(id);
    assert.equal(((next_run_at ?? 0) - created_at) % HOUR, 0);
    await rig.close();
  });

  test("months end where they end", () => {
    const at = (text: string): number => Date.parse(`${text}T10:00:00Z`);
    assert.equal(nextRun("monthly", at("2024-01-31"), at("2024-01-31")), at("2024-02-29"));
    assert.equal(nextRun("monthly", at("2024-01-31"), at("2024-02-29")), at("2024-03-31"));
    assert.equal(nextRun("weekly", at("2024-01-01"), at("2024-01-20")), at("2024-01-22"));
  });

  test("who stands by starts when the host of the other fails, and the failed host's machines say so", async () => {
    const host = (id: string) => ({ id, region: "local", zone: id, cpus: 8, memory_mb: 8192 });
    const rig = await Rig.open({ hosts: [host("000a"), host("000b")] });
    const main = await rig.create();
    let standby = await rig.create({ standbys: [main.id] }, { skip_launch: true });
    if (standby.host_id === main.host_id)
      standby = await rig.create({ standbys: [main.id], guest: { cpus: 1 } }, { skip_launch: true });
    assert.notEqual(standby.host_id, main.host_id, "placed where most is free");
    await rig.settle();
    await rig.hosts.setState(main.host_id, "failed");
    await rig.room.hostState(main.host_id, "failed");
    await rig.settle();
    const { state, events } = await rig.find(standby.id);
    assert.deepEqual([state, events[1]?.source], ["started", "standby"]);
    await assert.rejects(rig.room.machines.stop(main.id, {}, rig.asker()), { code: "host_unreachable" });
    await rig.hosts.setState(main.host_id, "ok");
    await rig.room.machines.stop(main.id, {}, rig.asker());
    await rig.close();
  });

  test("the time of a start counts from when its image is there, however long that takes to come", async () => {
    const rig = await Rig.open();
    const limit = DEADLINES_MS.starting ?? 0;
    const env = { SIM_PULL_MS: String(2 * limit), SIM_BOOT_MS: String(limit - 1000) };
    const { id } = await rig.create({ env });
    await rig.clock.advance(2.5 * limit);
    assert.equal((await rig.find(id)).state, "starting");
    await rig.clock.advance(limit);
    await rig.settle();
    assert.equal((await rig.find(id)).state, "started");
    const late = await rig.create({ env: { ...env, SIM_BOOT_MS: String(2 * limit) } });
    await rig.clock.advance(5 * limit);
    await rig.settle();
    assert.equal((await rig.find(late.id)).state, "failed");
    await rig.close();
  });

  test("a start that hangs is failed after its time, says why, and can be tried again (M5)", async () => {
    let hang = true;
    const rig = await Rig.open({
      fault: (call) => (call === "start" && hang ? new Promise(() => {}) : Promise.resolve()),
    });
    const { id } = await rig.create();
    await rig.clock.advance(200_000);
    await rig.settle();
    const { state, events } = await rig.find(id);
    assert.deepEqual([state, events[0]?.type], ["failed", "failed"]);
    assert.match(events[0]?.request?.error ?? "", /starting took longer than/);
    hang = false;
    await rig.room.machines.start(id, rig.asker());
    await rig.settle();
    assert.equal((await rig.find(id)).state, "started");
    await rig.close();
  });

  test("a boot that fails is told with its reason; word of an exit that got lost is found out", async () => {
    const { rig, id, state } = await started({ restart: { policy: "no" }, env: { SIM_FAIL: "image not found" } });
    assert.equal(await state(), "failed");
    assert.equal((await rig.find(id)).events[0]?.request?.error, "image not found");
    const other = await started({ restart: { policy: "no" } });
    other.rig.world.crash(other.id, { ...failing, exited_at: other.rig.clock.now() }, "lost");
    await other.rig.settle();
    assert.equal(await other.state(), "started");
    await other.rig.clock.advance(MACHINE_LIMITS.reconcile_ms + 1000);
    await other.rig.settle();
    assert.equal(await other.state(), "stopped");
    for (const one of [rig, other.rig]) await one.close();
  });
});

suite("machines with a volume", () => {
  test("go where it is; one that is elsewhere, taken, or another app's is refused with both places", async () => {
    const host = (id: string, region: string) => ({ id, region, zone: id, cpus: 1, memory_mb: 512 });
    const place = {
      id: "vol_1",
      app_id: "a1",
      name: "data",
      size_gb: 1,
      encrypted: true,
      region: "fra",
      host_id: "000b",
      attached_machine_id: null,
    };
    const rig = await Rig.open({
      hosts: [host("000a", "ams"), host("000b", "fra")],
      volumes: {
        locate: async (id) =>
          ({ vol_1: place, vol_2: { ...place, attached_machine_id: "m9" }, vol_3: { ...place, app_id: "a2" } })[id],
        named: async () => [place],
      },
    });
    await rig.addVolume(aVolume({ region: "fra", host_id: "000b" }));
    const create = (volume: string, region?: string) =>
      rig.room.machines.create(
        OWNER,
        { config: { image: "x", mounts: [{ volume, path: "/data" }] }, region },
        rig.asker(),
      );
    assert.equal((await create("vol_1")).host_id, "000b");
    await assert.rejects(create("vol_1", "ams"), {
      code: "volume_elsewhere",
      message: /000b in region fra, not in ams/,
    });
    await assert.rejects(create("vol_1"), { code: "insufficient_capacity", message: /on host 000b/ });
    await assert.rejects(create("vol_2"), { code: "volume_in_use", message: /m9/ });
    await assert.rejects(create("vol_3"), /not a volume of this app/);
    await rig.close();
  });
});
