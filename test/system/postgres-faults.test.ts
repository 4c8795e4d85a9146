/**
 * Several processes on one PostgreSQL whose connections fail as they do in the field: one process is stopped in the
 * middle of its work, connections go silent without being closed, the platform is stopped while they are.
 */
import assert from "node:assert/strict";
import { suite, type TestContext, test } from "node:test";
import { setTimeout as delay } from "node:timers/promises";
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

async function startTwo(t: TestContext): Promise<Processes> {
  const postgres = await startPostgres();
  t.after(() => postgres.stop());
  const direct = await postgres.database();
  const url = new URL(direct.replace("@/", "@localhost/"));
  const relay = await startRelay(`${url.searchParams.get("host")}/.s.PGSQL.5432`);
  t.after(() => relay.close());
  const relayed = `postgres://hangar@127.0.0.1:${relay.port}${url.pathname}`;
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

suite("PostgreSQL faults", { skip: postgresMissing() }, () => {
  test("a process stopped in the middle of its writes does not block other processes", async (t) => {
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

  test("with silent connections every request ends in time, and the platform recovers by itself", async (t) => {
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
