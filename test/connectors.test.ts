/** Connectors as a client sees them. */
import assert from "node:assert/strict";
import { suite, test } from "node:test";
import { inside } from "./inside.ts";

const SECRET = "canary-token-4f1c9b";

suite("connectors API", () => {
  test("a connector is created with a key, listed, read and deleted; no response shows its secret", async (t) => {
    const platform = await inside(t);
    const { ask } = platform;
    const made = await ask("POST /v1/oauth/connections/api_key", { body: { provider: "github", api_key: SECRET } });
    assert.equal(made.status, 201);
    const { connection } = made.body;
    assert.deepEqual(
      [connection.provider, connection.connection_type, connection.access_policy],
      ["github", "api_key", {}],
    );
    for (const field of ["id", "provider_account_id", "provider_account_name", "inserted_at", "updated_at", "user_id"])
      assert.equal(typeof connection[field], "string", field);
    assert.equal(connection.provider_account_name, "GitHub", "unless it is called otherwise");
    assert.equal(connection.token_expires_at, undefined);
    assert.equal(
      connection.usage_snippet,
      `curl --unix-socket /.svc/api '${platform.base_url}/v1/gateway/github/${connection.id}/user'`,
    );
    const path = `/v1/oauth/connections/${connection.id}`;
    const one = await ask(`GET ${path}`);
    assert.deepEqual(one.body, { connection });
    const list = await ask("GET /v1/oauth/connections");
    assert.deepEqual(list.body, { connections: [connection] });
    assert.deepEqual((await ask("GET /v1/oauth/connections?provider=slack")).body, { connections: [] });
    for (const { text } of [made, one, list]) assert.ok(!text.includes(SECRET));
    assert.equal((await ask(`DELETE ${path}`)).status, 204);
    assert.equal((await ask(`DELETE ${path}`)).status, 404);
    assert.equal((await ask(`GET ${path}`)).status, 404);
  });

  test("PUT replaces the whole policy; errors are 400, 401 and 404 as specified", async (t) => {
    const { ask } = await inside(t);
    const key = { provider: "github", api_key: SECRET, name: "the team's" };
    const body = { ...key, access_policy: { allow_all: true, name_prefix: "x" } };
    const { id, provider_account_name } = (await ask("POST /v1/oauth/connections/api_key", { body })).body.connection;
    assert.equal(provider_account_name, "the team's");
    const path = `PUT /v1/oauth/connections/${id}`;
    const access_policy = {
      allowed_endpoints: ["/user", "/repos/*"],
      blocked_endpoints: ["/repos/secret*"],
      name_prefix: "web-",
      sprite_labels: ["prod"],
    };
    const put = await ask(path, { body: { access_policy } });
    assert.equal(put.status, 200);
    assert.deepEqual(put.body.connection.access_policy, access_policy);
    assert.deepEqual((await ask(path, { body: { access_policy: {} } })).body.connection.access_policy, {});
    const warned = await ask(path, { body: { access_policy: { allow_all: true, blocked_endpoints: ["/a/*/b"] } } });
    assert.match(warned.body.warnings[0], /never matches/);
    for (const wrong of [
      {},
      { access_policy: "x" },
      { access_policy: { allow_all: "yes" } },
      { access_policy: { sprite_labels: [1] } },
      "{",
    ])
      assert.equal((await ask(path, { body: wrong })).status, 400, JSON.stringify(wrong));
    assert.equal((await ask(path, { body: { access_policy }, token: null })).status, 401);
    assert.equal((await ask("PUT /v1/oauth/connections/nothing", { body: { access_policy } })).status, 404);
  });

  test("another organization's connector is 404", async (t) => {
    const { ask } = await inside(t);
    await ask("POST /v1/orgs", { body: { name: "acme" } });
    const { token } = (await ask("POST /v1/orgs/acme/tokens", { body: { kind: "org" } })).body;
    const body = { provider: "openai", api_key: SECRET };
    const { id } = (await ask("POST /v1/oauth/connections/api_key", { body })).body.connection;
    assert.equal((await ask(`GET /v1/oauth/connections/${id}`, { token })).status, 404);
    assert.deepEqual((await ask("GET /v1/oauth/connections", { token })).body, { connections: [] });
    assert.equal((await ask(`PUT /v1/oauth/connections/${id}`, { token, body: { access_policy: {} } })).status, 404);
  });

  test("a connector that cannot work is refused at creation, with the reason", async (t) => {
    const { ask } = await inside(t);
    const cases: [string, object, RegExp][] = [
      ["api_key", { provider: "githup", api_key: "x" }, /did you mean github/],
      ["api_key", { provider: "github", api_key: "a\nb" }, /cannot stand in a header/],
      ["api_key", { provider: "discourse", api_key: "x" }, /base_url is required/],
      ["api_key", { provider: "custom_api", api_key: "x" }, /connected another way/],
      ["api_key", { provider: "s3_object_store", api_key: "x", base_url: "https://s3.example" }, /ACCESS_KEY_ID/],
      ["provision", { provider: "openai" }, /operator provides no key/],
    ];
    const address = (base_api_url: string) => ({ name: "n", base_api_url, access_token: "t", auth_method: "header" });
    for (const url of [
      "ftp://x.example",
      "x",
      "https://user:pw@x.example",
      "https://x.example/?a=1",
      "https://x.example/#a",
    ])
      cases.push(["custom_api", address(url), /body.base_api_url/]);
    for (const [way, body, reason] of cases) {
      const answer = await ask(`POST /v1/oauth/connections/${way}`, { body });
      assert.equal(answer.status, 400, JSON.stringify(body));
      assert.match(answer.body.error, reason);
    }
    const warned = await ask("POST /v1/oauth/connections/custom_api", {
      body: address("http://169.254.169.254/latest"),
    });
    assert.match(warned.body.warnings[0], /not a public address.*ALLOW_PRIVATE/);
  });
});
