/** Authorization codes and refresh against a third-party OAuth server (oidc-provider), as its own process. */
import assert from "node:assert/strict";
import { writeFileSync } from "node:fs";
import { join } from "node:path";
import { suite, test } from "node:test";
import { virtualClock } from "#core/fixtures.ts";
import { inside } from "../inside.ts";
import { tempDir } from "../support.ts";
import { startProgram } from "./child.ts";

const REDIRECT = "http://127.0.0.1:4280/v1/oauth/gitlab/callback";

async function start(t: Parameters<typeof inside>[0]) {
  const server = startProgram(t, "test/system/oauth-server.ts", [REDIRECT]);
  const issuer = (await server.until(/^ready /)).slice(6);
  const config = join(tempDir(), "config.toml");
  const lines = {
    client_id: "hangar",
    client_secret: "client-secret-canary",
    base_url: `${issuer}/api`,
    authorize_url: `${issuer}/auth`,
    token_url: `${issuer}/token`,
  };
  const text = Object.entries(lines).map(([name, value]) => `${name} = "${value}"`);
  writeFileSync(config, `base_url = "http://127.0.0.1:4280"\n[connectors.gitlab]\n${text.join("\n")}\n`);
  const clock = virtualClock();
  const platform = await inside(t, { HANGAR_CONFIG: config, HANGAR_LOG_LEVEL: "debug" }, { clock });
  return { platform, clock, server };
}

/** A browser, as far as it matters here: follows redirects, keeps cookies, stops at the address we come back to. */
async function browse(address: string): Promise<URL> {
  const cookies = new Map<string, string>();
  let url = new URL(address);
  for (let hops = 0; hops < 10 && !url.href.startsWith(REDIRECT); hops++) {
    const cookie = [...cookies].map(([name, value]) => `${name}=${value}`).join("; ");
    const response = await fetch(url, { redirect: "manual", headers: { cookie } });
    for (const line of response.headers.getSetCookie()) {
      const [, name = "", value = ""] = /^([^=]+)=([^;]*)/.exec(line) ?? [];
      cookies.set(name, value);
    }
    const next = response.headers.get("location");
    assert.ok(next, `${url.href}: ${response.status} ${await response.text()}`);
    url = new URL(next, url);
  }
  return url;
}

suite("OAuth connectors", () => {
  test("a person authorizes, a machine calls, and the token is refreshed once before it expires", async (t) => {
    const { platform, clock, server } = await start(t);
    const begun = await platform.ask(
      "GET /v1/oauth/gitlab/authorize?state=my-own-state&scopes=openid,offline_access,read_api",
    );
    assert.equal(begun.status, 200, begun.text);
    assert.equal(begun.body.state, "my-own-state");
    assert.match(begun.body.authorize_url, /code_challenge_method=S256/);
    const back = await browse(begun.body.authorize_url);
    const page = await platform.ask(`GET ${back.pathname}${back.search}`, { token: null });
    assert.match(page.text, /hangar connectors finish/);

    const code = back.searchParams.get("code");
    const finish = (body: object) => platform.ask("POST /v1/oauth/gitlab/callback", { body });
    const refused = await finish({ code, state: "another" });
    assert.deepEqual([refused.status, /not started here/.test(refused.body.error)], [400, true]);
    const made = await finish({ code, state: "my-own-state", access_policy: { allow_all: true } });
    assert.equal(made.status, 201, made.text);
    const { connection } = made.body;
    assert.deepEqual(
      [connection.connection_type, connection.provider_account_id, connection.provider_account_name],
      ["oauth", "7", "ada"],
    );
    // What was granted, not what was asked for.
    assert.equal(connection.scopes, "openid,read_api");
    assert.equal(Date.parse(connection.token_expires_at) - clock.now(), 600_000);
    assert.equal((await finish({ code, state: "my-own-state" })).status, 400, "once");

    const machine = await platform.machine("web-1");
    const call = async () => (await platform.from(machine, `GET /v1/gateway/gitlab/${connection.id}/user`)).body;
    const first = await call();
    assert.equal(first.username, "ada");
    assert.equal((await call()).token_id, first.token_id);
    // Within five minutes of its end: renewed by the next call, and by one of many that come together.
    clock.jump(400_000);
    const together = await Promise.all(Array.from({ length: 20 }, call));
    const ids = new Set(together.map(({ token_id }) => token_id));
    assert.equal(ids.size, 1);
    assert.ok(!ids.has(first.token_id));
    await server.until(/^issued 2$/);
    assert.equal(server.lines.filter((line) => line.startsWith("issued")).length, 2);
    // The refresh token was replaced too, or this one would fail.
    clock.jump(400_000);
    assert.equal((await call()).username, "ada");
    const { entries } = (await platform.ask("GET /v1/oauth/audit?action=refreshed")).body;
    assert.equal(entries.length, 2);
  });

  test("a wrong code gives the provider's error, and an unreachable provider does not end a valid token", async (t) => {
    const { platform, clock, server } = await start(t);
    const { authorize_url, state } = (await platform.ask("GET /v1/oauth/gitlab/authorize?scopes=openid,offline_access"))
      .body;
    const finish = (body: object) => platform.ask("POST /v1/oauth/gitlab/callback", { body });
    await browse(authorize_url);
    const wrong = await finish({ code: "nonsense", state });
    assert.equal(wrong.status, 400);
    assert.match(wrong.body.error, /failed to exchange authorization code.*invalid_grant/);
    const second = (await platform.ask("GET /v1/oauth/gitlab/authorize?scopes=openid,offline_access")).body;
    const code = (await browse(second.authorize_url)).searchParams.get("code");
    const { connection } = (await finish({ code, state: second.state, access_policy: { allow_all: true } })).body;
    const machine = await platform.machine("web-1");
    const call = () => platform.from(machine, `GET /v1/gateway/gitlab/${connection.id}/user`);
    assert.equal((await call()).status, 200);
    await server.kill();
    clock.jump(400_000);
    // The token endpoint is gone and so is the API: what fails is the API, not the connector.
    assert.equal((await call()).body.status, "upstream_failed");
    clock.jump(400_000);
    const late = await call();
    assert.deepEqual([late.status, late.body.status], [502, "upstream_failed"]);
    assert.match(late.body.error, /token endpoint could not be reached/);
  });
});
