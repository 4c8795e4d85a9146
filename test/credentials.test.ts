/** What a token makes can never do more, or live longer, than the token. Each test is an attack that worked. */
import assert from "node:assert/strict";
import { once } from "node:events";
import { suite, test } from "node:test";
import { WebSocket } from "ws";
import { ACTIONS, type Caveat } from "#core/caveats.ts";
import { attenuate, parse, serialize } from "#core/macaroon.ts";
import { MovingClock } from "#core/moving-clock.ts";
import { type Inside, inside, type Machine } from "./inside.ts";

const DAY_MS = 86_400_000;

const narrowed = (token: string, ...caveats: Caveat[]): string => serialize(attenuate(parse(token), caveats));

async function orgToken({ ask }: Inside): Promise<{ token: string; id: string }> {
  return (await ask("POST /v1/orgs/personal/tokens", { body: { kind: "org" } })).body;
}

/** A connector to the platform itself; answers how a machine calls it. */
async function admin(platform: Inside, machine: Machine, token: string | undefined) {
  const body = { provider: "sprites_admin", access_policy: { allow_all: true } };
  const made = await platform.ask("POST /v1/oauth/connections/provision", { body, ...(token ? { token } : {}) });
  assert.equal(made.status, 201, made.text);
  const { id } = made.body.connection as { id: string };
  const call = async (target: string, sent?: object) =>
    await platform.from(
      machine,
      target.replace(" ", ` /v1/gateway/sprites_admin/${id}`),
      sent ? { body: JSON.stringify(sent), headers: { "content-type": "application/json" } } : {},
    );
  return { id, call };
}

suite("credentials made by a token", () => {
  test("a connector to the platform has at most the permissions of the token that made it", async (t) => {
    const platform = await inside(t);
    const machine = await platform.machine("web-1");
    const { token } = await orgToken(platform);
    const { call } = await admin(platform, machine, narrowed(token, { type: "actions", actions: ACTIONS.create }));
    assert.equal((await call("DELETE /v1/apps/web?force=true")).status, 403);
    assert.equal((await call("GET /v1/apps/web/machines")).status, 403);
    assert.equal((await call("POST /v1/apps", { app_name: "made" })).status, 201);
  });

  test("a connector is revoked with the token that made it, and with that token's parent", async (t) => {
    const platform = await inside(t);
    const machine = await platform.machine("web-1");
    const { token, id } = await orgToken(platform);
    const { call } = await admin(platform, machine, token);
    assert.equal((await call("GET /v1/apps/web/machines")).status, 200);
    await platform.ask(`DELETE /v1/orgs/personal/tokens/${id}`);
    const refused = await call("GET /v1/apps/web/machines");
    assert.equal(refused.status, 403);
    assert.match(refused.body.error, /token that made .* was revoked/);
    const key = { provider: "github", api_key: "k", access_policy: { allow_all: true } };
    const other = await orgToken(platform);
    const github = await platform.ask("POST /v1/oauth/connections/api_key", { body: key, token: other.token });
    await platform.ask(`DELETE /v1/orgs/personal/tokens/${other.id}`);
    const path = `/v1/gateway/github/${github.body.connection.id}/user`;
    assert.equal((await platform.from(machine, `GET ${path}`)).status, 403);
  });

  test("a connector expires with the token that made it", async (t) => {
    const clock = new MovingClock({ start_ms: Date.UTC(2030, 0, 1), frozen: true });
    const platform = await inside(t, {}, { clock });
    const machine = await platform.machine("web-1");
    const { token } = await orgToken(platform);
    const not_after_s = clock.now() / 1000 + 3600;
    const { call } = await admin(
      platform,
      machine,
      narrowed(token, { type: "validity", not_before_s: 0, not_after_s }),
    );
    assert.equal((await call("GET /v1/apps/web/machines")).status, 200);
    await clock.advance(DAY_MS);
    assert.equal((await call("GET /v1/apps/web/machines")).status, 403);
  });

  test("a connector's credential reaches no route that creates credentials", async (t) => {
    const platform = await inside(t);
    const machine = await platform.machine("web-1");
    const { id, call } = await admin(platform, machine, undefined);
    const key = { provider: "github", api_key: "k" };
    const attempts: [string, object][] = [
      ["POST /v1/tokens/sign_in_codes", {}],
      ["POST /v1/orgs/personal/tokens", { kind: "org" }],
      ["POST /v1/apps/web/deploy_token", {}],
      ["POST /v1/orgs/personal/webhooks", { url: "http://127.0.0.1:1/" }],
      ["POST /v1/orgs/personal/log-drains", { kind: "loki", url: "http://127.0.0.1:1/" }],
      ["POST /v1/oauth/connections/api_key", key],
      ["POST /v1/oauth/connections/provision", { provider: "sprites_admin" }],
      [`PUT /v1/oauth/connections/${id}`, { access_policy: { allow_all: true } }],
    ];
    for (const [target, body] of attempts) {
      const answer = await call(target, body);
      assert.equal(answer.status, 403, `${target}: ${answer.text}`);
    }
  });

  test("every route that creates a credential is marked so in its row", async (t) => {
    const { rows } = await inside(t);
    const makes = /token|secret|code|connection/;
    const suspects = rows.filter(
      ({ method, path, response: answer }) =>
        method === "POST" && answer.schema && makes.test(path) && JSON.stringify(answer.schema).includes('"token"'),
    );
    for (const row of suspects)
      assert.ok(row.credential || row.access === "open" || row.access === "machine", row.path);
  });
});

