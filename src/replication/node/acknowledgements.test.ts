/** Acknowledgements: only a position of this history that is on the replica's disk counts. */
import assert from "node:assert/strict";
import { suite } from "node:test";
import { formatPosition } from "../position.ts";
import { same, story, until } from "./fixtures.ts";

suite("acknowledgements", () => {
  story("a replica acknowledges what is on its disk, and nothing else counts", async (scene) => {
    const here = scene.dir();
    const primary = await scene.start(here, { kind: "primary" }, { ack: { name: "one", replicas: 1 } });
    const replica = await scene.start(scene.dir(), { kind: "join", url: primary.url });
    const { acknowledgements } = primary.node;
    const take = acknowledgements.take.bind(acknowledgements);
    const early: string[] = [];
    let taken = 0;
    acknowledgements.take = (node, term, positions) => {
      for (const [name, { txid }] of positions) {
        const durable = replica.node.directory.get(name)?.log.durable ?? -1;
        if (durable < txid) early.push(`${name}: ${txid} is acknowledged, and ${durable} is durable`);
        taken++;
      }
      take(node, term, positions);
    };
    const app = await scene.app(here);
    for (let n = 0; n < 20; n++) {
      await app.write();
      const before = taken;
      const answer = await fetch(`${primary.url}/wait?db=db&timeout=30s`);
      assert.equal(answer.status, 200, await answer.text());
      assert.ok(taken > before || n === 0, "an acknowledgement was requested");
    }
    assert.deepEqual(early, []);
    await until("both have the same", same(primary, replica));
    const { in_sync } = acknowledgements;
    const position = primary.node.directory.get("db")?.position ?? assert.fail("it has none");
    const counted = in_sync.upTo("db");
    // Of another history, or of the future.
    for (const wrong of [
      { txid: position.txid, checksum: position.checksum ^ 1n },
      { txid: position.txid + 5, checksum: position.checksum },
    ]) {
      in_sync.forget("db");
      take(replica.node.id, 1, new Map([["db", wrong]]));
      assert.equal(in_sync.copies("db", wrong.txid), 0, formatPosition(wrong));
    }
    take(replica.node.id, 1, new Map([["db", position]]));
    assert.equal(in_sync.upTo("db"), counted);
  });

  story(
    "writers wait when --max-unacked transactions are not acknowledged, until a replica has them",
    async (scene) => {
      const here = scene.dir();
      const ack = { name: "one", replicas: 1 } as const;
      const primary = await scene.start(here, { kind: "primary" }, { ack, max_unacked: 10 });
      const app = await scene.app(here);
      await until("it is open", () => primary.node.directory.get("db") !== undefined);
      const database = primary.node.directory.get("db") ?? assert.fail("it is not open");
      const before = database.position.txid;
      while (database.position.txid < before + 10) {
        await app.write();
        await until("it is captured", () => primary.node.look("db"));
      }
      await until("writers wait", () => database.paused);
      assert.throws(() => app.db.exec("BEGIN IMMEDIATE"), /locked/);
      await scene.start(scene.dir(), { kind: "join", url: primary.url });
      await until("writers go on", () => !database.paused);
      await app.write();
    },
  );
});
