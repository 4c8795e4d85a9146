/** A platform with several of everything, for tests that walk the whole API. */
import assert from "node:assert/strict";
import { createHash, createHmac } from "node:crypto";
import { writeFileSync } from "node:fs";
import { join } from "node:path";
import type { TestContext } from "node:test";
import { RUN_KEY } from "#core/run-metadata.ts";
import type { Row } from "#http/route.ts";
import { selfSigned } from "#proxy/x509.ts";
import { keepBuilds } from "./kept-builds.ts";
import { type Answer, type TestPlatform, testPlatform } from "./platform.ts";
import { tempDir, until } from "./support.ts";

/** What makes each start of a machine a run. */
const TASK = { [RUN_KEY]: "task" };

export type Item = Answer["body"];

/** `url` fills the names of things into a route's path; a name it does not have stays as it is. */
export type Furnished = TestPlatform & { names: Item; url(row: Row): string };

/** Brings a repository of the registry into being. */
async function pushBlob({ base_url, token }: TestPlatform, name: string): Promise<void> {
  const digest = `sha256:${createHash("sha256").update(name).digest("hex")}`;
  const headers = { authorization: `Bearer ${token}` };
  const url = `${base_url}/v2/${name}/blobs/uploads/?digest=${digest}`;
  assert.equal((await fetch(url, { method: "POST", headers, body: name })).status, 201);
}

/** An event that a webhook takes, and has nothing to do for. */
async function closePullRequest({ ask }: TestPlatform, webhook: Item, ref: string): Promise<void> {
  const body = JSON.stringify({ action: "closed", pull_request: { head: { ref } } });
  const signature = createHmac("sha256", String(webhook["secret"])).update(body).digest("hex");
  const headers = { "x-github-event": "pull_request", "x-hub-signature-256": `sha256=${signature}` };
  const path = `/v1/apps/web/git/webhooks/${webhook["id"]}`;
  assert.equal((await ask(`POST ${path}`, { body, headers, token: null })).status, 202);
  await until("the event is worked on", async () => {
    const [{ state }] = (await ask(`GET ${path}/deliveries`)).body.deliveries;
    return state === "done" || undefined;
  });
}

