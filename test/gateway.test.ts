/** The gateway as a machine sees it. */
import assert from "node:assert/strict";
import { suite, test } from "node:test";
import { ask, type Inside, inside, provider } from "./inside.ts";

const PRIVATE = { HANGAR_GATEWAY_ALLOW_PRIVATE: "1" };
const SECRET = "canary-token-4f1c9b";

/** A connector to a provider on this box. */
async function custom(platform: Inside, base_api_url: string, more: object = {}) {
  const body = {
    name: "an api",
    base_api_url,
    access_token: SECRET,
    auth_method: "header",
    access_policy: { allow_all: true },
    ...more,
  };
  const answer = await platform.ask("POST /v1/oauth/connections/custom_api", { body });
  assert.equal(answer.status, 201, answer.text);
  return answer.body.connection as { id: string; usage_snippet: string };
}

suite("connector gateway", () => {
  test("method, query, body and headers pass; the credential is replaced; the response is unchanged (G6)", async (t) => {
    const platform = await inside(t, PRIVATE);
    const upstream = await provider(t, (_request, response) => {
      response.writeHead(418, { "x-provider": "yes", "set-cookie": "session=1", "content-type": "text/plain" });
      response.end("short and stout");
    });
    const { id } = await custom(platform, `${upstream.url}/base`);
    const machine = await platform.machine("web-1");
    const answer = await platform.from(machine, `PATCH /v1/gateway/custom_api/${id}/a/b?x=%2F..&y`, {
      body: "hello",
      headers: {
        authorization: "Bearer mine",
        cookie: "a=b",
        "x-forwarded-for": "1.2.3.4",
        "x-original-url": "/admin",
        "x-http-method-override": "DELETE",
        "content-type": "text/x-mine",
        "x-own": "kept",
        connection: "keep-alive, x-hop",
        "x-hop": "1",
      },
    });
    assert.deepEqual([answer.status, answer.text, answer.headers["x-provider"]], [418, "short and stout", "yes"]);
    assert.equal(answer.headers["set-cookie"], undefined);
    assert.ok(answer.headers["svc-request-id"]);
    const [{ method, url, headers, body } = assert.fail("nothing arrived")] = upstream.seen;
    assert.deepEqual([method, url, body], ["PATCH", "/base/a/b?x=%2F..&y", "hello"]);
    assert.equal(headers.authorization, `Bearer ${SECRET}`);
    assert.deepEqual([headers["content-type"], headers["x-own"]], ["text/x-mine", "kept"]);
    for (const gone of ["cookie", "x-forwarded-for", "x-original-url", "x-http-method-override", "x-hop"])
      assert.equal(headers[gone], undefined, gone);
  });

  test("the credential is put where the connector says: header, query or path", async (t) => {
    const platform = await inside(t, PRIVATE);
    const upstream = await provider(t);
    const machine = await platform.machine("web-1");
    const call = async (more: object, target: string, base = upstream.url) => {
      const { id } = await custom(platform, base, more);
      const { status, text } = await platform.from(machine, `GET /v1/gateway/custom_api/${id}${target}`);
      assert.equal(status, 200, text);
      return upstream.seen.at(-1) ?? assert.fail();
    };
    assert.equal((await call({ auth_header_prefix: "Token" }, "/")).headers.authorization, `Token ${SECRET}`);
    assert.equal((await call({ auth_header_prefix: "" }, "/")).headers.authorization, SECRET);
    assert.equal((await call({ auth_header_name: "X-Key", auth_header_prefix: "" }, "/")).headers["x-key"], SECRET);
    const query = { auth_method: "query", auth_query_name: "key" };
    assert.equal((await call(query, "/a?key=mine&b=1&%6bey=x")).url, `/a?b=1&key=${SECRET}`);
    assert.equal((await call(query, "/a")).url, `/a?key=${SECRET}`);
    const path = { auth_method: "path" };
    assert.equal((await call(path, "/getMe")).url, `/${SECRET}/getMe`);
    assert.equal((await call(path, "/getMe", `${upstream.url}/bot{token}`)).url, `/bot${SECRET}/getMe`);
  });

  test("every denial names its rule, is counted and is in the audit log", async (t) => {
    const platform = await inside(t, PRIVATE);
    const upstream = await provider(t);
    const { id } = await custom(platform, upstream.url, { access_policy: {} });
    const [dev, prod] = [
      await platform.machine("dev-1", { labels: "dev" }),
      await platform.machine("web-1", { labels: "prod, eu" }),
    ];
    const put = (access_policy: object) => platform.ask(`PUT /v1/oauth/connections/${id}`, { body: { access_policy } });
    const get = (machine: typeof dev, path: string) =>
      platform.from(machine, `GET /v1/gateway/custom_api/${id}${path}`);
    const denied = await get(dev, "/user");
    assert.deepEqual([denied.status, denied.body.status, denied.body.rule], [403, "connector_denied", "default"]);
    assert.match(denied.body.error, /denies all sprites by default/);

    await put({ sprite_labels: ["prod", "eu"], name_prefix: "web-" });
    assert.match((await get(dev, "/user")).body.error, /does not start with "web-"/);
    assert.equal((await get(prod, "/user")).status, 200);
    await put({ sprite_labels: ["prod", "us"] });
    assert.match((await get(prod, "/user")).body.error, /missing required labels: us$/);

    await put({ allow_all: true, allowed_endpoints: ["/user", "/repos/*"], blocked_endpoints: ["/repos/secret*"] });
    assert.equal((await get(dev, "/user")).status, 200);
    assert.equal((await get(dev, "/repos/a")).status, 200);
    assert.equal((await get(dev, "/user/repos")).body.rule, "allowed_endpoints");
    assert.equal((await get(dev, "/repos/secret-1")).body.rule, 'blocked_endpoints[0] "/repos/secret*"');
    const crooked = await get(dev, "/repos/%2e%2e/user");
    assert.deepEqual([crooked.status, crooked.body.status], [400, "path_not_canonical"]);
    assert.equal(upstream.seen.length, 3);

    const usage = (await platform.ask(`GET /v1/oauth/connections/${id}/usage`)).body;
    assert.deepEqual([usage.calls, usage.denials, usage.failures], [3, 6, 0]);
    const { entries } = (await platform.ask(`GET /v1/oauth/audit?connection_id=${id}&limit=1000`)).body;
    const count = (action: string): number =>
      entries.filter((entry: { action: string }) => entry.action === action).length;
    assert.deepEqual([count("created"), count("policy"), count("call"), count("denied")], [1, 3, 3, 6]);
    const refused = entries.find(({ rule }: { rule?: string }) => rule?.startsWith("blocked"));
    assert.deepEqual([refused.actor, refused.path, refused.status], ["machine dev-1", "/repos/secret-1", 403]);
  });

  test("only machines may call: no token opens the gateway from outside", async (t) => {
    const platform = await inside(t, PRIVATE);
    const upstream = await provider(t);
    const { id } = await custom(platform, upstream.url);
    for (const token of [platform.token, null, "a.b.c"]) {
      const answer = await platform.ask(`GET /v1/gateway/custom_api/${id}/user`, { token });
      assert.equal(answer.status, 401);
      assert.match(answer.body.error, /authentication failed/);
    }
    const machine = await platform.machine("web-1");
    assert.equal((await platform.from(machine, `GET /v1/gateway/github/${id}/user`)).status, 404);
    assert.equal((await platform.from(machine, "GET /v1/gateway/custom_api/nothing/user")).status, 404);
    assert.equal(upstream.seen.length, 0);
  });

  test("a machine is authenticated by an identity token for the gateway, and by no other", async (t) => {
    const platform = await inside(t, PRIVATE);
    const upstream = await provider(t);
    const { id } = await custom(platform, upstream.url);
    const machine = await platform.machine("web-1");
    const tokenFor = async (aud: string) =>
      (await platform.from(machine, "POST /v1/tokens/oidc", { body: JSON.stringify({ aud }) })).text;
    const { port } = new URL(platform.base_url);
    const call = (token: string) =>
      ask({ port, path: `/v1/gateway/custom_api/${id}/user`, headers: { authorization: `Bearer ${token}` } });
    assert.equal((await call(await tokenFor(`${platform.base_url}/v1/gateway`))).status, 200);
    assert.equal(upstream.seen.at(-1)?.headers.authorization, `Bearer ${SECRET}`);
    const wrong = await call(await tokenFor("sts.amazonaws.com"));
    assert.equal(wrong.status, 401);
    assert.match(wrong.body.error, /another audience; request one for .*\/v1\/gateway/);
    const token = await tokenFor(`${platform.base_url}/v1/gateway`);
    await platform.ask(`POST /v1/apps/web/machines/${machine.id}/stop`);
    await platform.ask(`GET /v1/apps/web/machines/${machine.id}/wait?state=settled`);
    assert.match((await call(token)).body.error, /is stopped/);
  });

  test("private addresses are refused unless the operator allows them", async (t) => {
    const platform = await inside(t);
    const upstream = await provider(t);
    const machine = await platform.machine("web-1");
    for (const base of [upstream.url, upstream.url.replace("127.0.0.1", "localhost")]) {
      const { id } = await custom(platform, base);
      const answer = await platform.from(machine, `GET /v1/gateway/custom_api/${id}/`);
      assert.deepEqual([answer.status, answer.body.status], [403, "address_refused"], base);
      assert.match(answer.body.error, /not a public address/);
    }
    assert.equal(upstream.seen.length, 0);
  });

  test("redirects are returned to the caller, and a credential in the response is masked (G5, G7)", async (t) => {
    const platform = await inside(t, PRIVATE);
    const elsewhere = await provider(t);
    const upstream = await provider(t, (request, response) => {
      response.writeHead(302, {
        location: `${elsewhere.url}/?token=${SECRET}`,
        "x-echo": request.headers.authorization,
      });
      response.write(`you sent ${SECRET.slice(0, 9)}`);
      setImmediate(() => response.end(`${SECRET.slice(9)}!`));
    });
    const { id } = await custom(platform, upstream.url);
    const answer = await platform.from(await platform.machine("web-1"), `GET /v1/gateway/custom_api/${id}/`);
    assert.equal(answer.status, 302);
    assert.equal(elsewhere.seen.length, 0);
    assert.ok(!JSON.stringify(answer).includes(SECRET));
    assert.equal(answer.text, `you sent ${"*".repeat(SECRET.length)}!`);
  });

  test("a new policy, a new key and a deletion apply from the next request on (G9)", async (t) => {
    const platform = await inside(t, PRIVATE);
    const upstream = await provider(t);
    const { id } = await custom(platform, upstream.url);
    const machine = await platform.machine("web-1");
    const call = () => platform.from(machine, `GET /v1/gateway/custom_api/${id}/`);
    assert.equal((await call()).status, 200);
    const rotated = await platform.ask(`PUT /v1/oauth/connections/${id}/api_key`, { body: { api_key: "another-one" } });
    assert.ok(!rotated.text.includes("another-one"));
    await call();
    assert.equal(upstream.seen.at(-1)?.headers.authorization, "Bearer another-one");
    await platform.ask(`PUT /v1/oauth/connections/${id}`, { body: { access_policy: {} } });
    assert.equal((await call()).status, 403);
    await platform.ask(`DELETE /v1/oauth/connections/${id}`);
    assert.equal((await call()).status, 404);
  });

  test("requests and responses without a body pass unchanged", async (t) => {
    const platform = await inside(t, PRIVATE);
    const upstream = await provider(t, (request, response) => {
      response.setHeader("etag", '"1"');
      if (request.method === "HEAD") return void response.setHeader("content-length", 11).end();
      if (request.method === "OPTIONS") return void response.setHeader("allow", "GET").writeHead(204).end();
      response.writeHead(304).end();
    });
    const { id } = await custom(platform, upstream.url);
    const machine = await platform.machine("web-1");
    const call = (method: string, headers = {}) =>
      platform.from(machine, `${method} /v1/gateway/custom_api/${id}/a`, { headers });
    const head = await call("HEAD");
    assert.deepEqual([head.status, head.headers["content-length"], head.text], [200, "11", ""]);
    const options = await call("OPTIONS");
    assert.deepEqual([options.status, options.headers["allow"]], [204, "GET"]);
    assert.equal((await call("GET", { "if-none-match": '"1"' })).status, 304);
    assert.deepEqual(
      upstream.seen.map(({ method, headers }) => [method, headers["if-none-match"]]),
      [
        ["HEAD", undefined],
        ["OPTIONS", undefined],
        ["GET", '"1"'],
      ],
    );
  });

  test("a machine's current labels decide", async (t) => {
    const platform = await inside(t, PRIVATE);
    const upstream = await provider(t);
    const { id } = await custom(platform, upstream.url, { access_policy: { sprite_labels: ["prod"] } });
    const machine = await platform.machine("web-1");
    const call = () => platform.from(machine, `GET /v1/gateway/custom_api/${id}/`);
    assert.equal((await call()).status, 403);
    await platform.ask(`POST /v1/apps/web/machines/${machine.id}/metadata/sprite_labels`, {
      body: { value: "x, prod" },
    });
    assert.equal((await call()).status, 200);
    // The machine itself cannot give itself labels.
    const self = `POST /v1/apps/web/machines/${machine.id}/metadata/sprite_labels`;
    assert.equal((await platform.from(machine, self, { body: '{"value":"all"}' })).status, 401);
  });

  test("an unreachable provider is 502, and counted as a failure", async (t) => {
    const platform = await inside(t, PRIVATE);
    const { id } = await custom(platform, "http://127.0.0.1:9");
    const answer = await platform.from(await platform.machine("web-1"), `GET /v1/gateway/custom_api/${id}/`);
    assert.deepEqual([answer.status, answer.body.status], [502, "upstream_failed"]);
    assert.equal((await platform.ask(`GET /v1/oauth/connections/${id}/usage`)).body.failures, 1);
  });

  test("test_gateway and explain show what a request would do", async (t) => {
    const platform = await inside(t, PRIVATE);
    const upstream = await provider(t, (request, response) => {
      response.statusCode = request.url === "/me" ? 200 : 401;
      response.end();
    });
    const { id } = await custom(platform, upstream.url, {
      test_url: `${upstream.url}/me`,
      access_policy: { name_prefix: "web" },
    });
    const tried = async (body: object) =>
      (await platform.ask(`POST /v1/oauth/connections/${id}/test_gateway`, { body })).body;
    assert.deepEqual([(await tried({})).status, typeof (await tried({})).latency_ms], ["ok", "number"]);
    assert.deepEqual((await tried({ path: "/other" })).message, "the provider answered 401");
    assert.equal((await tried({ sprite: "web-1" })).status, "ok");
    assert.match((await tried({ sprite: "db-1" })).message, /does not start with "web"/);
    const explained = await platform.ask(`POST /v1/oauth/connections/${id}/explain`, {
      body: { sprite: "db-1", path: "/a" },
    });
    assert.deepEqual([explained.body.allowed, explained.body.rule], [false, 'name_prefix "web"']);
    // The labels of a machine that exists are its own.
    await platform.machine("web-2", { labels: "prod" });
    const policy = { sprite: "web-2", path: "/a", access_policy: { sprite_labels: ["prod"] } };
    const known = await platform.ask(`POST /v1/oauth/connections/${id}/explain`, { body: policy });
    assert.deepEqual([known.body.allowed, known.body.rule], [true, "sprite_labels"]);
  });

  test("the platform's own connector manages the organization within its policy", async (t) => {
    const platform = await inside(t);
    const access_policy = {
      allow_all: true,
      allowed_endpoints: ["/v1/apps", "/v1/apps/*"],
      blocked_endpoints: ["/v1/apps/web/secrets*"],
    };
    const made = await platform.ask("POST /v1/oauth/connections/provision", {
      body: { provider: "sprites_admin", access_policy },
    });
    const { id, connection_type } = made.body.connection;
    assert.deepEqual([made.status, connection_type], [201, "internal"]);
    const machine = await platform.machine("web-1");
    const call = (target: string) => platform.from(machine, target.replace(" ", ` /v1/gateway/sprites_admin/${id}`));
    assert.equal((await call("GET /v1/apps/web/machines")).body[0].name, "web-1");
    assert.equal((await call("GET /v1/apps/web/secrets")).status, 403);
    const list = (await platform.from(machine, "GET /v1/gateway/list")).body;
    assert.equal(list.connected[0].id, id);
    await platform.ask(`DELETE /v1/oauth/connections/${id}`);
    const tokens = (await platform.ask("GET /v1/orgs/personal/tokens")).body.tokens;
    assert.equal(tokens.length, 1, "the one that was made for it");
    assert.ok(tokens[0].revoked_at);
  });
});
