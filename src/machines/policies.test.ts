/** What machines do by themselves: restart, destroy themselves, keep a schedule, stand by, fail in time. */
import assert from "node:assert/strict";
import { suite, test } from "node:test";
import { aVolume } from "#volumes/fixtures.ts";
import { nextRun } from "./lifecycle/schedule.ts";
import { DEADLINES_MS } from "./lifecycle/states.ts";
import { MACHINE_LIMITS } from "./limits.ts";
import { MachineHarness, OWNER } from "./machine-harness.fixtures.ts";
import type { MachineConfig } from "./types.ts";

const HOUR = 3_600_000;
const failing = { exit_code: 3, signal: -1, oom_killed: false, exited_at: 0 };

async function started(config: Partial<MachineConfig> = {}) {
  const harness = await MachineHarness.open();
  const { id } = await harness.create(config);
  await harness.settle();
  const crash = async (exit_code = 3): Promise<void> => {
    assert.ok(harness.world.crash(id, { ...failing, exit_code, exited_at: harness.clock.now() }), "it was running");
    await harness.settle();
  };
  return { harness, id, crash, state: async () => (await harness.find(id)).state };
}

suite("restart policy", () => {
  test("the default policy restarts a failed machine ten times with growing delays, and not after exit 0", async () => {
    const { harness, id, crash, state } = await started();
    for (let i = 0; i < MACHINE_LIMITS.restart_retries; i++) {
      await crash();
      assert.equal(await state(), "started", `after crash ${i + 1}`);
    }
    await crash();
    assert.equal(await state(), "stopped");
    const exits = (await harness.store.events(id, { limit: 1000 })).filter(({ type }) => type === "exit").reverse();
    assert.deepEqual(
      exits.map(({ request }) => [request?.restart_count, request?.exit_event?.restarting]),
      Array.from({ length: 11 }, (_, i) => [i, i < 10]),
    );
    assert.equal(exits[0]?.request?.exit_event?.exit_code, 3);
    await harness.module.machines.start(id, harness.actor());
    await harness.settle();
    await crash(0);
    assert.equal(await state(), "stopped");
    await harness.close();
  });

  test("policy no never restarts, always restarts after exit 0 too, and max_retries is respected", async () => {
    const down = await started({ restart: { policy: "no" } });
    await down.crash();
    assert.equal(await down.state(), "stopped");
    const always = await started({ restart: { policy: "always" } });
    for (let i = 0; i < 15; i++) await always.crash(0);
    assert.equal(await always.state(), "started");
    const twice = await started({ restart: { policy: "on-failure", max_retries: 2 } });
    for (let i = 0; i < 3; i++) await twice.crash();
    assert.equal(await twice.state(), "stopped");
    for (const { harness } of [down, always, twice]) await harness.close();
  });

  test("the retry count starts again after a machine ran long enough", async () => {
    const { harness, crash, state } = await started({ restart: { policy: "on-failure", max_retries: 1 } });
    for (let i = 0; i < 4; i++) {
      await harness.clock.advance(MACHINE_LIMITS.restart_window_ms + 1);
      await crash();
      assert.equal(await state(), "started");
    }
    await harness.close();
  });

  test("a delayed restart is cancelled by a stop and brought forward by a start", async () => {
    const { harness, id } = await started();
    const fall = async (): Promise<void> => {
      harness.world.crash(id, { ...failing, exited_at: harness.clock.now() });
      while ((await harness.find(id)).state !== "restarting") await new Promise((resolve) => setImmediate(resolve));
    };
    await fall();
    await harness.module.machines.stop(id, {}, harness.actor());
    await harness.settle();
    assert.equal((await harness.find(id)).state, "stopped");
    await harness.module.machines.start(id, harness.actor());
    await harness.settle();
    await fall();
    const before = harness.clock.monotonic();
    await harness.module.machines.start(id, harness.actor());
    await harness.settle();
    assert.equal((await harness.find(id)).state, "started");
    assert.ok(harness.clock.monotonic() - before < 1000);
    await harness.close();
  });
});

