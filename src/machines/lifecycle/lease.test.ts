import assert from "node:assert/strict";
import { suite, test } from "node:test";
import type { Clock } from "#core/clock.ts";
import { random, runs, seed, until } from "../../../test/support.ts";
import { MachineHarness, turns } from "../machine-harness.fixtures.ts";
import { type AcquireLeaseInput, Leases } from "./lease.ts";

const never = new AbortController().signal;
const HOUR = 3_600_000;

async function setup() {
  const harness = await MachineHarness.open();
  const { id } = await harness.create({}, { skip_launch: true });
  const take = (ttl_s: number, more: Partial<AcquireLeaseInput> = {}, signal = never) =>
    harness.module.leases.acquire(id, { owner: "x", description: "", ttl_s, wait_s: 0, ...more }, harness.ids, signal);
  const update = (nonce: string | undefined, image: string) =>
    harness
      .find(id)
      .then((machine) =>
        harness.module.machines.update(machine, { config: { image }, skip_launch: true }, harness.actor({ nonce })),
      );
  return { harness, id, take, update };
}

suite("leases", () => {
  test("of two hundred concurrent requests for a lease exactly one wins (L1)", async (t) => {
    const { harness, id, take } = await setup();
    const rounds = runs(10, 100);
    for (let round = 0; round < rounds; round++) {
      const results = await Promise.allSettled(Array.from({ length: 200 }, () => take(10)));
      const winners = results.filter((result) => result.status === "fulfilled");
      assert.equal(winners.length, 1);
      await harness.module.leases.release(id, winners[0]?.value.lease.nonce ?? "");
    }
    t.diagnostic(`${rounds * 200} attempts`);
    await harness.close();
  });

  test("a holder whose lease has expired cannot write, however late it tries (L2)", async (t) => {
    const { harness, id, take, update } = await setup();
    const next = random(seed(t));
    for (let i = 0; i < runs(100); i++) {
      const first = (await take(10)).lease.nonce;
      await harness.clock.advance(10_001 + Math.floor(next() * 5000));
      const second = (await take(10)).lease.nonce;
      await update(second, `web:${i}`);
      if (next() < 0.5) await harness.module.leases.release(id, second);
      await assert.rejects(update(first, "stale:1"), /lease/);
      await harness.settle();
      assert.equal((await harness.find(id)).config.image, `web:${i}`);
      await harness.clock.advance(20_000);
    }
    await harness.close();
  });

  test("a jump of the wall clock makes a lease neither shorter nor longer (L3)", async () => {
    for (const jump of [-HOUR, HOUR, 2 * 365 * 24 * HOUR, -1000]) {
      const { harness, id, take } = await setup();
      const { nonce } = (await take(60)).lease;
      harness.clock.jump(jump);
      await assert.rejects(take(60), { code: "lease_held" }, `after ${jump}`);
      await harness.clock.advance(59_000);
      await assert.rejects(take(60), { code: "lease_held" });
      const shown = (await harness.module.leases.read(id)).lease;
      assert.equal(shown.nonce, nonce);
      await harness.clock.advance(1001);
      assert.notEqual((await take(60)).lease.nonce, nonce);
      await harness.close();
    }
  });

  test("after a restart with a clock that jumped, a lease lasts at most its ttl again (L3)", async () => {
    for (const jump of [-HOUR, HOUR]) {
      const { harness, take } = await setup();
      await take(60);
      await harness.clock.advance(30_000);
      harness.kill();
      harness.clock.jump(jump);
      await harness.boot();
      const again = (ttl_s: number) => take(ttl_s);
      if (jump < 0) await assert.rejects(again(5), { code: "lease_held" });
      await harness.clock.advance(60_001);
      await again(5);
      await harness.close();
    }
  });

  test("a lease survives a kill, and only its own nonce is accepted (L4)", async () => {
    const { harness, id, take, update } = await setup();
    const { nonce } = (await take(600)).lease;
    assert.match(nonce, /^[0-9a-f]{32}$/);
    for (let i = 0; i < 20; i++) {
      harness.kill();
      await harness.boot();
      await assert.rejects(take(5), { code: "lease_held" });
      await assert.rejects(update("0".repeat(32), "x:1"), { code: "lease_held" });
      await assert.rejects(update(undefined, "x:1"), { code: "lease_held" });
      await assert.rejects(harness.module.leases.release(id, "nope"), { code: "lease_held" });
    }
    await update(nonce, "x:2");
    await harness.module.leases.release(id, nonce);
    await assert.rejects(harness.module.leases.release(id, nonce), /lease not found/);
    await harness.close();
  });

  test("a refresh keeps the nonce and restarts the ttl", async () => {
    const { harness, take } = await setup();
    const { nonce } = (await take(10)).lease;
    for (let i = 0; i < 5; i++) {
      await harness.clock.advance(8000);
      assert.equal((await take(10, { nonce })).lease.nonce, nonce);
    }
    await harness.clock.advance(10_001);
    await assert.rejects(take(10, { nonce }), { code: "lease_lost" });
    await harness.close();
  });

  test("a refresh through one process is seen by the others", async () => {
    const { harness, id, take } = await setup();
    const { writer, bus } = harness.module;
    const other = new Leases({ store: harness.store, writer, bus, clock: harness.clock });
    const { nonce } = (await take(10)).lease;
    assert.equal((await other.read(id)).lease.nonce, nonce);
    await harness.clock.advance(8000);
    await take(10, { nonce });
    await harness.clock.advance(8000);
    assert.equal((await other.read(id)).lease.nonce, nonce);
    await harness.clock.advance(2001);
    await assert.rejects(other.read(id), /lease not found/);
    await harness.close();
  });

  test("with several processes, a clock hours off gives no lease to two and keeps none for ever (L3)", async () => {
    for (const off of [-HOUR, HOUR, 2 * 365 * 24 * HOUR]) {
      const { harness, id, take } = await setup();
      const { writer, bus } = harness.module;
      const { clock: its } = harness;
      const clock: Clock = {
        now: () => its.now() + off,
        monotonic: () => its.monotonic(),
        sleep: (ms, signal) => its.sleep(ms, signal),
      };
      const other = new Leases({ store: harness.store, writer, bus, clock, shared: true });
      const input = { owner: "y", description: "", ttl_s: 10, wait_s: 0 };
      const takeThere = () => other.acquire(id, input, harness.ids, never);
      const { nonce } = (await take(10)).lease;
      await assert.rejects(takeThere(), { code: "lease_held" }, `its clock is off by ${off}`);
      await harness.clock.advance(9000);
      await assert.rejects(takeThere(), { code: "lease_held" });
      await harness.clock.advance(1001);
      assert.notEqual((await takeThere()).lease.nonce, nonce);
      other.close();
      await harness.close();
    }
  });

  test("with several processes, an expired lease is not seen by one that starts later", async () => {
    const { harness, id } = await setup();
    const { writer, bus } = harness.module;
    const parts = { store: harness.store, writer, bus, clock: harness.clock, shared: true };
    const [first, later] = [new Leases(parts), new Leases(parts)];
    const input = { owner: "y", description: "", ttl_s: 600, wait_s: 0 };
    await first.acquire(id, input, harness.ids, never);
    assert.ok((await harness.find(id)).lease);
    await harness.clock.advance(600_001);
    await until("it is out of the row", async () => (await harness.find(id)).lease === null);
    await later.acquire(id, input, harness.ids, never);
    for (const one of [first, later]) one.close();
    await harness.close();
  });

  test("a queued request gets the lease when it expires, or learns who holds it", async () => {
    const { harness, take } = await setup();
    await take(5);
    const queued = take(7, { wait_s: 20 });
    await turns(2);
    await harness.clock.advance(5001);
    const { nonce } = (await queued).lease;
    const late = take(7, { wait_s: 3 });
    late.catch(() => {});
    await turns(2);
    await harness.clock.advance(3001);
    await assert.rejects(late, /lease currently held by x/);
    assert.equal(harness.module.bus.listeners, 3, "no listener is left");
    assert.ok(nonce);
    await harness.close();
  });

  test("a refused request learns the lease's holder, description and expiry", async () => {
    const { harness, id, take } = await setup();
    await take(60, { owner: "deploy", description: "rolling out" });
    await harness.clock.advance(500);
    const expires_at = Math.floor((harness.clock.now() + 59_500) / 1000);
    const until = new Date(expires_at * 1000).toISOString();
    await assert.rejects(take(5), {
      code: "lease_held",
      message: `machine ID ${id} lease currently held by deploy (rolling out), expires at ${until}, in 60 s`,
      extras: {
        retry_after_s: 60,
        facts: { holder: "deploy", description: "rolling out", expires_at, seconds_left: 60 },
        hint: "send the nonce in svc-machine-lease-nonce, or queue for the lease with POST …/lease?wait=30",
      },
    });
    await harness.clock.advance(60_000);
    await take(60);
    await assert.rejects(take(5), /held by x, expires at/);
    await harness.close();
  });

  test("a lease keeps its description until another is given", async () => {
    const { harness, take } = await setup();
    const { nonce, description } = (await take(10)).lease;
    assert.equal(description, "");
    for (const [given, expected] of [
      ["first", "first"],
      ["", "first"],
      ["second", "second"],
    ] as const) {
      assert.equal((await take(10, { nonce, description: given })).lease.description, expected);
    }
    await harness.close();
  });

  test("without a lease no nonce is needed, and a released nonce is refused", async () => {
    const { harness, id, take, update } = await setup();
    await update(undefined, "free:1");
    const { nonce } = (await take(10)).lease;
    await harness.module.leases.release(id, nonce);
    await update(undefined, "free:2");
    await assert.rejects(update(nonce, "stale:1"), {
      code: "lease_lost",
      extras: { hint: "take a new lease, or send the request without a nonce" },
    });
    assert.equal((await harness.find(id)).config.image, "free:2");
    await harness.close();
  });

  test("a machine can be created with a lease held by its creator", async () => {
    const { harness } = await setup();
    const { id, lease } = await harness.create({}, { skip_launch: true, lease_ttl: 30 });
    assert.equal(lease?.ttl_ms, 30_000);
    assert.match(lease?.nonce ?? "", /^[0-9a-f]{32}$/);
    assert.equal((await harness.module.leases.read(id)).lease.nonce, lease?.nonce);
    await harness.clock.advance(30_001);
    await assert.rejects(harness.module.leases.read(id), /lease not found/);
    await harness.close();
  });

  test("a queued request gets a released lease at once, and not_found when the machine is destroyed", async () => {
    const { harness, id, take } = await setup();
    const { nonce } = (await take(600)).lease;
    const queued = take(7, { wait_s: 20 });
    await turns(2);
    await harness.module.leases.release(id, nonce);
    const second = (await queued).lease.nonce;
    await harness.module.machines.destroy(id, { force: true }, harness.actor({ nonce: second }));
    await harness.settle();
    await assert.rejects(take(7, { wait_s: 20 }), { code: "not_found" });
    await harness.close();
  });

  test("a queued request whose client disconnects does not get the lease later", async () => {
    const { harness, id, take } = await setup();
    const { nonce } = (await take(600)).lease;
    const away = new AbortController();
    const queued = take(7, { wait_s: 20 }, away.signal);
    queued.catch(() => {});
    await turns(2);
    away.abort();
    await assert.rejects(queued, { code: "lease_held" });
    await harness.module.leases.release(id, nonce);
    await assert.rejects(harness.module.leases.read(id), /lease not found/);
    await harness.close();
  });
});
