/** The public interface of orgs, tokens, apps and secrets, as a client sees it. */
import assert from "node:assert/strict";
import { suite, test } from "node:test";
import { virtualClock } from "#core/fixtures.ts";
import { attenuate, parse, serialize } from "#core/macaroon.ts";
import { testPlatform } from "./platform.ts";

suite("orgs and apps", () => {
  test("an organization is created, read, and deleted only when empty", async (t) => {
    const { ask } = await testPlatform(t);
    const created = await ask("POST /v1/orgs", { body: { name: "Acme & Söhne" } });
    assert.equal(created.status, 201);
    assert.deepEqual([created.body.name, created.body.slug], ["Acme & Söhne", "acme-so-hne"]);
    const slugs = (await ask("GET /v1/orgs")).body.organizations.map((org: { slug: string }) => org.slug);
    assert.deepEqual(slugs, ["acme-so-hne", "personal"]);
    await ask("POST /v1/apps", { body: { app_name: "shop", org_slug: "acme-so-hne" } });
    assert.equal((await ask("DELETE /v1/orgs/acme-so-hne")).body.status, "org_not_empty");
    assert.equal((await ask("DELETE /v1/apps/shop")).status, 202);
    assert.equal((await ask("DELETE /v1/orgs/acme-so-hne")).status, 204);
    assert.equal((await ask("GET /v1/orgs/acme-so-hne")).status, 404);
    assert.equal((await ask("DELETE /v1/orgs/personal")).status, 403);
  });

  test("an app is created by name or app_name, listed, read and deleted", async (t) => {
    const { ask } = await testPlatform(t);
    const created = await ask("POST /v1/apps", { body: { app_name: "web", org_slug: "personal" } });
    assert.equal(created.status, 201);
    assert.equal(created.body.name, "web");
    assert.equal(created.body.organization.slug, "personal");
    assert.match(created.body.id, /^[0-9a-z]{16}$/);
    assert.equal((await ask("POST /v1/apps?wait=true", { body: { name: "api" } })).status, 201);
    const list = await ask("GET /v1/apps?org_slug=personal");
    assert.equal(list.body.total_apps, 2);
    assert.deepEqual(
      list.body.apps.map((app: { name: string }) => app.name),
      ["api", "web"],
    );
    assert.equal((await ask("GET /v1/apps/web/")).body.id, created.body.id);
    const gone = await ask("DELETE /v1/apps/web");
    assert.deepEqual([gone.status, gone.text], [202, ""]);
    assert.equal((await ask("GET /v1/apps/web")).status, 404);
  });

  test("taken and invalid names are refused with 422 and what is allowed", async (t) => {
    const { ask } = await testPlatform(t);
    await ask("POST /v1/apps", { body: { app_name: "web" } });
    const taken = await ask("POST /v1/apps", { body: { app_name: "web" } });
    assert.deepEqual([taken.status, taken.body.status], [422, "name_taken"]);
    assert.match(taken.body.error, /Name has already been taken/);
    for (const name of ["a:b", "a/b", "A", "-a", "a-", "", "a b", "ä", "a".repeat(64), "a.b", "*", "а", "a_b", "a\n"]) {
      const bad = await ask("POST /v1/apps", { body: { app_name: name } });
      assert.deepEqual([bad.status, bad.body.status], [422, "invalid_name"], JSON.stringify(name));
    }
    const org = await ask("POST /v1/orgs", { body: { name: "x", slug: "a:b" } });
    assert.equal(org.body.status, "invalid_name");
  });

  test("all problems of a request are reported at once, with their paths", async (t) => {
    const { ask } = await testPlatform(t);
    const bad = await ask("POST /v1/orgs/personal/tokens", { body: { kind: "none", name: 5, expiry: [] } });
    assert.deepEqual([bad.status, bad.body.status], [400, "invalid_request"]);
    const paths = bad.body.details.map((detail: { path: string }) => detail.path);
    assert.deepEqual(paths, ["body.kind", "body.name", "body.expiry"]);
    assert.equal(bad.body.details[0].allowed, '"org" or "readonly"');
    const query = await ask("DELETE /v1/apps/web?force=perhaps");
    assert.equal(query.body.details[0].path, "query.force");
  });

  test("null is absence, an unknown field gives a warning, [] is an empty object", async (t) => {
    const { ask } = await testPlatform(t);
    const created = await ask("POST /v1/apps", { body: { app_name: "web", network: null, netwrok: "x" } });
    assert.equal(created.status, 201);
    assert.match(String(created.headers["svc-warning"]), /"netwrok" is not a field.*did you mean network/);
    const empty = await ask("POST /v1/apps", { body: "[]" });
    assert.equal(empty.body.details[0].path, "body.app_name");
  });
});

