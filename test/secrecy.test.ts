/** Secrets are encrypted at rest and never returned: a canary in every secret, and a search for it everywhere (A6). */
import assert from "node:assert/strict";
import { readdirSync, readFileSync, statSync } from "node:fs";
import { join } from "node:path";
import { suite, test } from "node:test";
import { testPlatform } from "./platform.ts";

suite("secrecy", () => {
  test("no secret, token or key is readable in the data dir, except in the two files that hold them (A6)", async (t) => {
    const platform = await testPlatform(t, { HANGAR_LOG_LEVEL: "debug" });
    const { ask, data_dir, token } = platform;
    const canary = "canary-5e1f0c9a";
    await ask("POST /v1/apps", { body: { app_name: "web" } });
    await ask("POST /v1/apps/web/secrets", { body: { values: { A: canary } }, headers: { "idempotency-key": canary } });
    await ask(`GET /v1/apps?org_slug=personal&x=${canary}`);
    await ask("POST /v1/apps", { body: `{"app_name":"${canary}"` });
    const created: string = (
      await ask("POST /v1/orgs/personal/tokens", { body: { kind: "org" }, headers: { "idempotency-key": "t" } })
    ).body.token;
    const connectors = "/v1/oauth/connections";
    const body = { provider: "github", api_key: `key-${canary}` };
    const { id } = (await ask(`POST ${connectors}/api_key`, { body, headers: { "idempotency-key": "c" } })).body
      .connection;
    await ask(`PUT ${connectors}/${id}/api_key`, { body: { api_key: `next-${canary}` } });
    const api = { name: "n", base_api_url: "https://x.example", auth_method: "query", access_token: `token-${canary}` };
    await ask(`POST ${connectors}/custom_api`, { body: api });
    await ask(`POST ${connectors}/api_key`, { body: { provider: "github", api_key: `bad\n${canary}` } });
    await ask("GET /oidc/personal/.well-known/jwks.json");
    const open = ["token", "master.key", "lock", ...readdirSync(data_dir).filter((name) => name.includes(".db"))];
    assert.ok(open.length > 5, open.join());
    for (const file of open) assert.equal(statSync(join(data_dir, file)).mode & 0o777, 0o600, file);
    await platform.close();

    const key = readFileSync(join(data_dir, "master.key"), "utf8").trim();
    const needles = {
      secret: canary,
      "created token": created,
      "token's body": created.slice(10, 60),
      "full-access token": token,
      "master key": key,
    };
    const home: Record<string, string> = { "full-access token": "token", "master key": "master.key" };
    const files = readdirSync(data_dir, { recursive: true }) as string[];
    for (const file of files.filter((name) => statSync(join(data_dir, name)).isFile())) {
      const content = readFileSync(join(data_dir, file)).toString("latin1");
      for (const [what, needle] of Object.entries(needles)) {
        if (home[what] !== file) assert.ok(!content.includes(needle), `${what} is readable in ${file}`);
      }
    }
    assert.equal(statSync(data_dir).mode & 0o777, 0o700);
  });

  test("no GET route, metric, event or log returns a secret (A6)", async (t) => {
    const platform = await testPlatform(t);
    const { ask, data_dir, token } = platform;
    const canary = "canary-77ab31d0";
    await ask("POST /v1/apps", { body: { app_name: "web" } });
    await ask("POST /v1/apps/web/secrets", { body: { values: { PASSWORD: canary } } });
    const config = {
      image: "x",
      files: [{ guest_path: "/password", secret_name: "PASSWORD" }],
      processes: [{ secrets: [{ env_var: "PASSWORD" }] }],
    };
    const machine = (await ask("POST /v1/apps/web/machines", { body: { config } })).body.id;
    assert.equal((await ask(`GET /v1/apps/web/machines/${machine}/wait?state=started`)).status, 200);
    const api_key = { provider: "github", api_key: `key-${canary}` };
    const connection = (await ask("POST /v1/oauth/connections/api_key", { body: api_key })).body.connection.id;
    const created: string = (await ask("POST /v1/orgs/personal/tokens", { body: { kind: "org" } })).body.token;
    const filled: Record<string, string> = {
      org_slug: "personal",
      app_name: "web",
      machine_id: machine,
      connection_id: connection,
      secret_name: "PASSWORD",
    };

    const { paths } = (await ask("GET /openapi.json")).body as { paths: Record<string, Record<string, unknown>> };
    const readable = Object.keys(paths).filter((path) => paths[path]?.["get"]);
    let answered = 0;
    for (const path of readable) {
      const url = path.replaceAll(/\{(\w+)\}/g, (_, name: string) => filled[name] ?? "x");
      const { status, text } = await ask(`GET ${url}${url.endsWith("/wait") ? "?state=started" : ""}`);
      if (status < 300) answered++;
      const master = readFileSync(join(data_dir, "master.key"), "utf8").trim();
      for (const [what, needle] of Object.entries({ canary, created, token, master }))
        assert.ok(!text.includes(needle), `${what} is in the answer of GET ${url}`);
    }
    t.diagnostic(`${readable.length} routes were read, of which ${answered} had something to tell`);
    assert.ok(answered > 30, `only ${answered} routes answered`);
  });

  test("a start with another master key is refused by name, and changes nothing", async (t) => {
    const first = await testPlatform(t);
    await first.ask("POST /v1/apps", { body: { app_name: "web" } });
    await first.close();
    const env = { HANGAR_DATA_DIR: first.data_dir };
    const wrong = Buffer.alloc(32, 1).toString("base64");
    await assert.rejects(testPlatform(t, { ...env, HANGAR_MASTER_KEY: wrong }), /master key is not the one/);
    const again = await testPlatform(t, env);
    assert.equal(again.token, first.token);
    assert.equal((await again.ask("GET /v1/apps/web")).status, 200);
  });
});
