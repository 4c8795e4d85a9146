/** Failure modes of PostgreSQL: unresponsive, locked, full, slow. A real server behind a TCP relay. */
import assert from "node:assert/strict";
import { suite, test } from "node:test";
import pg from "pg";
import { postgresMissing, startPostgres } from "../../../test/postgres.ts";
import { within } from "../../../test/support.ts";
import { openPostgres } from "./database.ts";
import { add, CALL_MS, failing, idsOf, scene, set, waitUntilBlocked } from "./fixtures.ts";

suite("PostgreSQL", { skip: postgresMissing() }, () => {
  test("a write of many guarded steps is one round trip, and so is a read", async () => {
    await using here = await scene();
    const { database, relay } = here;
    const steps = Array.from({ length: 12 }, (_, index) => add(`t${index}`));
    relay.trips();
    assert.ok((await database.write(steps)).ok);
    assert.equal(relay.trips(), 1);
    assert.ok(!(await database.write([set("t1", 5), set("missing", 1), add("t13")])).ok);
    assert.equal(relay.trips(), 1, "a refused one as well");
    assert.equal((await database.read("SELECT * FROM things WHERE n = 0")).length, 12);
    assert.equal(relay.trips(), 1);
    const several = await database.readAll?.([{ sql: "SELECT 1 AS one" }, { sql: "SELECT ? AS two", args: ["2"] }]);
    assert.deepEqual(several, [[{ one: 1 }], [{ two: "2" }]]);
    assert.equal(relay.trips(), 1);
  });

  test("a connection that stopped responding is replaced: calls time out, later ones succeed", async () => {
    await using here = await scene();
    const { database, relay } = here;
    await Promise.all(Array.from({ length: 5 }, (_, index) => database.write([add(`before${index}`)])));
    relay.silence();
    const calls = [
      () => database.read("SELECT 1"),
      () => database.write([add("lost")]),
      () => database.read("SELECT 2"),
      () => database.write([add("lost too")]),
    ];
    for (const { ms, error } of await Promise.all(calls.map(failing))) {
      assert.equal(error.code, "storage_failed");
      assert.equal(error.extras.retry_after_s, 2);
      assert.ok(ms < within(CALL_MS + 500), `${ms} ms`);
    }
    relay.restore();
    assert.ok((await database.write([add("after")])).ok);
    assert.equal((await database.read("SELECT 1 FROM things WHERE id LIKE 'lost%'")).length, 0);
    relay.silence();
    const began = performance.now();
    await database.close();
    assert.ok(performance.now() - began < within(1000), "unresponsive idle connections delay no call");
  });

  test("close ends in bounded time while a call hangs", async () => {
    await using here = await scene({ call_ms: 60_000 });
    const { database, relay } = here;
    relay.silence();
    const hanging = failing(() => database.read("SELECT 1"));
    const began = performance.now();
    await database.close();
    assert.ok(performance.now() - began < within(3000));
    assert.equal((await hanging).error.http, 503);
    assert.equal((await failing(() => database.read("SELECT 1"))).error.code, "shutting_down");
  });

  test("a locked row is waited for until the timeout, and other rows stay writable", async () => {
    await using here = await scene({ connections: 3 });
    const { database, other } = here;
    await database.write([add("held"), add("free")]);
    await other.query("BEGIN");
    await other.query("UPDATE things SET n = 1 WHERE id = 'held'");
    const blocked = failing(() => database.write([set("held", 2)]));
    for (let round = 0; round < 20; round++) assert.ok((await database.write([set("free", round)])).ok);
    const { error } = await blocked;
    assert.equal(error.code, "overloaded");
    assert.match(error.message, /postgres_lock_ms/);
    await other.query("ROLLBACK");
    assert.ok((await database.write([set("held", 3)])).ok);
  });

  test("a write without a response is reported as unknown; one that was never sent is retried", async () => {
    await using here = await scene();
    const { database, relay, other } = here;
    await database.write([add("a")]);
    await other.query("SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE application_name = 'hangar'");
    assert.ok((await database.write([add("b")])).ok, "connections that the server ended are replaced");
    await other.query("BEGIN");
    await other.query("LOCK TABLE things IN EXCLUSIVE MODE");
    const unanswered = failing(() => database.write([add("c")]));
    await waitUntilBlocked(other);
    relay.silence();
    await other.query("COMMIT");
    const { error } = await unanswered;
    assert.match(error.message, /whether it happened is not known/);
    assert.match(error.extras.hint ?? "", /Idempotency-Key/);
    assert.deepEqual(await idsOf(other), ["a", "b", "c"]);
  });

  test("calls over the pool size wait for a connection, and the timeout names the setting", async () => {
    await using here = await scene({ connections: 2, call_ms: CALL_MS });
    const { database, other } = here;
    const many = await Promise.all(Array.from({ length: 200 }, (_, index) => database.write([add(`m${index}`)])));
    assert.ok(many.every(({ ok }) => ok));
    const { rows } = await other.query("SELECT 1 FROM pg_stat_activity WHERE application_name = 'hangar'");
    assert.ok(rows.length <= 2, `${rows.length} connections`);
    await other.query("BEGIN");
    await other.query("LOCK TABLE things IN ACCESS EXCLUSIVE MODE");
    const failures = await Promise.all([1, 2, 3].map(() => failing(() => database.read("SELECT * FROM things"))));
    await other.query("ROLLBACK");
    const crowded = failures.find(({ error }) => error.code === "overloaded")?.error ?? assert.fail("no call");
    assert.match(crowded.message, /setting database_connections/);
    assert.match(crowded.extras.hint ?? "", /HANGAR_DATABASE_CONNECTIONS/);
  });
});

suite("PostgreSQL without free connections", { skip: postgresMissing() }, () => {
  test("a server at max_connections is a retryable 503 that names the setting; open connections go on", async (t) => {
    const small = await startPostgres({ max_connections: 6 });
    t.after(() => small.stop());
    const url = await small.database();
    const database = await openPostgres(url, { call_ms: CALL_MS });
    const others: pg.Client[] = [];
    const full = async (): Promise<void> => {
      for (;;) {
        const client = new pg.Client(url);
        client.on("error", () => {});
        await client.connect();
        others.push(client);
      }
    };
    await assert.rejects(full(), { code: "53300" });
    const calls = await Promise.all(Array.from({ length: 50 }, () => database.read("SELECT 1 AS one")));
    assert.equal(calls.length, 50, "the connection that is open serves all of them");
    const { error } = await failing(() => openPostgres(url, { call_ms: CALL_MS }));
    assert.equal(error.code, "overloaded");
    assert.equal(error.http, 503);
    assert.equal(error.extras.retry_after_s, 2);
    assert.match(error.message, /accepts no further connection/);
    assert.match(error.extras.hint ?? "", /max_connections.*HANGAR_DATABASE_CONNECTIONS/);
    await Promise.all(others.map((client) => client.end()));
    await database.close();
    await (await openPostgres(url)).close();
  });
});
