import assert from "node:assert/strict";
import { suite, test } from "node:test";
import { random, runs, seed } from "../../test/support.ts";
import { Rig, turns } from "./rig-fixtures.ts";

const never = new AbortController().signal;
const HOUR = 3_600_000;

async function setup() {
  const rig = await Rig.open();
  const { id } = await rig.create({}, { skip_launch: true });
  const take = (ttl_s: number, more: { nonce?: string; wait_s?: number; owner?: string } = {}) =>
    rig.room.leases.acquire(id, { owner: "x", description: "", ttl_s, wait_s: 0, ...more }, rig.ids, never);
  const update = (nonce: string | undefined, image: string) =>
    rig
      .find(id)
      .then((machine) =>
        rig.room.machines.update(machine, { config: { image }, skip_launch: true }, rig.asker({ nonce })),
      );
  return { rig, id, take, update };
}

suite("leases", () => {
  test("of two hundred who ask at once one gets it (L1)", async (t) => {
    const { rig, id, take } = await setup();
    const rounds = runs(10, 100);
    for (let round = 0; round < rounds; round++) {
      const results = await Promise.allSettled(Array.from({ length: 200 }, () => take(10)));
      const winners = results.filter((result) => result.status === "fulfilled");
      assert.equal(winners.length, 1);
      await rig.room.leases.release(id, winners[0]?.value.lease.nonce ?? "");
    }
    t.diagnostic(`${rounds * 200} attempts`);
    await rig.close();
  });

  test("a holder who slept past the end cannot write, however late it comes (L2)", async (t) => {
    const { rig, id, take, update } = await setup();
    const next = random(seed(t));
    for (let i = 0; i < runs(100); i++) {
      const first = (await take(10)).lease.nonce;
      await rig.clock.advance(10_001 + Math.floor(next() * 5000));
      const second = (await take(10)).lease.nonce;
      await update(second, `web:${i}`);
      if (next() < 0.5) await rig.room.leases.release(id, second);
      await assert.rejects(update(first, "stale:1"), /lease/);
      await rig.settle();
      assert.equal((await rig.find(id)).config.image, `web:${i}`);
      await rig.clock.advance(20_000);
    }
    await rig.close();
  });

  test("a wall clock that jumps makes a lease neither shorter nor longer (L3)", async () => {
    for (const jump of [-HOUR, HOUR, 2 * 365 * 24 * HOUR, -1000]) {
      const { rig, id, take } = await setup();
      const { nonce } = (await take(60)).lease;
      rig.clock.jump(jump);
      await assert.rejects(take(60), { code: "lease_held" }, `after ${jump}`);
      await rig.clock.advance(59_000);
      await assert.rejects(take(60), { code: "lease_held" });
      const shown = (await rig.room.leases.read(id)).lease;
      assert.equal(shown.nonce, nonce);
      await rig.clock.advance(1001);
      assert.notEqual((await take(60)).lease.nonce, nonce);
      await rig.close();
    }
  });

  test("after a restart with a clock that jumped a lease lasts no longer than its ttl anew (L3)", async () => {
    for (const jump of [-HOUR, HOUR]) {
      const { rig, take } = await setup();
      await take(60);
      await rig.clock.advance(30_000);
      rig.kill();
      rig.clock.jump(jump);
      await rig.boot();
      const again = (ttl_s: number) => take(ttl_s);
      if (jump < 0) await assert.rejects(again(5), { code: "lease_held" });
      await rig.clock.advance(60_001);
      await again(5);
      await rig.close();
    }
  });

  test("a lease survives a kill, needs its own nonce, and nobody guesses one (L4)", async () => {
    const { rig, id, take, update } = await setup();
    const { nonce } = (await take(600)).lease;
    assert.match(nonce, /^[0-9a-f]{32}$/);
    for (let i = 0; i < 20; i++) {
      rig.kill();
      await rig.boot();
      await assert.rejects(take(5), { code: "lease_held" });
      await assert.rejects(update("0".repeat(32), "x:1"), { code: "lease_held" });
      await assert.rejects(update(undefined, "x:1"), { code: "lease_held" });
      await assert.rejects(rig.room.leases.release(id, "nope"), { code: "lease_held" });
    }
    await update(nonce, "x:2");
    await rig.room.leases.release(id, nonce);
    await assert.rejects(rig.room.leases.release(id, nonce), /lease not found/);
    await rig.close();
  });

  test("a refresh keeps the nonce and begins the time anew", async () => {
    const { rig, take } = await setup();
    const { nonce } = (await take(10)).lease;
    for (let i = 0; i < 5; i++) {
      await rig.clock.advance(8000);
      assert.equal((await take(10, { nonce })).lease.nonce, nonce);
    }
    await rig.clock.advance(10_001);
    await assert.rejects(take(10, { nonce }), { code: "lease_lost" });
    await rig.close();
  });

  test("who queues gets the lease when it runs out, or is told who holds it", async () => {
    const { rig, take } = await setup();
    await take(5);
    const queued = take(7, { wait_s: 20 });
    await turns(2);
    await rig.clock.advance(5001);
    const { nonce } = (await queued).lease;
    const late = take(7, { wait_s: 3 });
    late.catch(() => {});
    await turns(2);
    await rig.clock.advance(3001);
    await assert.rejects(late, /lease currently held by x/);
    assert.equal(rig.room.bus.listeners, 3, "nobody is left listening");
    assert.ok(nonce);
    await rig.close();
  });
});
