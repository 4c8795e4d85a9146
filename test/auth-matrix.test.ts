/** Every route × every kind of caller: what each gets follows from the access rule in the route's row. */
import assert from "node:assert/strict";
import { suite, test } from "node:test";
import { attenuate, parse, serialize } from "#core/macaroon.ts";
import { RUN_KEY } from "#core/run-metadata.ts";
import type { Row } from "#http/route.ts";
import { selfSigned } from "#proxy/x509.ts";
import { keepBuilds } from "./kept-builds.ts";
import { type TestPlatform, testPlatform } from "./platform.ts";

type Who = "none" | "garbage" | "wrong org" | "read-only" | "org" | "full" | "revoked" | "narrowed";
type Expected = "pass" | 401 | 403 | 404;

/** No command runs in the sprite, so whoever may ask is told that there is no such session. */
const isMissing = ({ path }: Row): boolean => path.includes("/exec/:session_id");

/** What each caller gets, by the row's access rule. `pass` is anything but 401, 403, and 404 for a hidden thing. */
function expected(row: Row, who: Who): Expected {
  // Its callers show a signature instead of a token.
  if (row.method === "POST" && row.path.endsWith("/git/webhooks/:git_webhook_id")) return 401;
  if (row.access === "open") return "pass";
  // Machines are known by where they call from; no token helps.
  if (row.access === "machine") return 401;
  if (who === "none" || who === "garbage" || who === "revoked") return 401;
  if (who === "full") return "pass";
  // No app is named: there is no repository, whoever asks.
  if (row.path === "/git/*") return 404;
  if (row.access === "any") return "pass";
  const [action, scope] = row.access.split(" ");
  if (scope === "account") return 403;
  // The narrowed token is one of acme for an app that is not the one asked for.
  if (who === "narrowed") return 403;
  if (who === "read-only" && action !== "read") return 403;
  return who === "wrong org" || isMissing(row) ? 404 : "pass";
}

/** What is below these paths has rules of its own (registry.test.ts, system/git-push.test.ts). */
const RELAYED: Record<string, string> = { "/v2/*": "/v2/", "/git/*": "/git/" };

/** What routes that end so ask about. */
const ABOUT: Record<string, string> = { tunnel: "?port=80", delete: "?path=/kept" };

/** About a new sprite, or a file of the one that is there. */
const spriteBody = ({ path }: Row, name: string): object =>
  path.includes("/fs/")
    ? { path: "/kept", source: "/kept", dest: "/kept", mode: "0644", uid: 0 }
    : { name, org_slug: "acme", image: "none:1" };

const WHO: readonly Who[] = ["none", "garbage", "wrong org", "read-only", "org", "revoked", "narrowed", "full"];

/** Deleting rows last, and inner things before outer ones: they take away what the others need. */
const order = (row: Row): number => (row.method === "DELETE" ? 100 - row.path.split("/").length : 0);

/** Asks as `who`, and says what is wrong with the answer, if anything. */
async function judge(platform: TestPlatform, { tokens, url, body }: Furniture, row: Row, who: Who): Promise<string[]> {
  const token = tokens[who];
  const scheme = row.scheme === "metrics" && who !== "full" && who !== "garbage" ? "SvcV1" : "Bearer";
  const headers: Record<string, string> = token === null ? {} : { authorization: `${scheme} ${token}` };
  const payload = body(row);
  const { status, text } = await platform.ask(`${row.method} ${url(row)}`, {
    token: null,
    headers,
    ...(payload ? { body: payload } : {}),
  });
  const want = expected(row, who);
  const passed = ![401, 403].includes(status) && status < 500 && (who === "full" || status !== 404);
  if (want === "pass" ? passed : status === want) return [];
  return [`${row.method} ${row.path} by ${who}: ${status}, expected ${want}: ${text.slice(0, 120)}`];
}

const RECEIVERS = "route: {receiver: r}\nreceivers: [{name: r}]";

interface Furniture {
  tokens: Record<Who, string | null>;
  url(row: Row): string;
  body(row: Row): object | undefined;
}

