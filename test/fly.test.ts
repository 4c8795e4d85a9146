import assert from "node:assert/strict";
import { suite, test } from "node:test";
import { flyPlatform } from "./fly-listener.ts";
import { testPlatform } from "./platform.ts";

const config = { image: "web:1", guest: { cpus: 1, memory_mb: 256 } };

suite("Fly listener", () => {
  test("is there only when the setting names an address", async (t) => {
    assert.equal((await testPlatform(t)).fly_url, undefined);
  });

  test("takes a token behind any stack of schemes, and the one of the platform among several", async (t) => {
    const { flies, token } = await flyPlatform(t);
    for (const authorization of [
      `Bearer ${token}`,
      `FlyV1 ${token}`,
      `Bearer FlyV1 ${token}`,
      `bearer flyv1 SvcV1 ${token}`,
      `FlyV1 fm2_abc,${token}, fo1_xyz`,
      token,
    ])
      assert.equal((await flies("GET /v1/apps?org_slug=personal", { authorization })).status, 200, authorization);
    for (const authorization of [null, "", "FlyV1", "FlyV1 fm2_abc", "Basic eDp5", `Bearer ${token}x`]) {
      const { status, body } = await flies("GET /v1/apps?org_slug=personal", { authorization });
      assert.deepEqual([status, body.code, body.message], [401, "unauthorized", body.error], String(authorization));
    }
  });

  test("answers a machine as Go clients decode it, and returns the nonce only to the lease holder", async (t) => {
    const { flies, ask } = await flyPlatform(t);
    await flies("POST /v1/apps?wait=true", { body: { name: "web", org_slug: "", network: "", app_role_id: "" } });
    const checks = { alive: { type: "tcp", port: 80, interval: "2s", timeout: "1s" } };
    const services = [{ protocol: "tcp", internal_port: 80, ports: [{ start_port: 1000, "end-port": 1010 }] }];
    const statics = { guest_path: "/site", url_prefix: "/" };
    const made = await flies("POST /v1/apps/web/machines", {
      body: { name: "Runner-AbC", lease_ttl: 60, config: { ...config, checks, services, statics, schedule: "" } },
    });
    assert.equal(made.status, 200);
    const { id, nonce } = made.body;
    assert.match(nonce, /^[0-9a-f]+$/);
    assert.match(made.headers.get("fly-request-id") ?? "", /^[0-9A-Z]{26}-local$/);
    assert.equal((await flies(`GET /v1/apps/web/machines/${id}/wait?state=started`)).status, 200);
    const { body: read } = await flies(`GET /v1/apps/web/machines/${id}`);
    assert.deepEqual(
      [read.name, read.host_status, read.nonce, read.checks[0].name, read.config.statics],
      ["runner-abc", "ok", undefined, "alive", [statics]],
    );
    assert.deepEqual(read.config.services[0].ports, [{ start_port: 1000, end_port: 1010 }]);
    const held = await flies(`POST /v1/apps/web/machines/${id}/stop`, { body: { id, timeout: "0s", signal: "" } });
    assert.deepEqual([held.status, held.body.code], [409, "lease_held"]);
    assert.match(held.body.error, /lease currently held by/);
    await flies(`POST /v1/apps/web/machines/${id}/stop`, { body: { id, timeout: "0s" }, nonce });
    const stopped = await flies(`GET /v1/apps/web/machines/${id}/wait?state=stopped&timeout=60`);
    assert.equal(stopped.status, 200);
    // The platform's own listener stays with the specification.
    const ours = (await ask(`GET /v1/apps/web/machines/${id}`)).body;
    assert.equal(Array.isArray(ours.checks), false);
    assert.equal((await ask(`GET /v1/apps/web/machines/${id}/wait?state=stopped`)).status, 400);
  });

  test("keeps empty values that mean something, and drops those that Go cannot leave out", async (t) => {
    const { flies } = await flyPlatform(t);
    await flies("POST /v1/apps", { body: { app_name: "web" } });
    const empty = { init: {}, env: { EMPTY: "" }, restart: { policy: "" }, services: [], schedule: "" };
    const body = { region: "", config: { ...config, ...empty, stop_config: { signal: "", timeout: "0s" } } };
    const { status, body: made } = await flies("POST /v1/apps/web/machines", { body });
    assert.deepEqual([status, made.config?.env], [200, { EMPTY: "" }]);
    const wrong = await flies("POST /v1/apps/web/machines", { body: { config: { ...config, schedule: "never" } } });
    assert.deepEqual([wrong.status, wrong.body.status], [400, "unknown"]);
    assert.match(wrong.body.message, /config\.schedule/);
  });

  test("names an app's host by the platform's domain, over REST and GraphQL", async (t) => {
    const { flies, graphql } = await flyPlatform(t, { HANGAR_DOMAIN: "apps.example.com" });
    const host = "web.apps.example.com";
    assert.equal((await flies("POST /v1/apps", { body: { app_name: "web" } })).body.cname_target, host);
    assert.equal((await flies("GET /v1/apps/web")).body.cname_target, host);
    assert.equal((await flies("GET /v1/apps?org_slug=personal")).body.apps[0].cname_target, host);
    const { body } = await graphql('{ app(name: "web") { hostname cnameTarget appUrl } }');
    assert.deepEqual(body.data.app, { hostname: host, cnameTarget: host, appUrl: `http://${host}` });
  });

  test("has no apps of a role: flyctl deletes the first one when it is no builder", async (t) => {
    const { flies } = await flyPlatform(t);
    await flies("POST /v1/apps", { body: { app_name: "web" } });
    const listed = async (more: string) => (await flies(`GET /v1/apps?org_slug=personal${more}`)).body;
    assert.deepEqual(await listed("&app_role=remote-docker-builder"), { total_apps: 0, apps: [] });
    assert.equal((await listed("&app_role=postgres_cluster&limit=1")).apps.length, 0);
    assert.equal((await listed("")).apps.length, 1);
    assert.equal((await listed("&app_role=")).apps.length, 1);
    const body = { name: "fly-builder-red-sea-1", org_slug: "personal", app_role_id: "remote-docker-builder" };
    const refused = await flies("POST /v1/apps", { body });
    assert.deepEqual([refused.status, refused.body.code], [400, "build_refused"]);
    assert.match(refused.body.message, /hangar deploy/);
  });

  test("speaks of errors in the words that clients compare", async (t) => {
    const { flies } = await flyPlatform(t);
    await flies("POST /v1/apps", { body: { app_name: "web" } });
    const said = async (target: string, body?: unknown) => {
      const answer = await flies(target, { body });
      return [answer.status, answer.body.error, answer.body.status];
    };
    assert.deepEqual(await said("GET /v1/apps/other"), [404, "app not found", "unknown"]);
    assert.deepEqual(await said("GET /v1/apps/web/machines/00000000000000"), [
      404,
      "machine not found: 00000000000000",
      "unknown",
    ]);
    const [status, text, code] = await said("POST /v1/apps", { name: "web", org_slug: "personal" });
    assert.deepEqual([status, code], [422, "name_taken"]);
    assert.match(text, /Name has already been taken/);
    assert.equal((await said("GET /v1/images"))[0], 404, "what is not Fly's is not served");
  });

  test("holds to the access rules, caveats and revocation of the platform", async (t) => {
    const { flies, ask } = await flyPlatform(t);
    await ask("POST /v1/orgs", { body: { name: "other" } });
    for (const [app_name, org_slug] of [
      ["mine", "personal"],
      ["theirs", "other"],
    ] as const)
      await ask("POST /v1/apps", { body: { app_name, org_slug } });
    const tokenOf = async (kind: string) => (await ask("POST /v1/orgs/other/tokens", { body: { kind } })).body;
    const [org, readonly] = [await tokenOf("org"), await tokenOf("readonly")];
    const as = async (token: string, target: string, body?: unknown) =>
      (await flies(target, { body, authorization: `Bearer FlyV1 ${token}` })).status;
    assert.equal(await as(org.token, "GET /v1/apps/theirs"), 200);
    assert.equal(await as(org.token, "GET /v1/apps/mine"), 404);
    assert.equal(await as(org.token, "POST /v1/apps/mine/machines", { config }), 404);
    assert.equal(await as(org.token, "POST /v1/apps", { name: "new", org_slug: "personal" }), 404);
    assert.equal(await as(readonly.token, "GET /v1/apps/theirs/machines"), 200);
    assert.equal(await as(readonly.token, "POST /v1/apps/theirs/machines", { config }), 403);
    assert.equal(await as(readonly.token, "DELETE /v1/apps/theirs"), 403);
    await ask(`DELETE /v1/orgs/other/tokens/${org.id}`);
    assert.equal(await as(org.token, "GET /v1/apps/theirs"), 401);
  });
});
