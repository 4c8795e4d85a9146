/**
 * Several processes on one PostgreSQL whose connections fail as they do in the field: one process is stopped in the
 * middle of its work, connections go silent without being closed, the platform is stopped while they are.
 */
import assert from "node:assert/strict";
import { suite, type TestContext, test } from "node:test";
import { setTimeout as delay } from "node:timers/promises";
import pg from "pg";
import { postgresMissing, startPostgres } from "../postgres.ts";
import { type Relay, startRelay } from "../relay.ts";
import { random, runs, seed, tempDir, until, within } from "../support.ts";
import { type Daemon, startDaemon } from "./daemon.ts";

interface Processes {
  /** Its connections go through the relay. */
  first: Daemon;
  second: Daemon;
  relay: Relay;
  machine: string;
}

/** A server, and another way to it that a test can cut. */
async function startRelayed(t: TestContext): Promise<{ relay: Relay; direct: string; relayed: string }> {
  const postgres = await startPostgres();
  t.after(() => postgres.stop());
  const direct = await postgres.database();
  const url = new URL(direct.replace("@/", "@localhost/"));
  const relay = await startRelay(`${url.searchParams.get("host")}/.s.PGSQL.5432`);
  t.after(() => relay.close());
  return { relay, direct, relayed: `postgres://hangar@127.0.0.1:${relay.port}${url.pathname}` };
}

async function startTwo(t: TestContext): Promise<Processes> {
  const { relay, direct, relayed } = await startRelayed(t);
  const first = await startDaemon(t, tempDir(), ["--database", relayed, "--log-level", "error", "--host-lease", "60"]);
  const token = String((await first.call("POST", "/v1/platform/host_join_tokens")).body["token"]);
  const flags = ["--role", "control", "--database", direct, "--log-level", "error", "--join-token", token];
  const second = await startDaemon(t, tempDir(), flags);
  await first.call("POST", "/v1/apps", { app_name: "web", org_slug: "personal" });
  const made = await first.call("POST", "/v1/apps/web/machines", { config: { image: "web:1" } });
  assert.equal(made.status, 200, JSON.stringify(made.body));
  return { first, second, relay, machine: String(made.body["id"]) };
}

const put = async (daemon: Daemon, machine: string, key: string): Promise<number> =>
  (await daemon.call("POST", `/v1/apps/web/machines/${machine}/metadata/${key}`, { value: "x" })).status;

const create = async (daemon: Daemon, more: object = {}): Promise<{ status: number; id: string }> => {
  const wish = { config: { image: "web:1" }, skip_launch: true, ...more };
  const { status, body } = await daemon.call("POST", "/v1/apps/web/machines", wish);
  return { status, id: String(body["id"]) };
};

/** How long the slowest of several took. */
async function slowestOf(times: number, ask: (index: number) => Promise<number>, status: number): Promise<number> {
  let slowest = 0;
  for (let index = 0; index < times; index++) {
    const began = performance.now();
    assert.equal(await ask(index), status);
    slowest = Math.max(slowest, performance.now() - began);
  }
  return slowest;
}

/** Both writes are done in the server but for their end, and their process is stopped. */
async function stopInTransactions(
  direct: string,
  { first, relay, machine }: Pick<Processes, "first" | "relay" | "machine">,
): Promise<{ asked: Promise<unknown> }> {
  const looking = new pg.Client(direct);
  await looking.connect();
  relay.holdSync("frozen");
  const asked = Promise.allSettled([
    put(first, machine, "frozen"),
    create(first, { name: "frozen", skip_launch: false }),
  ]);
  const held = "SELECT 1 FROM pg_stat_activity WHERE backend_xid IS NOT NULL AND wait_event = 'ClientRead'";
  await until("two transactions are open", async () => (await looking.query(held)).rows.length >= 2);
  first.child.signal("SIGSTOP");
  await looking.end();
  return { asked };
}