suite("secrets", () => {
  test("secret values are never returned; the digest changes with the value", async (t) => {
    const { ask } = await testPlatform(t);
    await ask("POST /v1/apps", { body: { app_name: "web" } });
    const canary = "canary-9f8e7d6c";
    const set = await ask("POST /v1/apps/web/secrets", { body: { values: { KEY: canary, OTHER: "2" } } });
    assert.equal(set.status, 200);
    assert.equal(set.body.version, 1);
    const first = set.body.secrets[0];
    assert.deepEqual(Object.keys(first), ["name", "digest", "created_at", "updated_at"]);
    const again = await ask("POST /v1/apps/web/secrets/KEY", { body: { value: `${canary}!` } });
    assert.deepEqual([again.status, again.body.version], [201, 2]);
    assert.notEqual(again.body.digest, first.digest);
    const removed = await ask("POST /v1/apps/web/secrets", { body: { values: { OTHER: null } } });
    assert.deepEqual(
      removed.body.secrets.map((secret: { name: string }) => secret.name),
      ["KEY"],
    );
    const all = JSON.stringify([
      set,
      again,
      removed,
      await ask("GET /v1/apps/web/secrets"),
      await ask("GET /v1/apps/web/secrets/KEY"),
    ]);
    assert.ok(!all.includes(canary));
    assert.deepEqual((await ask("DELETE /v1/apps/web/secrets/KEY")).body, { version: 4 });
    assert.equal((await ask("DELETE /v1/apps/web/secrets/KEY")).status, 404);
  });

  test("invalid names and long values are refused together, and nothing is stored", async (t) => {
    const { ask } = await testPlatform(t);
    await ask("POST /v1/apps", { body: { app_name: "web" } });
    const values = { "A-B": "1", "1A": "1", LONG: "x".repeat(65 * 1024), FINE: "1" };
    const bad = await ask("POST /v1/apps/web/secrets", { body: { values } });
    assert.equal(bad.status, 400);
    assert.equal(bad.body.details.length, 3);
    assert.deepEqual((await ask("GET /v1/apps/web/secrets")).body.secrets, []);
  });
});

