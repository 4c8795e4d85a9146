/** Idempotency-Key as a client meets it (M7). */
import assert from "node:assert/strict";
import { randomBytes } from "node:crypto";
import { suite, test } from "node:test";
import { systemClock } from "#core/clock.ts";
import { ApiError } from "#core/errors.ts";
import { LIMITS } from "#core/limits.ts";
import { MovingClock } from "#core/moving-clock.ts";
import { Sealer } from "#core/sealer.ts";
import { Idempotency } from "#http/idempotency.ts";
import { migrate } from "#stores/migrate.ts";
import { sqlIdempotencyStore } from "#stores/sql/idempotency.ts";
import { inlineSqlite } from "#stores/sqlite/inline.ts";
import { testPlatform } from "./platform.ts";

suite("Idempotency-Key", () => {
  test("a hundred parallel creates with one key make one app, and all get its response", async (t) => {
    const { ask } = await testPlatform(t);
    const headers = { "idempotency-key": "deploy-42" };
    const answers = await Promise.all(
      Array.from({ length: 100 }, () => ask("POST /v1/apps", { body: { app_name: "web" }, headers })),
    );
    assert.deepEqual([...new Set(answers.map((answer) => answer.status))], [201]);
    assert.equal(new Set(answers.map((answer) => answer.body.id)).size, 1);
    assert.equal(answers.filter((answer) => answer.headers["idempotent-replayed"] !== "true").length, 1);
    assert.equal((await ask("GET /v1/apps")).body.total_apps, 1);
  });

  test("a created token is returned again to the same caller only", async (t) => {
    const clock = new MovingClock({});
    const { ask } = await testPlatform(t, {}, { clock });
    const headers = { "idempotency-key": "k" };
    const first = await ask("POST /v1/orgs/personal/tokens", { body: { kind: "org" }, headers });
    // Not even the moment at which it expires is another one.
    clock.jump(5000);
    const again = await ask("POST /v1/orgs/personal/tokens", { body: { kind: "org" }, headers });
    assert.equal(first.body.token, again.body.token);
    const other: string = first.body.token;
    assert.equal(
      (await ask("POST /v1/orgs/personal/tokens", { body: { kind: "org" }, headers, token: other })).status,
      403,
    );
    // That one may not create tokens anyway; apps it may, and it gets no answer to what another did.
    const body = { app_name: "web" };
    assert.equal((await ask("POST /v1/apps", { body, headers })).status, 201);
    assert.equal((await ask("POST /v1/apps", { body, headers, token: other })).body.status, "name_taken");
  });

  test("a request for a credential that is sent twice with one key is carried out again, and makes one", async (t) => {
    const { ask } = await testPlatform(t);
    await ask("POST /v1/apps", { body: { app_name: "web" } });
    await ask("PUT /v1/apps/web/previews/settings", { body: { enabled: true } });
    const requests: Record<string, object | undefined> = {
      "POST /v1/orgs/personal/tokens": { kind: "org" },
      "POST /v1/apps/web/deploy_token": {},
      "POST /v1/tokens/sign_in_codes": undefined,
      "POST /v1/orgs/personal/webhooks": { url: "http://127.0.0.1:9/hook" },
      "POST /v1/orgs/personal/log-drains": { kind: "loki", url: "http://127.0.0.1:9" },
      "POST /v1/platform/host_join_tokens": undefined,
      "POST /v1/oauth/connections/api_key": { provider: "github", api_key: "k" },
      "POST /v1/apps/web/git/webhooks": { repository: "https://example.com/acme/shop.git" },
      "POST /v1/apps/web/previews": { branch: "feature/x" },
    };
    for (const [target, body] of Object.entries(requests)) {
      const send = () => ask(target, { headers: { "idempotency-key": "k" }, ...(body ? { body } : {}) });
      const [first, again] = [await send(), await send()];
      assert.deepEqual(
        [first.status, again.status < 300],
        [first.status, true],
        `${target}: ${first.text} ${again.text}`,
      );
      assert.ok(first.status < 300, `${target}: ${first.text}`);
      const { id, token } = first.body;
      assert.equal(again.body.id, id, target);
      // A preview that is opened again gets another token, and keeps its app.
      if (!target.endsWith("/previews")) assert.equal(again.body.token, token, target);
    }
    for (const [list, key] of [
      ["GET /v1/orgs/personal/webhooks", "webhooks"],
      ["GET /v1/orgs/personal/log-drains", "log_drains"],
      ["GET /v1/apps/web/git/webhooks", "webhooks"],
      ["GET /v1/apps/web/previews", "previews"],
    ] as const)
      assert.equal((await ask(list)).body[key].length, 1, list);
  });

  test("a key with another body is refused; a refused request leaves its key unused", async (t) => {
    const { ask } = await testPlatform(t);
    const headers = { "idempotency-key": "k" };
    assert.equal((await ask("POST /v1/apps", { body: { app_name: "Bad Name" }, headers })).status, 422);
    assert.equal((await ask("POST /v1/apps", { body: { app_name: "web" }, headers })).status, 201);
    const mismatch = await ask("POST /v1/apps", { body: { app_name: "api" }, headers });
    assert.deepEqual([mismatch.status, mismatch.body.status], [422, "idempotency_mismatch"]);
    assert.equal(
      (await ask("POST /v1/apps", { body: { app_name: "x" }, headers: { "idempotency-key": "bad key" } })).status,
      400,
    );
  });

  test("a refusal after a run with an unknown outcome keeps the key, so that the next run finds what the first one made", async () => {
    const database = inlineSqlite();
    await migrate(database);
    const clock = new MovingClock({});
    const parts = { store: sqlIdempotencyStore(database), sealer: new Sealer(randomBytes(32)), clock };
    const request = { caller: "c", method: "POST", path: "/", key: "k", body: "{}", recorded: true };
    const idempotency = new Idempotency({ ...parts, runner: "node1" });
    const made: string[] = [];
    const attempt = async (error?: ApiError) =>
      await idempotency.once(request, async (ids) => {
        made.push(ids.short());
        if (error) throw error;
        return { status: 201, body: "{}" };
      });
    for (const code of ["storage_failed", "insufficient_capacity"] as const) {
      await assert.rejects(attempt(new ApiError(code, "")), { code });
      clock.jump(1000);
    }
    assert.equal((await attempt()).status, 201);
    assert.equal(new Set(made).size, 1, "always the same ids");
    await database.close();
  });

  test("a key is kept for its time when the wall clock is set forward, and not for ever after that", async () => {
    const database = inlineSqlite();
    await migrate(database);
    const clock = new MovingClock({ frozen: true });
    const parts = { store: sqlIdempotencyStore(database), sealer: new Sealer(randomBytes(32)), clock };
    const idempotency = new Idempotency({ ...parts, runner: "node1" });
    const isRepeated = async (key: string): Promise<boolean> => {
      const request = { caller: "c", method: "POST", path: "/", key, body: "{}", recorded: true };
      return (await idempotency.once(request, async () => ({ status: 201, body: "{}" }))).repeated;
    };
    const kept = LIMITS.idempotency_kept_ms;
    assert.equal(await isRepeated("before"), false);
    clock.jump(10 * kept);
    await idempotency.expire();
    assert.equal(await isRepeated("before"), true);
    assert.equal(await isRepeated("after"), false);
    for (const half of [1, 2]) {
      await clock.advance(kept / 2 + 1000);
      await idempotency.expire();
      assert.equal(await isRepeated("before"), half === 1, `after ${half} half times`);
      if (half === 1) assert.equal(await isRepeated("after"), true);
    }
    await database.close();
  });

  test("a request that crashed is run again with the same ids, by its own process at once", async () => {
    const database = inlineSqlite();
    await migrate(database);
    const parts = { store: sqlIdempotencyStore(database), sealer: new Sealer(randomBytes(32)), clock: systemClock };
    const request = { caller: "c", method: "POST", path: "/", key: "k", body: "{}", recorded: true };
    const made: string[] = [];
    const dying = new Idempotency({ ...parts, runner: "node1" });
    await assert.rejects(
      dying.once(request, async (ids) => {
        made.push(ids.short());
        throw new Error("killed here: the effect is there, the answer is not");
      }),
    );
    const other = new Idempotency({ ...parts, runner: "node2" });
    await assert.rejects(
      other.once(request, async () => ({ status: 200, body: "" })),
      { code: "idempotency_in_progress" },
    );
    const restarted = new Idempotency({ ...parts, runner: "node1" });
    const result = await restarted.once(request, async (ids) => {
      made.push(ids.short());
      return { status: 201, body: "{}" };
    });
    assert.deepEqual(result, { status: 201, body: "{}", repeated: false });
    assert.equal(made[0], made[1]);
    assert.equal((await other.once(request, async () => ({ status: 500, body: "" }))).repeated, true);
    await database.close();
  });
});