/** One of everything that a path can name, so that a 404 is a refusal and not an empty house. */
async function furnish(platform: TestPlatform): Promise<Furniture> {
  const { ask } = platform;
  for (const name of ["acme", "other"]) await ask("POST /v1/orgs", { body: { name } });
  await ask("POST /v1/apps", { body: { app_name: "web", org_slug: "acme" } });
  await ask("POST /v1/apps/web/secrets", { body: { values: { KEY: "1" } } });
  // Leased, so that no call of the matrix changes what the next one needs: 409 is not a refusal of the caller.
  const config = { image: "web:1", metadata: { k: "v", [RUN_KEY]: "task" } };
  const machine = (await ask("POST /v1/apps/web/machines", { body: { config, lease_ttl: 3600 } })).body;
  await ask(`GET /v1/apps/web/machines/${machine.id}/wait`);
  const volume = (await ask("POST /v1/apps/web/volumes", { body: { name: "kept" } })).body;
  const snapshot = (await ask(`POST /v1/apps/web/volumes/${volume.id}/snapshots`)).body.Msg.backup;
  await ask("POST /v1/apps/web/ip_assignments", { body: { type: "shared_v4" } });
  for (const hostname of ["www.example.com", "acme.example.com"]) {
    await ask("POST /v1/apps/web/certificates/acme", { body: { hostname } });
  }
  const { chain: fullchain, key: private_key } = selfSigned(["custom.example.com"], Date.now());
  const own = { hostname: "custom.example.com", fullchain, private_key };
  await ask("POST /v1/apps/web/certificates/custom", { body: own });
  await ask("POST /v1/apps/web/releases", { body: { definition: {} } });
  await ask("PUT /v1/orgs/acme/alerts/rules/kept", { body: { content: "groups: []" } });
  await ask("PUT /v1/apps/web/alerts/rules", { body: { content: "groups: []" } });
  await ask("PUT /v1/orgs/acme/alerts/receivers", { body: { content: RECEIVERS } });
  const silencing = { matchers: ["a=b"], duration: "1h" };
  const silence = (await ask("POST /v1/orgs/acme/alerts/silences", { body: silencing })).body;
  await ask("PUT /v1/apps/web/previews/settings", { body: { enabled: true } });
  const preview = (await ask("POST /v1/apps/web/previews", { body: { branch: "kept" } })).body;
  const repository = { repository: "https://git.example.com/acme/shop.git" };
  const git_webhook = (await ask("POST /v1/apps/web/git/webhooks", { body: repository })).body;
  const hook = (await ask("POST /v1/orgs/acme/webhooks", { body: { url: "http://127.0.0.1:1/" } })).body;
  const loki = { kind: "loki", url: "http://127.0.0.1:1/" };
  const drain = (await ask("POST /v1/orgs/acme/log-drains", { body: loki })).body;
  const key = { provider: "github", api_key: "k", org_slug: "acme" };
  const { connection } = (await ask("POST /v1/oauth/connections/api_key", { body: key })).body;
  const make = async (org: string, kind: string) => (await ask(`POST /v1/orgs/${org}/tokens`, { body: { kind } })).body;
  const org = await make("acme", "org");
  const revoked = await make("acme", "org");
  await ask(`DELETE /v1/orgs/acme/tokens/${revoked.id}`);
  const names: Record<string, string> = {
    org_slug: "acme",
    app_name: "web",
    secret_name: "KEY",
    token_id: revoked.id,
    machine_id: machine.id,
    key: "k",
    volume_id: volume.id,
    snapshot_id: snapshot.graph_id,
    webhook_id: hook.id,
    drain_id: drain.id,
    rule_file: "kept",
    receiver: "r",
    silence_id: silence.id,
    host_id: "0001",
    connection_id: connection.id,
    provider: "github",
    ip: "127.0.0.1",
    hostname: "www.example.com",
    version: "1",
    run_id: (await ask("GET /v1/apps/web/runs")).body.runs[0].id,
    preview_name: preview.app_name,
    git_webhook_id: git_webhook.id,
    build_id: (await keepBuilds(platform, "web", 1))[0] ?? "",
  };
  await ask("POST /v1/sprites", { body: { name: "kept", org_slug: "acme", image: "none:1" } });
  await ask("PUT /v1/sprites/kept/fs/write?org_slug=acme&path=/kept", { body: {} });
  names["sprite_name"] = "kept";
  let made = 0;
  return {
    tokens: {
      none: null,
      garbage: "hm1_not-a-token",
      "wrong org": (await make("other", "org")).token,
      "read-only": (await make("acme", "readonly")).token,
      org: org.token,
      narrowed: serialize(attenuate(parse(org.token), [{ type: "apps", apps: { elsewhere: 31 } }])),
      revoked: revoked.token,
      full: platform.token,
    },
    url(row) {
      const about =
        (row.access.endsWith(" org") &&
          (row.method === "GET" || row.part === "images") &&
          !row.path.includes(":org_slug")) ||
        row.path.endsWith("/images/resolve")
          ? "?org_slug=acme&image=none:1&name=none:1"
          : (ABOUT[row.path.split("/").at(-1) ?? ""] ?? "");
      const query = row.style === "prometheus" ? "?query=1&start=1&end=2&step=1&match[]=up" : about;
      // Each kind of removal has one of its own to remove.
      const [kind] = /(?<=hostname\/)(acme|custom)$/.exec(row.path) ?? [];
      names["hostname"] = `${kind ?? "www"}.example.com`;
      const relayed = RELAYED[row.path];
      if (relayed !== undefined) return relayed;
      return row.path.replaceAll(/:(\w+)/g, (_, name: string) => names[name] ?? "x") + query;
    },
    body(row) {
      if (row.method === "GET" || row.method === "DELETE") return undefined;
      if (row.path === "/v1/apps") return { app_name: `new-${++made}`, org_slug: "acme" };
      if (row.path === "/v1/images/pull") return { image: "127.0.0.1:9/none:1", org_slug: "acme" };
      const more = { config, size_gb: 3, metadata: {}, signal: 10, command: ["true"], url: "http://127.0.0.1:1/" };
      const connector = { ...key, base_api_url: "https://api.example", access_token: "t", auth_method: "header" };
      const policy = { access_policy: {}, sprite: "x", path: "/", code: "c", state: "s" };
      if (row.part === "sprites") return spriteBody(row, `n-${++made}`);
      if (row.part === "connectors") return { name: `n-${++made}`, ...connector, ...policy };
      const special: Record<string, object> = {
        certificates: { ...own, hostname: "b.example.com" },
        egress: { mode: "none" },
        "alerts/receivers": { content: RECEIVERS },
        "alerts/silences": silencing,
        "alerts/rules": { content: "groups: []" },
        "alerts/rules/:rule_file": { content: "groups: []" },
        deployments: { action: "rollback" },
        ip_assignments: { type: "shared_v4" },
        "builds/files/missing": { files: [] },
        builds: { files: [{ path: "Dockerfile", sha256: "0".repeat(64) }] },
        "git/webhooks": repository,
        "log-drains": loki,
        "previews/settings": { enabled: true },
        previews: { branch: "kept" },
        releases: { definition: {}, status: "complete" },
        db_leases: { ...more, node: "n", term: 1, complete_term: 1, ttl_ms: 1000 },
      };
      const [, body] = Object.entries(special).find(([word]) => row.path.includes(word)) ?? [];
      if (body) return body;
      return { name: `n-${++made}`, kind: "org", values: { A: "1" }, value: "1", action: "read", ...more };
    },
  };
}