suite("tokens", () => {
  test("an org token works in its organization only; resources of others are 404", async (t) => {
    const { ask } = await testPlatform(t);
    await ask("POST /v1/orgs", { body: { name: "acme" } });
    await ask("POST /v1/apps", { body: { app_name: "theirs", org_slug: "personal" } });
    const { body } = await ask("POST /v1/orgs/acme/tokens", { body: { kind: "org", name: "ci" } });
    const token: string = body.token;
    assert.equal((await ask("POST /v1/apps", { token, body: { app_name: "ours" } })).body.organization.slug, "acme");
    assert.equal((await ask("GET /v1/apps/theirs", { token })).status, 404);
    assert.equal((await ask("GET /v1/apps?org_slug=personal", { token })).status, 404);
    assert.equal((await ask("POST /v1/apps", { token, body: { app_name: "x", org_slug: "personal" } })).status, 404);
    assert.deepEqual((await ask("GET /v1/orgs", { token })).body.organizations.length, 1);
    assert.equal((await ask("POST /v1/orgs", { token, body: { name: "more" } })).status, 403);
    assert.equal((await ask("POST /v1/orgs/acme/tokens", { token, body: { kind: "org" } })).status, 403);
  });

  test("a read-only token reads, and writes are refused with the reason", async (t) => {
    const { ask } = await testPlatform(t);
    await ask("POST /v1/apps", { body: { app_name: "web" } });
    const token: string = (await ask("POST /v1/orgs/personal/tokens", { body: { kind: "readonly" } })).body.token;
    assert.equal((await ask("GET /v1/apps/web", { token })).status, 200);
    for (const target of [
      "POST /v1/apps",
      "DELETE /v1/apps/web",
      "POST /v1/apps/web/secrets",
      "DELETE /v1/apps/nowhere",
    ]) {
      const refused = await ask(target, {
        token,
        ...(target.startsWith("POST") ? { body: { app_name: "x", values: {} } } : {}),
      });
      assert.equal(refused.status, 403, target);
      assert.match(refused.body.error, /caveat org: the token allows read, this needs (create|delete|write)/);
    }
  });

  test("an attenuated token is restricted accordingly, and the refusal names the caveat", async (t) => {
    const { ask } = await testPlatform(t);
    for (const app_name of ["web", "api"]) await ask("POST /v1/apps", { body: { app_name } });
    const wide: string = (await ask("POST /v1/orgs/personal/tokens", { body: { kind: "org" } })).body.token;
    const narrow = serialize(attenuate(parse(wide), [{ type: "apps", apps: { web: 1 } }]));
    assert.equal((await ask("GET /v1/apps/web", { token: narrow })).status, 200);
    assert.match(
      (await ask("GET /v1/apps/api", { token: narrow })).body.error,
      /caveat apps: the token is for app web only/,
    );
    assert.match(
      (await ask("DELETE /v1/apps/web", { token: narrow })).body.error,
      /caveat apps: the token allows read/,
    );
    const elsewhere = serialize(attenuate(parse(wide), [{ type: "from_machine", machine: "148e21ea7e46e8" }]));
    assert.match((await ask("GET /v1/apps/web", { token: elsewhere })).body.error, /caveat from_machine/);
  });

  test("revoking takes effect at once, also for tokens derived from it (A5)", async (t) => {
    const { ask } = await testPlatform(t);
    const { token, id } = (await ask("POST /v1/orgs/personal/tokens", { body: { kind: "org" } })).body;
    const child = serialize(attenuate(parse(token), [{ type: "actions", actions: 1 }]));
    assert.equal((await ask("GET /v1/apps", { token: child })).status, 200);
    const revoked = await ask(`DELETE /v1/orgs/personal/tokens/${id}`);
    assert.ok(revoked.body.revoked_at);
    for (const one of [token, child]) {
      const refused = await ask("GET /v1/apps", { token: one });
      assert.equal(refused.status, 401);
      assert.match(refused.body.error, /revoked/);
    }
    const [listed] = (await ask("GET /v1/orgs/personal/tokens")).body.tokens;
    assert.equal(listed.revoked_at, revoked.body.revoked_at);
    assert.ok(!JSON.stringify(listed).includes(token));
    assert.equal((await ask("DELETE /v1/orgs/personal/tokens/nobody")).status, 404);
  });

  test("an expired token is refused with the time of its expiry", async (t) => {
    const clock = virtualClock(1_800_000_000_000);
    const { ask } = await testPlatform(t, {}, { clock });
    const token: string = (await ask("POST /v1/orgs/personal/tokens", { body: { kind: "org", expiry: "1h" } })).body
      .token;
    assert.equal((await ask("GET /v1/apps", { token })).status, 200);
    clock.jump(3_600_001);
    const refused = await ask("GET /v1/apps", { token });
    assert.equal(refused.status, 401);
    assert.match(refused.body.error, /expired 2027-01-15T09:00:00Z/);
  });

  test("a token describes its permissions, and answers whether an action is allowed", async (t) => {
    const { ask } = await testPlatform(t);
    const token: string = (await ask("POST /v1/orgs/personal/tokens", { body: { kind: "readonly", name: "grafana" } }))
      .body.token;
    const [me] = (await ask("GET /v1/tokens/current", { token })).body.tokens;
    assert.deepEqual([me.kind, me.name, me.org_slug], ["readonly", "grafana", "personal"]);
    assert.equal(me.rights[0], "only organization personal: read");
    const may = await ask("POST /v1/tokens/authorize", {
      body: { token, action: "delete", org_slug: "personal", app_name: "web" },
    });
    assert.deepEqual(may.body, { allowed: false, reason: "caveat org: the token allows read, this needs delete" });
    assert.equal((await ask("POST /v1/tokens/authorize", { body: { action: "delete" } })).body.allowed, true);
  });

  test("no token is allowed anything with an app of another organization", async (t) => {
    const { ask } = await testPlatform(t);
    await ask("POST /v1/orgs", { body: { name: "other" } });
    for (const [app_name, org_slug] of [
      ["web", "personal"],
      ["theirs", "other"],
    ])
      await ask("POST /v1/apps", { body: { app_name, org_slug } });
    const { token } = (await ask("POST /v1/orgs/personal/tokens", { body: { kind: "org" } })).body;
    const may = async (body: object): Promise<unknown> =>
      (await ask("POST /v1/tokens/authorize", { token, body: { action: "read", ...body } })).body;
    const missing = { allowed: false, reason: 'Could not find App "theirs"' };
    assert.deepEqual(await may({ app_name: "web" }), { allowed: true });
    assert.deepEqual(await may({ app_name: "web", org_slug: "personal" }), { allowed: true });
    assert.deepEqual(await may({ app_name: "theirs" }), missing);
    assert.deepEqual(await may({ app_name: "theirs", org_slug: "personal" }), missing);
    assert.deepEqual(await may({ app_name: "theirs", action: "create" }), missing);
    assert.deepEqual(await may({ app_name: "new", action: "create" }), { allowed: true });
  });

  test("a deploy token works for one app only", async (t) => {
    const { ask } = await testPlatform(t);
    for (const app_name of ["web", "api"]) await ask("POST /v1/apps", { body: { app_name } });
    const token: string = (await ask("POST /v1/apps/web/deploy_token", { body: {} })).body.token;
    assert.equal((await ask("POST /v1/apps/web/secrets", { token, body: { values: { A: "1" } } })).status, 200);
    assert.equal((await ask("POST /v1/apps/api/secrets", { token, body: { values: { A: "1" } } })).status, 403);
    assert.equal((await ask("POST /v1/apps/nowhere/deploy_token", { body: {} })).status, 404);
  });
});