suite("auto_destroy, schedules, standbys and start timeouts", () => {
  test("an auto_destroy machine is destroyed when it ends, but not while its restart policy applies", async () => {
    const { harness, id, crash, state } = await started({
      auto_destroy: true,
      restart: { policy: "on-failure", max_retries: 1 },
    });
    await crash();
    assert.equal(await state(), "started");
    await crash(0);
    assert.equal(await state(), "destroyed");
    assert.equal(harness.world.boots.has(id), false);
    assert.ok((await harness.find(id)).events.some(({ type, request }) => type === "exit" && request?.exit_event));
    await harness.close();
  });

  test("a schedule counts from creation; runs missed during downtime become one run", async () => {
    const { harness, id, state } = await started({ schedule: "hourly", env: { SIM_RUN_MS: "1000" } });
    await harness.clock.advance(2000);
    await harness.settle();
    assert.equal(await state(), "stopped");
    const runsSince = async () =>
      (await harness.store.events(id, { limit: 1000 })).filter(
        ({ source, status }) => source === "schedule" && status === "starting",
      ).length;
    await harness.clock.advance(3 * HOUR);
    await harness.settle();
    assert.equal(await runsSince(), 3);
    harness.kill();
    await harness.clock.advance(5 * HOUR);
    await harness.boot();
    await harness.clock.advance(2000);
    await harness.settle();
    assert.equal(await runsSince(), 4);
    const { created_at, next_run_at } = await harness.find(id);
    assert.equal(((next_run_at ?? 0) - created_at) % HOUR, 0);
    await harness.close();
  });

  test("each scheduled start is recorded as a run; one due while the former runs is skipped, and said to be", async () => {
    const { harness, id } = await started({ schedule: "hourly", restart: { policy: "no" } });
    const runs = async () => {
      const found = await harness.store.runs(OWNER.app_id, { page: { limit: 100 } });
      return found.map(({ kind, state, exit_code, started_by }) => [kind, state, exit_code, started_by]);
    };
    await harness.clock.advance(HOUR);
    await harness.settle();
    const first = ["schedule", "running", null, "tester"];
    const skipped = ["schedule", "skipped", null, "schedule"];
    assert.deepEqual(await runs(), [skipped, first]);
    harness.world.crash(id, { ...failing, exit_code: 3, exited_at: harness.clock.now() });
    await harness.settle();
    await harness.clock.advance(HOUR);
    await harness.settle();
    const failed = ["schedule", "failed", 3, "tester"];
    assert.deepEqual(await runs(), [["schedule", "running", null, "schedule"], skipped, failed]);
    // No exit notice was sent for this boot.
    harness.world.boots.clear();
    harness.kill();
    await harness.boot();
    await harness.settle();
    assert.deepEqual((await runs())[0], ["schedule", "failed", null, "schedule"]);
    await harness.close();
  });

  test("a monthly schedule respects the length of each month", () => {
    const at = (text: string): number => Date.parse(`${text}T10:00:00Z`);
    assert.equal(nextRun("monthly", at("2024-01-31"), at("2024-01-31")), at("2024-02-29"));
    assert.equal(nextRun("monthly", at("2024-01-31"), at("2024-02-29")), at("2024-03-31"));
    assert.equal(nextRun("weekly", at("2024-01-01"), at("2024-01-20")), at("2024-01-22"));
  });

  test("a standby starts when the other machine's host fails, and machines of the failed host report it", async () => {
    const host = (id: string) => ({ id, region: "local", zone: id, cpus: 8, memory_mb: 8192 });
    const harness = await MachineHarness.open({ hosts: [host("000a"), host("000b")] });
    const main = await harness.create();
    let standby = await harness.create({ standbys: [main.id] }, { skip_launch: true });
    if (standby.host_id === main.host_id)
      standby = await harness.create({ standbys: [main.id], guest: { cpus: 1 } }, { skip_launch: true });
    assert.notEqual(standby.host_id, main.host_id, "placed where most is free");
    await harness.settle();
    await harness.hosts.setState(main.host_id, "failed");
    await harness.module.hostState(main.host_id, "failed");
    await harness.settle();
    const { state, events } = await harness.find(standby.id);
    assert.deepEqual([state, events[1]?.source], ["started", "standby"]);
    await assert.rejects(harness.module.machines.stop(main.id, {}, harness.actor()), { code: "host_unreachable" });
    await harness.hosts.setState(main.host_id, "ok");
    await harness.module.machines.stop(main.id, {}, harness.actor());
    await harness.close();
  });

  test("the start deadline counts from the end of the image pull", async () => {
    const harness = await MachineHarness.open();
    const limit = DEADLINES_MS.starting ?? 0;
    const env = { SIM_PULL_MS: String(2 * limit), SIM_BOOT_MS: String(limit - 1000) };
    const { id } = await harness.create({ env });
    await harness.clock.advance(2.5 * limit);
    assert.equal((await harness.find(id)).state, "starting");
    await harness.clock.advance(limit);
    await harness.settle();
    assert.equal((await harness.find(id)).state, "started");
    const late = await harness.create({ env: { ...env, SIM_BOOT_MS: String(2 * limit) } });
    await harness.clock.advance(5 * limit);
    await harness.settle();
    assert.equal((await harness.find(late.id)).state, "failed");
    await harness.close();
  });

  test("a start that hangs fails at its deadline with the reason, and can be retried (M5)", async () => {
    let hang = true;
    const harness = await MachineHarness.open({
      fault: (call) => (call === "start" && hang ? new Promise(() => {}) : Promise.resolve()),
    });
    const { id } = await harness.create();
    await harness.clock.advance(200_000);
    await harness.settle();
    const { state, events } = await harness.find(id);
    assert.deepEqual([state, events[0]?.type], ["failed", "failed"]);
    assert.match(events[0]?.request?.error ?? "", /starting took longer than/);
    hang = false;
    await harness.module.machines.start(id, harness.actor());
    await harness.settle();
    assert.equal((await harness.find(id)).state, "started");
    await harness.close();
  });

  test("a failed boot reports its reason; an exit without a notice is detected", async () => {
    const { harness, id, state } = await started({ restart: { policy: "no" }, env: { SIM_FAIL: "image not found" } });
    assert.equal(await state(), "failed");
    assert.equal((await harness.find(id)).events[0]?.request?.error, "image not found");
    const other = await started({ restart: { policy: "no" } });
    other.harness.world.crash(other.id, { ...failing, exited_at: other.harness.clock.now() }, "lost");
    await other.harness.settle();
    assert.equal(await other.state(), "started");
    await other.harness.clock.advance(MACHINE_LIMITS.reconcile_ms + 1000);
    await other.harness.settle();
    assert.equal(await other.state(), "stopped");
    for (const one of [harness, other.harness]) await one.close();
  });
});

suite("machines with a volume", () => {
  test("a machine is placed at its volume; a volume elsewhere, in use or of another app is refused", async () => {
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
    const harness = await MachineHarness.open({
      hosts: [host("000a", "ams"), host("000b", "fra")],
      volumes: {
        locate: async (id) =>
          ({ vol_1: place, vol_2: { ...place, attached_machine_id: "m9" }, vol_3: { ...place, app_id: "a2" } })[id],
        named: async () => [place],
      },
    });
    await harness.addVolume(aVolume({ region: "fra", host_id: "000b" }));
    const create = (volume: string, region?: string) =>
      harness.module.machines.create(
        OWNER,
        { config: { image: "x", mounts: [{ volume, path: "/data" }] }, region },
        harness.actor(),
      );
    assert.equal((await create("vol_1")).host_id, "000b");
    await assert.rejects(create("vol_1", "ams"), {
      code: "volume_elsewhere",
      message: /000b in region fra, not in ams/,
    });
    await assert.rejects(create("vol_1"), { code: "insufficient_capacity", message: /on host 000b/ });
    await assert.rejects(create("vol_2"), { code: "volume_in_use", message: /m9/ });
    await assert.rejects(create("vol_3"), /not a volume of this app/);
    await harness.close();
  });
});