suite("auth matrix (A1)", () => {
  test("every route responds to every caller as its access rule says", async (t) => {
    const platform = await testPlatform(t, { HANGAR_ACME_DIRECTORY: "http://127.0.0.1:9/directory" });
    const furniture = await furnish(platform);
    const wrong: string[] = [];
    const cells = platform.rows
      .toSorted((a, b) => order(a) - order(b))
      .flatMap((row) => WHO.map((who) => ({ row, who })));
    for (const { row, who } of cells) wrong.push(...(await judge(platform, furniture, row, who)));
    assert.deepEqual(wrong, []);
    t.diagnostic(`${cells.length} cells`);
  });

  test("Bearer and SvcV1 on metrics: the wrong one is 401 and the text names the right one (A4)", async (t) => {
    const { ask, token: full } = await testPlatform(t);
    const created: string = (await ask("POST /v1/orgs/personal/tokens", { body: { kind: "readonly" } })).body.token;
    const path = "GET /prometheus/personal/api/v1/status/buildinfo";
    const cases: [string, number, RegExp?][] = [
      [`Bearer ${full}`, 200],
      [`bearer   ${full}  `, 200],
      [`SvcV1 ${created}`, 200],
      [`svcv1 ${created}`, 200],
      [`SvcV1 ${full}`, 401, /send it as `Authorization: Bearer/],
      [`Bearer ${created}`, 401, /as `Authorization: SvcV1/],
      [`Bearer SvcV1 ${created}`, 401, /SvcV1/],
      ["", 401, /no token/],
      ["Bearer", 401, /no scheme/],
      [created, 401, /no scheme/],
      [`Basic ${created}`, 401, /scheme must be/],
      [`Bearer ${full},${created}`, 401],
      [`Bearer ${full.slice(0, -1)}`, 401],
      [`Bearer ${full}x`, 401],
    ];
    for (const [authorization, status, text] of cases) {
      const answer = await ask(path, { token: null, headers: authorization === "" ? {} : { authorization } });
      const name = authorization.replaceAll(full, "FULL").replaceAll(created, "CREATED");
      assert.equal(answer.status, status, name);
      if (text) assert.match(answer.body.error, text, name);
    }
    assert.equal(
      (await ask("GET /v1/orgs", { token: null, headers: { authorization: `SvcV1 ${created}` } })).status,
      200,
    );
    assert.equal(
      (await ask("GET /v1/orgs", { token: null, headers: { authorization: `Bearer SvcV1 ${created}` } })).status,
      200,
    );
  });
});
