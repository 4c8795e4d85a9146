import assert from "node:assert/strict";
import { suite, test } from "node:test";
import type { HostStore } from "./store.ts";

/** What every HostStore must do. `open` gives an empty one. */
export function hostStoreSuite(
  name: string,
  open: () => Promise<{ store: HostStore; close(): Promise<void> }>,
  skip?: string,
): void {
  suite(`host store: ${name}`, { skip }, () => {
    test("declared hosts are stored with their size, keep their state, and are removed when no longer declared", async () => {
      const { store, close } = await open();
      const a = { id: "000a", region: "ams", zone: "z1", cpus: 4, memory_mb: 1024 };
      const b = { id: "000b", region: "fra", zone: "z2", cpus: 0, memory_mb: 0 };
      await store.declare([a, b]);
      assert.ok(await store.setState("000a", "failed", false));
      assert.equal(await store.setState("ffff", "failed", false), false);
      await store.declare([{ ...a, cpus: 8 }]);
      const [left, ...more] = await store.hosts();
      assert.deepEqual(more, []);
      const { id, region, zone, cpus, memory_mb, state, used_cpus, cordoned, held } = left ?? assert.fail();
      assert.deepEqual({ id, region, zone, cpus, memory_mb }, { ...a, cpus: 8 });
      assert.deepEqual([state, used_cpus, cordoned, held], ["failed", 0, false, false]);
      await close();
    });

    test("a process is reached at the address it announced last", async () => {
      const { store, close } = await open();
      assert.equal(await store.channelAddressOf("n1"), undefined);
      for (const address of ["10.0.0.1:1", "10.0.0.1:2"]) await store.announce({ node_id: "n1", address, seen_at: 5 });
      assert.equal(await store.channelAddressOf("n1"), "10.0.0.1:2");
      await close();
    });

    const arrival = { lease_ms: 1000, address: "127.0.0.1:1", facts: { driver: "sim" }, now: 5 };

    test("a host joins once per token, and stays when others are declared", async () => {
      const { store, close } = await open();
      const token = { id: "t1", hash: Buffer.from("h"), sealed_key: Buffer.from("k"), expires_at: 9 };
      await store.addToken(token);
      assert.deepEqual(Buffer.from((await store.findToken("t1"))?.sealed_key ?? []).toString(), "k");
      const joining = { id: "00aa", region: "ams", zone: "00aa", cpus: 4, memory_mb: 512, node_id: "n1" };
      assert.equal(await store.join(joining, "t1", 7), true);
      assert.equal(await store.join({ ...joining, id: "00ab" }, "t1", 7), false, "a token works once");
      assert.equal(await store.findToken("t1"), undefined);
      assert.equal((await store.find("00aa"))?.state, "failed", "it is not there before it has taken its place");
      await store.declare([{ id: "0001", region: "local", zone: "0001", cpus: 0, memory_mb: 0 }]);
      assert.deepEqual(
        (await store.hosts()).map(({ id }) => id),
        ["0001", "00aa"],
      );
      assert.equal(await store.forget("00aa"), true);
      assert.equal(await store.forget("00aa"), false);
      await close();
    });

    test("a lease is renewed until it is ended, and only its own node takes the host again", async () => {
      const { store, close } = await open();
      await store.declare([{ id: "000a", region: "ams", zone: "z", cpus: 0, memory_mb: 0 }]);
      const mine = { id: "000a", node_id: "n1", epoch: 0 };
      assert.equal(await store.take(mine, 0, arrival), 1);
      assert.equal(await store.take({ ...mine, node_id: "n2" }, 1, arrival), undefined, "it is another node's");
      assert.equal(await store.take(mine, 0, arrival), undefined, "what was decided on is no longer so");
      assert.equal(await store.renew({ ...mine, epoch: 1 }, 6), true);
      const { beat, seen_at, address, facts } = (await store.find("000a")) ?? assert.fail();
      assert.deepEqual([beat, seen_at, address, facts], [2, 6, "127.0.0.1:1", { driver: "sim" }]);
      assert.equal(await store.lose("000a", 1), false, "a beat came since");
      assert.equal(await store.lose("000a", 2), true);
      assert.equal(await store.lose("000a", 2), false, "it is lost once");
      assert.equal(await store.renew({ ...mine, epoch: 1 }, 8), false);
      const lost = (await store.find("000a")) ?? assert.fail();
      assert.deepEqual([lost.state, lost.epoch, lost.handled], ["failed", 2, 0]);
      await store.handled("000a", 2);
      assert.equal((await store.find("000a"))?.handled, 2);
      assert.equal(await store.take(mine, 2, arrival), 3);
      assert.equal((await store.find("000a"))?.state, "ok");
      assert.ok(await store.setState("000a", "failed", true));
      assert.equal(await store.renew({ ...mine, epoch: 3 }, 9), false, "an operator's change ends it");
      assert.equal(await store.take(mine, 4, arrival), undefined, "and holds");
      for (const change of [
        { cordoned: true, draining: true },
        { cordoned: true, draining: false },
        { cordoned: false, draining: false },
      ]) {
        assert.ok(await store.setCordoned("000a", change));
        const { cordoned, draining } = (await store.find("000a")) ?? assert.fail();
        assert.deepEqual({ cordoned, draining }, change);
      }
      await close();
    });
  });
}
