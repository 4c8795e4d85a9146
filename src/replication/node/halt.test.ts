import assert from "node:assert/strict";
import { DatabaseSync } from "node:sqlite";
import { suite } from "node:test";
import { systemClock } from "#core/clock.ts";
import type { RunningNode } from "../commands.ts";
import { look } from "../database/fixtures.ts";
import { NodeClient } from "../node-client.ts";
import { type Scene, same, sent, story, until } from "./fixtures.ts";

interface Pair {
  here: string;
  there: string;
  primary: RunningNode;
  replica: RunningNode;
  client: NodeClient;
}

async function pair(scene: Scene): Promise<Pair> {
  const [here, there] = [scene.dir(), scene.dir()];
  const primary = await scene.start(here, { kind: "primary" });
  const replica = await scene.start(there, { kind: "join", url: primary.url });
  const app = await scene.app(here);
  await app.write();
  await until("the replica has it", () => same(primary, replica)() && look(`${there}/db`).entries === 1);
  return { here, there, primary, replica, client: new NodeClient(replica.url, systemClock) };
}

function run(path: string, sql: string, timeout = 0): void {
  const db = new DatabaseSync(path, { timeout });
  try {
    db.exec(sql);
  } finally {
    db.close();
  }
}

const rows = (path: string): number => {
  const db = new DatabaseSync(path, { readOnly: true, timeout: 5000 });
  try {
    return Number(db.prepare("SELECT count(*) AS n FROM moved").get()?.["n"]);
  } finally {
    db.close();
  }
};

suite("writing from a replica (halt lock)", () => {
  story(
    "a migration on a locked replica reaches all nodes at unlock; the primary takes no writes meanwhile",
    async (scene) => {
      const { here, there, primary, replica, client } = await pair(scene);
      const third_dir = scene.dir();
      const third = await scene.start(third_dir, { kind: "join", url: primary.url });
      await until("the third follows", () => same(primary, third)() && sent(primary) === 2);
      assert.throws(() => run(`${there}/db`, "CREATE TABLE moved (n)"), /locked/);
      const { id } = await client.lock("db");
      assert.throws(() => run(`${here}/db`, "CREATE TABLE moved (n)"), /locked/);
      run(`${there}/db`, "CREATE TABLE moved (n)");
      for (let n = 0; n < 5; n++) run(`${there}/db`, `INSERT INTO moved VALUES (${n})`);
      run(`${there}/db`, "CREATE INDEX moved_n ON moved (n)");
      const { transactions } = await client.unlock("db", id);
      assert.equal(transactions, 7);
      assert.equal(rows(`${here}/db`), 5);
      for (const node of [replica, third]) await until("all have it", same(primary, node));
      assert.equal(rows(`${third_dir}/db`), 5);
      // Everything is as before: the primary's applications write, the replica's do not, and nothing was sent whole again.
      run(`${here}/db`, "INSERT INTO moved VALUES (9)", 5000);
      for (const dir of [there, third_dir]) await until("it follows", () => rows(`${dir}/db`) === 6);
      assert.throws(() => run(`${there}/db`, "INSERT INTO moved VALUES (10)"), /locked/);
      assert.equal(sent(primary), 2);
      assert.equal(replica.node.metrics.dropped, 0);
    },
  );

  story("only one lock at a time; bad ids, wrong nodes and unknown databases get clear errors", async (scene) => {
    const { primary, client } = await pair(scene);
    const { id } = await client.lock("db");
    await assert.rejects(client.lock("db"), /locked already/);
    await assert.rejects(client.unlock("db", "nonsense"), /not locked with this id/);
    await assert.rejects(client.lock("other"), /no database other/);
    await assert.rejects(new NodeClient(primary.url, systemClock).lock("db"), /this is for replicas/);
    await client.renewLock("db", id);
    assert.equal((await client.unlock("db", id)).transactions, 0);
    await assert.rejects(client.unlock("db", id), /not locked with this id/);
  });

  story(
    "when the primary is lost before unlock, the writes are copied aside and the replica follows again",
    async (scene) => {
      const { here, there, primary, replica, client } = await pair(scene);
      const { id } = await client.lock("db");
      run(`${there}/db`, "CREATE TABLE moved (n)");
      // It releases the lock, and its applications continue.
      primary.node.halts.clear();
      primary.node.directory.get("db")?.release();
      run(`${here}/db`, "CREATE TABLE other (n)", 5000);
      await assert.rejects(client.unlock("db", id), /halt lock of db expired/);
      await until("the replica is healed", () => replica.node.metrics.dropped === 1 && same(primary, replica)());
      assert.ok(scene.said.some((line) => /were dropped; copied to/.test(line)));
    },
  );
});
