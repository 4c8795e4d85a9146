/** Behind a pooler in transaction mode every statement may be in another session of the server. */
import assert from "node:assert/strict";
import { after, suite, test } from "node:test";
import { type PgBouncer, pgbouncerMissing, startPgBouncer } from "../../../test/pgbouncer.ts";
import { testPlatform } from "../../../test/platform.ts";
import { postgresMissing, startPostgres } from "../../../test/postgres.ts";
import { databaseSuite } from "../database.suite.ts";
import { openPostgres } from "./database.ts";

const skip = postgresMissing() ?? pgbouncerMissing();

let started: Promise<{ url(): Promise<string>; stop(): Promise<void> }> | undefined;
after(async () => await (await started)?.stop());

async function start(): Promise<{ url(): Promise<string>; stop(): Promise<void> }> {
  const server = await startPostgres();
  const folder = new URL((await server.database()).replace("@/", "@localhost/")).searchParams.get("host") ?? "";
  const pooler: PgBouncer = await startPgBouncer(folder);
  return {
    url: async () => pooler.url(await server.database()),
    async stop() {
      await pooler.stop();
      await server.stop();
    },
  };
}

async function pooled(): Promise<string> {
  started ??= start();
  return await (await started).url();
}

databaseSuite("postgres behind PgBouncer", async () => await openPostgres(await pooled()), skip);

suite("PgBouncer", { skip }, () => {
  test("a platform starts and works behind PgBouncer, and again on the same sessions", async (t) => {
    const url = await pooled();
    const platform = await testPlatform(t, { HANGAR_DATABASE_URL: url });
    assert.equal(
      (await platform.ask("POST /v1/apps", { body: { app_name: "web", org_slug: "personal" } })).status,
      201,
    );
    const body = { config: { image: "web:1" }, skip_launch: true };
    const made = await Promise.all(
      Array.from({ length: 20 }, () => platform.ask("POST /v1/apps/web/machines", { body })),
    );
    assert.deepEqual(new Set(made.map(({ status }) => status)), new Set([200]));
    await platform.close();
    const { data_dir } = platform;
    const again = await testPlatform(t, { HANGAR_DATABASE_URL: url, HANGAR_DATA_DIR: data_dir });
    assert.equal((await again.ask("GET /v1/apps/web/machines")).body.length, 20);
    assert.equal((await again.ask("GET /readyz")).status, 200);
  });

  test("processes that share sessions never run each other's prepared statements, and detect the pooler", async () => {
    const url = await pooled();
    let noticed = 0;
    const options = { onPooler: () => void noticed++ };
    const [one, two] = [await openPostgres(url, options), await openPostgres(url, options)];
    await one.write([{ sql: "CREATE TABLE things (id TEXT PRIMARY KEY, n BIGINT NOT NULL)" }]);
    const sums = Array.from({ length: 300 }, async (_, index) => {
      // Two programs that prepare different statements in a different order.
      const [database, sql] = index % 2 === 0 ? [one, `SELECT ? + ${index} AS n`] : [two, `SELECT ? * ${index} AS n`];
      const [row] = await database.read<{ n: number }>(`${sql.replace("?", "CAST(? AS BIGINT)")}`, [index]);
      assert.equal(Number(row?.n), index % 2 === 0 ? 2 * index : index * index);
      const id = `t${index}`;
      const written = await database.write([{ sql: "INSERT INTO things VALUES (?, ?)", args: [id, index], rows: 1 }]);
      assert.ok(written.ok);
    });
    await Promise.all(sums);
    const [count] = await two.read<{ n: number }>("SELECT count(*) AS n FROM things");
    assert.equal(count?.n, 300);
    assert.equal(noticed, 2, "each process once");
    await one.close();
    await two.close();
  });
});
