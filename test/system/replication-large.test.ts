/** A database of more than a gigabyte, which has the page SQLite never uses, and every page size, through the whole way. */
import assert from "node:assert/strict";
import { join } from "node:path";
import { DatabaseSync } from "node:sqlite";
import { suite, test } from "node:test";
import { runs, until } from "../support.ts";
import { freePort, info, Stage, samePositionOn } from "./replication-support.ts";

/** A gigabyte takes its time on a busy machine. */
const PATIENCE_MS = 600_000;

suite("database sizes", { timeout: 1_800_000 }, () => {
  test("a database that contains SQLite's lock page is replicated", {
    skip: runs(0, 1) > 0 ? false : "takes minutes: npm run prove",
  }, async (t) => {
    const stage = new Stage(t);
    const [here, there] = [stage.dir(), stage.dir()];
    const ports = [await freePort(), await freePort()] as const;
    const path = join(here, "db");
    const db = new DatabaseSync(path, { timeout: 60_000 });
    db.exec("PRAGMA journal_mode = WAL; PRAGMA synchronous = OFF; CREATE TABLE big(id INTEGER PRIMARY KEY, v BLOB)");
    const fill = (megabytes: number): void => {
      for (let i = 0; i < megabytes; i += 16) db.exec(`INSERT INTO big(v) SELECT randomblob(16 << 20)`);
    };
    fill(960);
    stage.node(here, ports[0], "--primary");
    const answers = async (): Promise<boolean> => (await info(ports[0]))?.databases["db"] !== undefined;
    await until("the primary answers", answers, { limit_ms: PATIENCE_MS });
    stage.node(there, ports[1], "--join", `http://127.0.0.1:${ports[0]}`);
    await samePositionOn(ports[0], ports[1], "db", PATIENCE_MS);
    // Across the lock page while replicating, then a replica that gets all of it as a snapshot.
    fill(160);
    await samePositionOn(ports[0], ports[1], "db", PATIENCE_MS);
    const third = stage.dir();
    const port = await freePort();
    stage.node(third, port, "--join", `http://127.0.0.1:${ports[0]}`);
    t.diagnostic(await samePositionOn(ports[0], port, "db", PATIENCE_MS));
    for (const dir of [there, third]) {
      const copy = new DatabaseSync(join(dir, "db"), { readOnly: true });
      assert.equal(copy.prepare("PRAGMA integrity_check").get()?.["integrity_check"], "ok");
      copy.close();
    }
    db.close();
  });

  test("every page size is replicated, with schema changes", async (t) => {
    const stage = new Stage(t);
    const [here, there] = [stage.dir(), stage.dir()];
    const ports = [await freePort(), await freePort()] as const;
    stage.node(here, ports[0], "--primary");
    await until("the primary answers", async () => (await info(ports[0])) !== undefined);
    stage.node(there, ports[1], "--join", `http://127.0.0.1:${ports[0]}`);
    const sizes = [512, 1024, 2048, 4096, 8192, 16_384, 32_768, 65_536];
    const writers = sizes.map((size) => {
      const path = join(here, `db${size}`);
      return stage.writer(path, runs(2, 20), 100, "schema vacuum", { PAGE_SIZE: String(size) });
    });
    for (const writer of writers) await writer.ended;
    for (const [i, size] of sizes.entries()) {
      await samePositionOn(ports[0], ports[1], `db${size}`);
      const copy = new DatabaseSync(join(there, `db${size}`), { readOnly: true });
      const counted = copy.prepare("SELECT n FROM counter");
      const { n, transactions } = writers[i]?.result() ?? {};
      assert.ok(Number(transactions) > Number(n), "its schema was changed as well");
      await until(`db${size} has all of it`, () => counted.get()?.["n"] === n);
      assert.equal(copy.prepare("PRAGMA page_size").get()?.["page_size"], size);
      assert.equal(copy.prepare("PRAGMA integrity_check").get()?.["integrity_check"], "ok");
      copy.close();
    }
  });
});
