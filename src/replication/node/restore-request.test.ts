import assert from "node:assert/strict";
import { existsSync, readdirSync } from "node:fs";
import { join } from "node:path";
import { suite } from "node:test";
import { systemClock } from "#core/clock.ts";
import { LocalObjects } from "#stores/objects/local.ts";
import { until } from "../../../test/support.ts";
import { SharedKey } from "../credentials/shared-key.ts";
import { look } from "../database/fixtures.ts";
import { NodeClient } from "../node-client.ts";
import { same, story } from "./fixtures.ts";

interface Listed {
  databases: { name: string; first: string; last: string; from: string; until: string }[];
}

suite("a node restores from its own backup", () => {
  story("as of a moment, in one transaction, on the primary and its replicas", async (scene) => {
    const [here, there] = [scene.dir(), scene.dir()];
    const backup = new LocalObjects(scene.dir());
    const credentials = new SharedKey("a key of the whole cluster");
    const primary = await scene.start(here, { kind: "primary" }, { backup, credentials });
    const replica = await scene.start(there, { kind: "join", url: primary.url }, { backup, credentials });
    const app = await scene.app(here);
    const client = new NodeClient(primary.url, systemClock, credentials);
    const stored = async (): Promise<string> => ((await client.backups()) as Listed).databases[0]?.last ?? "";
    const position = (): string => primary.node.directory.positions()["db"] ?? "";
    for (let i = 0; i < 10; i++) await app.write();
    await until("the first ten are stored", async () => position().startsWith(`${await stored()}/`));
    const txid = await stored();
    await app.write();
    app.db.exec("DELETE FROM entry");
    await until("the loss is stored too", async () => (await stored()) > txid && position().startsWith(await stored()));

    const [listed] = ((await client.backups()) as Listed).databases;
    assert.ok(listed && Date.parse(listed.from) <= Date.parse(listed.until), JSON.stringify(listed));
    const restored = (await client.restore({ name: "db", txid })) as { position: string };
    assert.deepEqual(look(join(here, "db")), { integrity: "ok", sum: 3000, entries: 10 });
    assert.equal(position(), restored.position);
    await until("the replica has it", same(primary, replica));
    assert.deepEqual(look(join(there, "db")), { integrity: "ok", sum: 3000, entries: 10 });
    await app.write();

    const at = new Date(0).toISOString();
    await assert.rejects(client.restore({ name: "db", at }), /does not go back so far/);
    await assert.rejects(client.restore({ name: "db", at: "yesterday" }), /"yesterday" is not a time such as/);
    await assert.rejects(client.restore({ name: "other" }), /there is no backup of other/);
    await assert.rejects(client.restore({ name: "../db" }), /cannot be the name of a database/);
    const from_replica = new NodeClient(replica.url, systemClock, credentials);
    await assert.rejects(from_replica.restore({ name: "db" }), /restored on the primary/);
    for (const [path, method] of [
      ["/restore?name=db", "POST"],
      ["/backups", "GET"],
    ] as const)
      assert.equal((await fetch(primary.url + path, { method })).status, 401, path);
    assert.equal(look(join(here, "db")).entries, 11, "nothing was changed");
    for (const dir of [here, there])
      assert.deepEqual(
        readdirSync(join(dir, ".replication")).filter((name) => /restore|import/.test(name)),
        [],
      );
  });

  story("a node without a backup says so", async (scene) => {
    const here = scene.dir();
    const node = await scene.start(here, { kind: "primary" });
    const client = new NodeClient(node.url, systemClock);
    await assert.rejects(client.backups(), /this node has no backup/);
    await assert.rejects(client.restore({ name: "db" }), /this node has no backup/);
    assert.ok(!existsSync(join(here, "db")));
  });
});