suite("postgres faults", { skip: postgresMissing() }, () => {
  test("a process that is stopped in the middle of its writes keeps no other process from writing", async (t) => {
    const { first, second } = await startTwo(t);
    const { body } = await first.call("POST", "/v1/apps/web/machines", {
      config: { image: "web:1" },
      skip_launch: true,
    });
    const { body: other } = await first.call("POST", "/v1/apps/web/machines", {
      config: { image: "web:1" },
      skip_launch: true,
    });
    const choose = random(seed(t));
    let loading = true;
    let loaded = 0;
    const load = Array.from({ length: 8 }, async (_, lane) => {
      while (loading) {
        await put(first, String(body["id"]), `load${lane}`).catch(() => 0);
        loaded++;
      }
    });
    let slowest = 0;
    for (let round = 0; round < runs(15, 200); round++) {
      const before = loaded;
      await until("the first one is at work", () => loaded > before + 2);
      await delay(choose() * 20);
      first.child.signal("SIGSTOP");
      try {
        for (let write = 0; write < 3; write++) {
          const began = performance.now();
          assert.equal(await put(second, String(other["id"]), `round${round}`), 204, `round ${round}`);
          slowest = Math.max(slowest, performance.now() - began);
        }
      } finally {
        first.child.signal("SIGCONT");
      }
    }
    loading = false;
    await Promise.all(load);
    t.diagnostic(`slowest write beside a stopped process: ${slowest.toFixed(0)} ms`);
    assert.ok(slowest < within(1000), `${slowest} ms`);
  });

  test("a process that is stopped inside a transaction holds up no write, list or beat of another", async (t) => {
    const { relay, direct, relayed } = await startRelayed(t);
    const flags = ["--log-level", "error", "--host-lease", "15"];
    const second = await startDaemon(t, tempDir(), ["--database", direct, ...flags]);
    const token = String((await second.call("POST", "/v1/platform/host_join_tokens")).body["token"]);
    const joining = ["--role", "control", "--database", relayed, "--join-token", token, "--log-level", "error"];
    const first = await startDaemon(t, tempDir(), joining);
    await second.call("POST", "/v1/apps", { app_name: "web", org_slug: "personal" });
    const [held, free] = [(await create(second)).id, (await create(second)).id];
    const { asked } = await stopInTransactions(direct, { first, relay, machine: held });
    const get = (path: string) => second.call("GET", path, undefined, { accept: "application/json" });
    const list = (path: string) => async () => (await get(path)).status;
    const took = {
      "write of another machine": await slowestOf(20, (index) => put(second, free, `k${index}`), 204),
      "list of machines": await slowestOf(5, list("/v1/apps/web/machines"), 200),
      "page of the event log": await slowestOf(2, list("/v1/apps/web/events?cursor=0"), 200),
      "create on the same host": await slowestOf(
        2,
        async () => (await create(second, { skip_launch: false })).status,
        200,
      ),
      "write of the same machine": await slowestOf(1, () => put(second, held, "after"), 204),
    };
    const { body: hosts } = await second.call("GET", "/v1/platform/hosts");
    assert.deepEqual(
      (hosts["hosts"] as { state: string }[]).map(({ state }) => state),
      ["ok"],
    );
    const logged = async (): Promise<unknown[]> =>
      (await get("/v1/apps/web/events?cursor=0")).body["events"] as unknown[];
    await until("the log tells all that was acknowledged", async () => (await logged()).length >= 4);
    first.child.signal("SIGCONT");
    relay.restore();
    await asked;
    await until("the stopped one goes on", async () => (await put(first, held, "back")) === 204);
    t.diagnostic(
      `beside a process that is stopped inside a transaction: ${Object.entries(took)
        .map(([what, ms]) => `${what} ${ms.toFixed(0)} ms`)
        .join(", ")}`,
    );
    assert.ok(took["write of another machine"] < within(1000));
    assert.ok(took["list of machines"] < within(1000));
  });

  test("connections that went silent: every request ends in its time, and it goes on by itself", async (t) => {
    const { first, second, relay, machine } = await startTwo(t);
    relay.silence();
    const began = performance.now();
    const answers = await Promise.all([
      put(first, machine, "a"),
      put(first, machine, "b"),
      first.call("GET", "/v1/apps/web/machines").then(({ status }) => status),
      fetch(`${first.base_url}/healthz`).then(({ status }) => status),
    ]);
    const took = performance.now() - began;
    assert.deepEqual(answers, [503, 503, 503, 200]);
    assert.ok(took < within(25_000), `${took} ms`);
    assert.equal(await put(second, machine, "c"), 204, "the other process is not concerned");
    const ready = await fetch(`${first.base_url}/readyz`);
    assert.equal(ready.status, 503);
    const { reasons } = (await ready.json()) as { reasons: { part: string }[] };
    assert.ok(
      reasons.some(({ part }) => part === "database"),
      JSON.stringify(reasons),
    );
    relay.restore();
    const back = performance.now();
    await until("it is ready again", async () => (await fetch(`${first.base_url}/readyz`)).ok);
    await until("it writes again without a restart", async () => (await put(first, machine, "d")) === 204);
    t.diagnostic(
      `requests ended after ${took.toFixed(0)} ms, back ${(performance.now() - back).toFixed(0)} ms after the network`,
    );
  });

  test("SIGTERM ends the process in bounded time while its connections are silent", async (t) => {
    const { first, relay, machine } = await startTwo(t);
    relay.silence();
    const hanging = put(first, machine, "a").catch(() => 0);
    await delay(50);
    const began = performance.now();
    first.child.signal("SIGTERM");
    await first.child.ended;
    await hanging;
    const took = performance.now() - began;
    t.diagnostic(`stopped after ${took.toFixed(0)} ms`);
    assert.ok(took < within(35_000), `${took} ms`);
  });
});
