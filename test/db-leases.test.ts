/** Leases of replicated databases over the platform's API, asked as a node asks. */
import assert from "node:assert/strict";
import { suite, test } from "node:test";
import { systemClock } from "#core/clock.ts";
import { HttpLeases, sendTo } from "#replication/election/http-leases.ts";
import { leaseStoreSuite } from "#replication/election/lease-store.suite.ts";
import { type TestPlatform, testPlatform } from "./platform.ts";

const TTL_MS = 10_000;

async function withApp(platform: TestPlatform, app_name: string): Promise<void> {
  const made = await platform.ask("POST /v1/apps", { body: { app_name, org_slug: "personal" } });
  assert.equal(made.status, 201, made.text);
}

leaseStoreSuite("the platform's API", TTL_MS, async (t) => {
  let ahead_ms = 0;
  const clock = { ...systemClock, monotonic: () => performance.now() + ahead_ms };
  const platform = await testPlatform(t, {}, { clock });
  await withApp(platform, "web");
  const open = (): HttpLeases =>
    new HttpLeases({ app: "web", name: "main", send: sendTo(platform.base_url, () => platform.token) });
  const pass = (ms: number): Promise<void> => {
    ahead_ms += ms;
    return Promise.resolve();
  };
  return { a: open(), b: open(), pass, close: () => platform.close() };
});

suite("replication leases over the API", () => {
  test("each app has its own leases, other organizations' tokens have none, and they go with their app", async (t) => {
    const platform = await testPlatform(t);
    for (const app of ["web", "other"]) await withApp(platform, app);
    const on = (app: string, token = platform.token): HttpLeases =>
      new HttpLeases({ app, name: "main", send: sendTo(platform.base_url, () => token) });
    const candidate = { node: "one", url: "http://one", term: 0, complete_term: 0 };
    assert.equal((await on("web").acquire(candidate, TTL_MS))?.term, 1);
    assert.equal(await on("other").holder(), undefined);
    await assert.rejects(on("web", "nonsense").holder(), /401/);
    await assert.rejects(on("none").holder(), /404/);
    assert.equal((await platform.ask("DELETE /v1/apps/web")).status, 202);
    await withApp(platform, "web");
    assert.equal(await on("web").holder(), undefined);
  });

  test("a node that knows a higher term gets one above it after the platform lost its state", async (t) => {
    const platform = await testPlatform(t);
    await withApp(platform, "web");
    const leases = new HttpLeases({ app: "web", name: "x", send: sendTo(platform.base_url, () => platform.token) });
    assert.equal((await leases.acquire({ node: "a", url: "http://a", term: 41, complete_term: 41 }, TTL_MS))?.term, 42);
  });
});