/** Several of everything. Nothing of it changes by itself once it is there. */
export async function furnished(t: Pick<TestContext, "after">, env: Record<string, string> = {}): Promise<Furnished> {
  const config = join(tempDir(), "hangar.toml");
  const hosts = ["north", "south", "west"].map((region, i) => `[[hosts]]\nid = "000${i + 1}"\nregion = "${region}"\n`);
  writeFileSync(config, hosts.join(""));
  const platform = await testPlatform(t, { HANGAR_CONFIG: config, ...env });
  const { ask } = platform;
  const post = async (path: string, body: object = {}): Promise<Item> => {
    const answer = await ask(`POST ${path}`, { body });
    assert.ok(answer.status < 300, `${path}: ${answer.text}`);
    return answer.body as Item;
  };
  for (const name of ["acme", "beta", "gamma"]) await post("/v1/orgs", { name });
  for (const app_name of ["web", "api", "job"]) await post("/v1/apps", { app_name, org_slug: "acme" });
  await post("/v1/apps/web/secrets", { values: { A: "1", B: "2", C: "3" } });
  const machines: Item[] = [];
  for (const name of ["m-1", "m-2", "m-3"])
    machines.push(await post("/v1/apps/web/machines", { name, config: { image: "web:1", metadata: TASK } }));
  const [machine = {}] = machines;
  for (const image of ["web:2", "web:3"])
    await post(`/v1/apps/web/machines/${machine["id"]}`, { config: { image, metadata: TASK } });
  for (const { id } of machines) await ask(`GET /v1/apps/web/machines/${id}/wait?state=settled&timeout=60`);
  const volumes: Item[] = [];
  for (let i = 0; i < 3; i++) volumes.push(await post("/v1/apps/web/volumes", { name: `kept_${i}` }));
  const kept = `/v1/apps/web/volumes/${volumes[0]?.["id"]}`;
  for (let i = 1; i <= 3; i++) {
    await post(`${kept}/snapshots`);
    await until("the snapshot is listed", async () => (await ask(`GET ${kept}/snapshots`)).body.length === i);
  }
  for (const type of ["shared_v4", "private_v6", "private_v6"]) await post("/v1/apps/web/ip_assignments", { type });
  for (const name of ["a", "b", "c"]) {
    const hostname = `${name}.example.com`;
    const { chain: fullchain, key: private_key } = selfSigned([hostname], Date.now());
    await post("/v1/apps/web/certificates/custom", { hostname, fullchain, private_key });
    await post("/v1/apps/web/releases", { definition: {} });
    await post("/v1/orgs/acme/webhooks", { url: "http://127.0.0.1:1/" });
    await post("/v1/orgs/acme/log-drains", { kind: "loki", url: "http://127.0.0.1:1/" });
    await post("/v1/oauth/connections/api_key", { provider: "github", api_key: name, org_slug: "acme" });
    await post("/v1/orgs/acme/tokens", { kind: "readonly" });
  }
  for (const name of ["a", "b", "c"]) {
    await ask(`PUT /v1/orgs/acme/alerts/rules/${name}`, { body: { content: "groups: []" } });
    await post("/v1/orgs/acme/alerts/silences", { matchers: [`app=${name}`], duration: "1h" });
  }
  await ask("PUT /v1/apps/web/previews/settings", { body: { enabled: true } });
  const repository = "https://git.example.com/acme/shop.git";
  let git_webhook: Item = {};
  for (let i = 0; i < 3; i++) git_webhook = await post("/v1/apps/web/git/webhooks", { repository });
  for (const branch of ["a", "b", "c"]) await closePullRequest(platform, git_webhook, branch);
  for (const branch of ["a", "b", "c"]) await post("/v1/apps/web/previews", { branch });
  for (const name of ["a", "b", "c"]) await pushBlob(platform, `acme/${name}`);
  const [build_id] = await keepBuilds(platform, "web", 3, env["HANGAR_DATABASE_URL"]);
  const lease = { node: "n", url: "http://n", term: 1, complete_term: 1, ttl_ms: 60_000 };
  await post("/v1/apps/web/db_leases/main/acquire", lease);
  const names = {
    ...(await namesOf(platform, kept)),
    machine_id: machine["id"],
    volume_id: volumes[0]?.["id"],
    empty_volume_id: volumes[1]?.["id"],
    git_webhook_id: git_webhook["id"],
    build_id,
  } as Item;
  const url = ({ path }: Row): string => {
    const filled = path.replaceAll(/:(\w+)/g, (_, name: string) => String(names[name] ?? `:${name}`));
    return path.includes(":") || !path.startsWith("/v1/") ? filled : `${filled}?org_slug=acme`;
  };
  return { ...platform, names, url };
}

/** The first of everything. */
async function namesOf({ ask }: TestPlatform, volume: string): Promise<Item> {
  const first = async (path: string, field?: string): Promise<Item> => {
    const { body } = await ask(`GET ${path}`);
    return ((field ? body[field] : body) as Item[])[0] ?? {};
  };
  return {
    org_slug: "acme",
    app_name: "web",
    snapshot_id: (await first(`${volume}/snapshots`))["id"],
    run_id: (await first("/v1/apps/web/runs", "runs"))["id"],
    preview_name: (await first("/v1/apps/web/previews", "previews"))["app_name"],
    connection_id: (await first("/v1/oauth/connections?org_slug=acme", "connections"))["id"],
    host_id: "0001",
    secret_name: "A",
    version: 1,
    key: RUN_KEY,
    hostname: "a.example.com",
    rule_file: "a",
    lease_name: "main",
    label_name: "app",
  };
}
