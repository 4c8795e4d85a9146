/** The API of sprites as its own SDK speaks it, unmodified, against the simulated driver. */
import assert from "node:assert/strict";
import { suite, type TestContext, test } from "node:test";
import { APIError, type Sprite, SpritesClient } from "@fly/sprites";
import { SPRITE_LIMITS } from "#sprites/limits.ts";
import { type TestPlatform, testPlatform } from "./platform.ts";
import { until } from "./support.ts";

type Opened = TestPlatform & { client: SpritesClient };

const clientOf = (platform: TestPlatform, token = platform.token): SpritesClient =>
  new SpritesClient(token, { baseURL: platform.base_url });

async function opened(t: TestContext, env: Record<string, string> = {}): Promise<Opened> {
  const platform = await testPlatform(t, env);
  return { ...platform, client: clientOf(platform) };
}

async function refused(work: Promise<unknown>): Promise<APIError> {
  const thrown = await work.then(
    () => undefined,
    (error: unknown) => error,
  );
  assert.ok(thrown instanceof APIError, String(thrown));
  return thrown;
}

const machineOf = async ({ ask }: TestPlatform, name: string) => {
  const { machine_id, app_name } = (await ask(`GET /v1/sprites/${name}`)).body;
  return (await ask(`GET /v1/apps/${app_name}/machines/${machine_id}`)).body;
};

