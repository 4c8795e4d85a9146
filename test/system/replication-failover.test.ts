/** A primary is killed: how long it takes until another one accepts a write, and what is lost. */
import assert from "node:assert/strict";
import { DatabaseSync } from "node:sqlite";
import { suite, test } from "node:test";
import { runs, until, within } from "../support.ts";
import { Cluster, firstWrite } from "./replication-cluster.ts";
import { info, Stage } from "./replication-support.ts";

suite("failover of database nodes", { timeout: runs(300_000, 1_200_000) }, () => {
  test("kill -9 of the primary to the first accepted write takes at most 3 s", async (t) => {
    const cluster = await Cluster.start(new Stage(t), 3);
    const first = await cluster.whole();
    const db = new DatabaseSync(cluster.path(first), { timeout: 10_000 });
    db.exec("PRAGMA journal_mode = WAL; CREATE TABLE notes (n INTEGER PRIMARY KEY, term INT)");
    db.close();
    const took_ms: number[] = [];
    for (let round = 0; round < runs(1, 10, 50); round++) {
      const primary = await cluster.whole();
      const position = await until("the primary has it", async () => (await info(primary.port))?.databases["db"]);
      for (const { port } of cluster.others(primary)) {
        await until("replicas have it", async () => (await info(port))?.databases["db"] === position);
      }
      await cluster.kill(primary);
      const [next, ms] = await firstWrite(cluster, cluster.others(primary), "INSERT INTO notes (term) VALUES (1)");
      took_ms.push(ms);
      assert.notEqual(next, primary);
      cluster.restart(primary);
    }
    await cluster.whole();
    t.diagnostic(`kill to first write: ${took_ms.map((ms) => `${Math.round(ms)} ms`).join(", ")}`);
    assert.ok(Math.max(...took_ms) <= within(3000), `it took ${Math.max(...took_ms)} ms`);
  });
});
