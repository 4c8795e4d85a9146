/** What a call sends by its deadline, and what its caller learns when there was no answer by then. */
import assert from "node:assert/strict";
import { suite, test } from "node:test";
import { setTimeout as delay } from "node:timers/promises";
import pg from "pg";
import { messageOf } from "#core/assert.ts";
import { LIMITS } from "#core/limits.ts";
import { postgresMissing } from "../../../test/postgres.ts";
import { random, runs, seed, until } from "../../../test/support.ts";
import { BatchError } from "./batch.ts";
import { openPostgres } from "./database.ts";
import { add, CALL_MS, failing, idsOf, type Scene, scene } from "./fixtures.ts";
import { isUndone } from "./trouble.ts";

const UNKNOWN = /whether it happened is not known/;
const NOTHING = /nothing was changed/;

/** As a process that is stopped (SIGSTOP) and continued. */
function stopFor(ms: number): void {
  Atomics.wait(new Int32Array(new SharedArrayBuffer(4)), 0, 0, ms);
}

/** Nothing that was sent is still on its way to the server, or at work there. */
async function untilSettled({ database, other }: Scene): Promise<void> {
  await database.close();
  await until("the sessions of this process have ended", async () => {
    const { rows } = await other.query(
      "SELECT 1 FROM pg_stat_activity WHERE datname = current_database() AND application_name LIKE 'hangar%'",
    );
    return rows.length === 0;
  });
}

suite("PostgreSQL, the deadline of a call", { skip: postgresMissing() }, () => {
  test("a process that was stopped past the deadline of a waiting write does not send it afterwards", async (t) => {
    await using here = await scene();
    const { client } = here;
    const other = new pg.Client(client);
    await other.connect();
    t.after(() => other.end());
    const url = `postgres://hangar@/${client.database}?host=${encodeURIComponent(client.host)}`;
    const database = await openPostgres(url, { connections: 1, call_ms: CALL_MS });
    t.after(() => database.close());
    const began = performance.now();
    const busy = database.read("SELECT pg_sleep(0.4)");
    const waiting = failing(() => database.write([add("late")]));
    // Both answers are there after the first stop. The first one read stops the process past the deadline; then the
    // second one frees the connection, before any timer can run.
    const second = other.query("SELECT pg_sleep(0.2)").then(() => stopFor(began + CALL_MS + 100 - performance.now()));
    setTimeout(() => stopFor(600), 100);
    await Promise.all([busy, second]);
    const { error } = await waiting;
    assert.match(error.message, NOTHING);
    assert.deepEqual(await idsOf(here.other), []);
  });

  test("a write of which a part never left the process is reported as not done, and is not", async () => {
    await using here = await scene();
    const { database, relay, other } = here;
    await database.write([add("before")]);
    relay.stall();
    const { error } = await failing(() => database.write([add("x".repeat(64 << 20))]));
    assert.equal(error.code, "storage_failed");
    assert.match(error.message, NOTHING);
    relay.restore();
    await untilSettled(here);
    assert.deepEqual(await idsOf(other), ["before"]);
  });

  test("the error names the whole time of a call, not that of its last attempt", async () => {
    await using here = await scene();
    const { database, relay } = here;
    // So old that a call probes it first, and then tries another connection.
    await delay(LIMITS.postgres_fresh_ms + 100);
    relay.silence();
    for (const call of [() => database.read("SELECT 1"), () => database.write([add("a")])]) {
      const { ms, error } = await failing(call);
      const named = Number(/(\d+) ms/.exec(error.message)?.[1]);
      assert.ok(named > CALL_MS * 0.9 && named <= Math.ceil(ms), `${error.message}, after ${ms} ms`);
    }
    await failing(() => database.write([add("b")]));
  });

  test("an error that ends the session after the last statement leaves the outcome open, that of the commit does not", () => {
    const refused = (code: string, completed: number): boolean =>
      isUndone(new BatchError(Object.assign(new Error("refused"), { code }), completed, "refused"), 2);
    for (const code of ["57P01", "57P02", "25P04"])
      assert.deepEqual([refused(code, 1), refused(code, 2)], [true, false], code);
    for (const code of ["23505", "40001", "57014"]) assert.ok(refused(code, 2), code);
  });

  test("on a link that stalls now and then, `nothing was changed` is true, and `not known` is of what was sent", async (t) => {
    const dice = random(seed(t));
    await using here = await scene({ call_ms: 250, connections: 3 });
    const { database, relay, other } = here;
    const sent = new Set<string>();
    relay.onSent = (piece) => {
      for (const [id] of piece.toString("latin1").matchAll(/<w\d+>/g)) sent.add(id);
    };
    const calm = (): void => {
      relay.delay_ms = 0;
      relay.restore();
    };
    const faults = [
      () => relay.hold("out"),
      () => relay.hold("in"),
      () => relay.hold("in", "out"),
      () => {
        relay.delay_ms = Math.floor(dice() * 200);
      },
      calm,
      calm,
      calm,
    ];
    const writes: Promise<{ id: string; message: string }>[] = [];
    for (let round = 0; round < runs(60); round++) {
      const id = `<w${round}>`;
      const write = database.write([add(id)]);
      writes.push(
        write.then(
          () => ({ id, message: "" }),
          (thrown: unknown) => ({ id, message: messageOf(thrown) }),
        ),
      );
      faults[Math.floor(dice() * faults.length)]?.();
      await delay(dice() * 100);
    }
    calm();
    const answers = await Promise.all(writes);
    await untilSettled(here);
    const there = new Set(await idsOf(other));
    const of = (pattern: RegExp): string[] => answers.filter((one) => pattern.test(one.message)).map(({ id }) => id);
    assert.equal(of(/^$/).length + of(UNKNOWN).length + of(NOTHING).length, answers.length, "each is one of three");
    for (const id of of(/^$/)) assert.ok(there.has(id), `${id} was acknowledged and is missing`);
    for (const id of of(UNKNOWN)) assert.ok(sent.has(id), `${id} is said to be open and was never sent`);
    for (const id of of(NOTHING))
      assert.ok(!sent.has(id) && !there.has(id), `${id} is said not to be done and was sent`);
    t.diagnostic(`${of(/^$/).length} done, ${of(UNKNOWN).length} not known, ${of(NOTHING).length} not done`);
  });
});