suite("sprites: the resource", () => {
  test("a sprite is created, read, listed and deleted", async (t) => {
    const { client } = await opened(t);
    const made = await client.createSprite("my-sprite", {
      config: { ramMB: 700, cpus: 1, storageGB: 3 },
      environment: { GREETING: "hi", camelCase: "kept" },
      labels: ["prod", "web"],
      urlSettings: { auth: "public" },
    });
    assert.equal(made.name, "my-sprite");
    assert.equal(made.organizationName, "personal");
    assert.deepEqual(made.labels, ["prod", "web"]);
    assert.deepEqual(made.environment, { GREETING: "hi", camelCase: "kept" });
    assert.deepEqual([made.config?.ramMB, made.config?.cpus, made.config?.storageGB], [768, 1, 3]);
    assert.equal(made.urlSettings?.auth, "public");
    assert.match(made.id ?? "", /^sprite-/);
    const read = await client.getSprite("my-sprite");
    assert.equal(read.id, made.id);
    assert.ok(read.createdAt instanceof Date && !Number.isNaN(read.createdAt.getTime()));
    const { sprites, hasMore, organizationName } = await client.listSprites();
    assert.deepEqual([sprites.map(({ name }) => name), hasMore, organizationName], [["my-sprite"], false, "personal"]);
    await made.delete();
    assert.deepEqual((await client.listSprites()).sprites, []);
    assert.equal((await refused(client.getSprite("my-sprite"))).statusCode, 404);
    await client.createSprite("my-sprite");
  });

  test("lists have a prefix and pages", async (t) => {
    const { client } = await opened(t);
    for (const name of ["b-1", "a-3", "a-1", "a-2"]) await client.createSprite(name);
    const first = await client.listSprites({ prefix: "a-", maxResults: 2 });
    assert.deepEqual([first.sprites.map(({ name }) => name), first.hasMore], [["a-1", "a-2"], true]);
    const { nextContinuationToken: continuationToken = "" } = first;
    const second = await client.listSprites({ prefix: "a-", maxResults: 2, continuationToken });
    assert.deepEqual([second.sprites.map(({ name }) => name), second.hasMore], [["a-3"], false]);
    assert.deepEqual(
      (await client.listAllSprites()).map(({ name }) => name),
      ["a-1", "a-2", "a-3", "b-1"],
    );
    assert.equal((await refused(client.listSprites({ maxResults: 51 }))).statusCode, 400);
  });

  test("errors have a code and a text that the SDK reads", async (t) => {
    const platform = await opened(t);
    const { client } = platform;
    await client.createSprite("one");
    const again = await refused(client.createSprite("one"));
    assert.deepEqual([again.statusCode, again.errorCode], [409, "sprite_exists"]);
    assert.match(again.message, /already exists/);
    const bad = await refused(client.createSprite("No Good"));
    assert.deepEqual([bad.statusCode, bad.errorCode], [400, "invalid_request"]);
    const unknown = await refused(client.getSprite("none"));
    assert.deepEqual(
      [unknown.statusCode, unknown.errorCode, unknown.message],
      [404, "not_found", "sprite not found: none"],
    );
    const unauthorized = await refused(clientOf(platform, "nonsense").getSprite("one"));
    assert.deepEqual([unauthorized.statusCode, unauthorized.errorCode], [401, "unauthorized"]);
    const variable = await refused(client.createSprite("two", { environment: { "not a name": "1" } }));
    assert.equal(variable.statusCode, 400);
    const label = await refused(client.createSprite("two", { labels: ["a,b"] }));
    assert.equal(label.statusCode, 400);
    await assert.rejects(client.sprite("one").listServices(), /status 404.*no such route/);
  });

  test("the limits of creations and of sprites answer 429 as the SDK reads it", async (t) => {
    const { client } = await opened(t);
    const { sprite_creations_per_minute } = SPRITE_LIMITS;
    const limits = SPRITE_LIMITS as { sprites_per_org: number; sprite_creations_per_minute: number };
    const { sprites_per_org } = limits;
    t.after(() => Object.assign(limits, { sprites_per_org, sprite_creations_per_minute }));
    limits.sprites_per_org = 1;
    await client.createSprite("one");
    const full = await refused(client.createSprite("two"));
    assert.ok(full.isRateLimitError() && full.isConcurrentLimitExceeded());
    assert.deepEqual([full.limit, full.currentCount], [1, 1]);
    limits.sprite_creations_per_minute = 2;
    const fast = await refused(client.createSprite("three"));
    assert.ok(fast.isCreationRateLimited());
    assert.deepEqual([fast.limit, fast.windowSeconds, fast.rateLimitLimit], [2, 60, 2]);
    assert.ok((fast.getRetryAfterSeconds() ?? 0) > 0 && fast.retryAfterHeader === fast.retryAfterSeconds);
  });

  test("a sprite is a machine with its name and labels, which change in place", async (t) => {
    const platform = await opened(t);
    const sprite = await platform.client.createSprite("worker", { labels: ["prod"] });
    const before = await machineOf(platform, "worker");
    assert.deepEqual([before.name, before.config.metadata.sprite_labels], ["worker", "prod"]);
    const updated = await sprite.update({ labels: ["dev", "web"], urlSettings: { auth: "public" } });
    assert.deepEqual([updated.labels, updated.urlSettings?.auth], [["dev", "web"], "public"]);
    const after = await machineOf(platform, "worker");
    assert.deepEqual([after.config.metadata.sprite_labels, after.instance_id], ["dev,web", before.instance_id]);
    await sprite.updateURLSettings({ auth: "sprite" });
    const read = await platform.client.getSprite("worker");
    assert.deepEqual([read.urlSettings?.auth, read.labels], ["sprite", ["dev", "web"]]);
  });

  test("restart, upgrade and check", async (t) => {
    const platform = await opened(t);
    const sprite = await platform.client.createSprite("one");
    const restarted = await sprite.restart();
    const { id } = await machineOf(platform, "one");
    assert.deepEqual([restarted.spriteName, restarted.machineId], ["one", id]);
    await sprite.upgrade();
    const check = await sprite.check();
    assert.deepEqual([check.spriteName, check.spriteId, check.status], ["one", sprite.id, "ok"]);
    assert.equal((await platform.client.getSprite("one")).status, "running");
    assert.equal((await refused(platform.client.sprite("none").restart())).statusCode, 404);
  });

  test("the list is a live stream of states", async (t) => {
    const platform = await opened(t);
    await platform.client.createSprite("a-old");
    const stream = await platform.client.watchSprites({ prefix: "a-" });
    const seen: string[] = [];
    void stream.processAll(({ name, status, organization }) => {
      seen.push(`${name} ${status}`);
      assert.equal(organization.name, "personal");
    });
    await until("the sprite that is there", () => seen.some((line) => line.startsWith("a-old")));
    const made = await platform.client.createSprite("a-new");
    await platform.client.createSprite("b-other");
    await until("the new one runs", () => seen.includes("a-new running"));
    const { machine_id, app_name } = (await platform.ask("GET /v1/sprites/a-new")).body;
    await platform.ask(`POST /v1/apps/${app_name}/machines/${machine_id}/suspend`);
    await until("it is warm", () => seen.includes("a-new warm"));
    await made.delete();
    await until("it is deleted", () => seen.includes("a-new deleted"));
    assert.ok(!seen.some((line) => line.startsWith("b-")));
    stream.close();
  });

  test("organizations do not see each other's sprites, and a read-only token changes nothing", async (t) => {
    const platform = await opened(t);
    const { ask, client } = platform;
    await client.createSprite("shared-name");
    await ask("POST /v1/orgs", { body: { name: "Acme" } });
    const tokenOf = async (kind: string) => (await ask("POST /v1/orgs/acme/tokens", { body: { kind } })).body.token;
    const acme = clientOf(platform, await tokenOf("org"));
    assert.equal((await refused(acme.getSprite("shared-name"))).statusCode, 404);
    const own: Sprite = await acme.createSprite("shared-name");
    assert.equal(own.organizationName, "acme");
    const reader = clientOf(platform, await tokenOf("readonly"));
    assert.equal((await reader.getSprite("shared-name")).id, own.id);
    for (const work of [
      reader.createSprite("x"),
      reader.deleteSprite("shared-name"),
      reader.restartSprite("shared-name"),
    ])
      assert.equal((await refused(work)).statusCode, 403);
    await own.delete();
    assert.equal((await client.getSprite("shared-name")).name, "shared-name");
  });
});