suite("Idempotency-Key", () => {
  test("an attenuated token does not get the response recorded for the wider one", async (t) => {
    const platform = await inside(t);
    const { token } = await orgToken(platform);
    const headers = { "idempotency-key": "k1" };
    const body = { app_name: "secret-plan" };
    const first = await platform.ask("POST /v1/apps", { token, body, headers });
    assert.equal(first.status, 201);
    const child = narrowed(token, { type: "apps", apps: { web: ACTIONS.read } });
    const stolen = await platform.ask("POST /v1/apps", { token: child, body, headers });
    assert.equal(stolen.status, 403, stolen.text);
    const cousin = narrowed(token, { type: "actions", actions: ACTIONS.create });
    assert.equal((await platform.ask("POST /v1/apps", { token: cousin, body, headers })).status, 422, "a new request");
  });

  test("a response with a credential is not recorded, and a repeat returns the same token", async (t) => {
    const platform = await inside(t);
    const headers = { "idempotency-key": "k2" };
    const body = { kind: "org" };
    const first = await platform.ask("POST /v1/orgs/personal/tokens", { body, headers });
    const again = await platform.ask("POST /v1/orgs/personal/tokens", { body, headers });
    assert.deepEqual([again.status, again.body.id, again.body.token], [201, first.body.id, first.body.token]);
    const codes = await Promise.all(
      [1, 2].map(() => platform.ask("POST /v1/tokens/sign_in_codes", { headers: { "idempotency-key": "k3" } })),
    );
    assert.notEqual(codes[0]?.body.code, codes[1]?.body.code);
  });
});

test("sign-in codes of one token do not evict another's", async (t) => {
  const platform = await inside(t);
  const { token } = (await platform.ask("POST /v1/orgs/personal/tokens", { body: { kind: "readonly" } })).body;
  const { code } = (await platform.ask("POST /v1/tokens/sign_in_codes")).body;
  for (let i = 0; i < 150; i++) await platform.ask("POST /v1/tokens/sign_in_codes", { token });
  assert.equal((await platform.ask("POST /v1/tokens/sign_in", { token: null, body: { code } })).status, 200);
});

suite("long-lived sessions", () => {
  const open = async (platform: Inside, path: string, token: string): Promise<Response> =>
    await fetch(`${platform.base_url}${path}`, { headers: { authorization: `Bearer ${token}` } });

  /** Resolves when the other side has ended the answer. */
  async function ended(response: Response): Promise<void> {
    const reader = (response.body as ReadableStream<Uint8Array>).getReader();
    for (;;) if ((await reader.read()).done) return;
  }

  for (const path of ["/v1/apps/web/events", "/v1/orgs/personal/events", "/v1/apps/web/logs?follow=true"]) {
    test(`GET ${path} ends when its token is revoked`, async (t) => {
      const platform = await inside(t);
      const { token, id } = await orgToken(platform);
      const response = await open(platform, path, token);
      assert.equal(response.status, 200, path);
      await platform.ask(`DELETE /v1/orgs/personal/tokens/${id}`);
      await ended(response);
    });
  }

  test("a terminal ends when its token is revoked, with the reason", async (t) => {
    const platform = await inside(t);
    const machine = await platform.machine("web-1");
    const { token, id } = await orgToken(platform);
    const url = `${platform.base_url.replace("http", "ws")}/v1/apps/web/machines/${machine.id}/terminal`;
    const socket = new WebSocket(url, { headers: { authorization: `Bearer ${token}` } });
    await once(socket, "open");
    await platform.ask(`DELETE /v1/orgs/personal/tokens/${id}`);
    const [code, reason] = (await once(socket, "close")) as [number, Buffer];
    assert.equal(code, 1008);
    assert.match(reason.toString(), /revoked/);
  });

  test("a stream ends when its token expires", async (t) => {
    const platform = await inside(t);
    const { token } = await orgToken(platform);
    const not_after_s = Math.ceil(Date.now() / 1000) + 1;
    const response = await open(
      platform,
      "/v1/apps/web/events",
      narrowed(token, { type: "validity", not_before_s: 0, not_after_s }),
    );
    assert.equal(response.status, 200);
    await ended(response);
  });
});
