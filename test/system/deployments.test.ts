/** Deploys that the platform runs itself: the command as its own process, its plan, its output, its failures. */
import assert from "node:assert/strict";
import { mkdirSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { suite, type TestContext, test } from "node:test";
import { Client } from "#client/client.ts";
import { type TestPlatform, testPlatform } from "../platform.ts";
import { until } from "../support.ts";

const ROUTE = "POST /v1/apps/:app_name/deployments";
const URL = "POST /v1/apps/web/deployments";

interface Message {
  text?: string;
  complete?: boolean;
  version?: number;
  error?: string;
}

async function platformWithApp(t: TestContext): Promise<TestPlatform> {
  const platform = await testPlatform(t);
  await platform.ask("POST /v1/apps", { body: { app_name: "web" } });
  return platform;
}

const images = async (platform: TestPlatform): Promise<string[]> =>
  (await platform.ask("GET /v1/apps/web/machines")).body.map(
    ({ config }: { config: { image: string } }) => config.image.split("@")[0],
  );

suite("deployments", () => {
  test("deploy, scale and rollback say what they will do, do it, and can be undone", async (t) => {
    const platform = await platformWithApp(t);
    const first = { action: "deploy", image: "web:1", port: 8080 };
    const plan = await platform.ask(URL, { body: { ...first, dry_run: true } });
    assert.deepEqual([plan.status, plan.body.lines, plan.body.version], [200, ["create  a machine, group app"], null]);
    assert.equal(plan.body.command, "hangar deploy --image=web:1 --port=8080 --app=web");
    assert.equal(
      (await platform.ask("GET /v1/apps/web/releases")).body.releases.length,
      0,
      "a dry run changes nothing",
    );

    assert.equal((await platform.ask(URL, { body: first })).body.version, 1);
    assert.deepEqual(await images(platform), ["web:1"]);
    const scaled = await platform.ask(URL, { body: { action: "scale", counts: { app: 2 } } });
    assert.deepEqual([scaled.status, scaled.body.version, (await images(platform)).length], [200, 2, 2]);
    await platform.ask(URL, { body: { action: "deploy", image: "web:2", message: "faster" } });
    assert.deepEqual(await images(platform), ["web:2", "web:2"]);
    const resized = { action: "scale", counts: { app: 1 }, memory_mb: 512, cpus: 2 };
    assert.equal((await platform.ask(URL, { body: resized })).status, 200);
    const [only] = (await platform.ask("GET /v1/apps/web/machines")).body;
    assert.deepEqual([only.config.guest.memory_mb, only.config.guest.cpus], [512, 2]);
    const back = await platform.ask(URL, { body: { action: "rollback", version: 1 } });
    assert.equal(back.status, 200);
    assert.deepEqual(await images(platform), ["web:1"]);
    const { releases } = (await platform.ask("GET /v1/apps/web/releases")).body;
    assert.deepEqual(
      releases.map(({ description, status }: { description: string; status: string }) => `${description} ${status}`),
      [
        "rollback to release 1 complete",
        "app=1 memory 512MB cpus 2 complete",
        "deploy complete",
        "scale app=2 complete",
        "deploy complete",
      ],
    );
  });

  test("machines that were made one by one become those of the first release", async (t) => {
    const platform = await platformWithApp(t);
    const env = { MODE: "fast" };
    const made = await platform.ask("POST /v1/apps/web/machines", { body: { config: { image: "web:1", env } } });
    const plan = await platform.ask(URL, { body: { action: "deploy", image: "web:2", dry_run: true } });
    assert.match(plan.body.lines.join(), new RegExp(`^update  .*${made.body.id}.*group app$`));
    await platform.ask(URL, { body: { action: "deploy", image: "web:2" } });
    const [only, ...more] = (await platform.ask("GET /v1/apps/web/machines")).body;
    assert.deepEqual([only.id, only.config.env, more.length], [made.body.id, env, 0]);
  });

  test("requests that make no sense name the field", async (t) => {
    const platform = await platformWithApp(t);
    const pathsOf = async (body: object): Promise<[number, string[]]> => {
      const { status, body: answer } = await platform.ask(URL, { body });
      return [status, (answer.details ?? []).map(({ path }: { path: string }) => path)];
    };
    assert.deepEqual(await pathsOf({ action: "deploy" }), [400, ["body.image"]]);
    assert.deepEqual(await pathsOf({ action: "scale" }), [400, ["body.counts"]]);
    assert.deepEqual(await pathsOf({ action: "rollback", image: "web:1" }), [400, ["body.image"]]);
    assert.deepEqual(await pathsOf({ action: "deploy", image: "--help" }), [400, ["body.image"]]);
    assert.deepEqual(await pathsOf({ action: "deploy", image: "web:1", port: 70_000 }), [400, ["body.port"]]);
    const none = await platform.ask(URL, { body: { action: "rollback" } });
    assert.equal(none.status, 422);
    assert.match(none.body.error, /no earlier release/);
  });

  test("the output is streamed, the deploy goes on without its reader, and a second one waits", async (t) => {
    const platform = await platformWithApp(t);
    const client = new Client({ base_url: platform.base_url, token: platform.token });
    const input = (image: string) => ({ params: { app_name: "web" }, body: { action: "deploy" as const, image } });
    for await (const { text } of client.stream<typeof ROUTE, Message>(ROUTE, input("web:1"))) {
      assert.match(text ?? "", /web:1/);
      break;
    }
    const second = await platform.ask(URL, { body: { action: "deploy", image: "web:2" } });
    assert.deepEqual([second.status, second.body.status], [409, "conflict"]);
    const released = async () => (await platform.ask("GET /v1/apps/web/releases")).body.releases[0]?.status;
    await until("it is complete", async () => (await released()) === "complete");
    const messages: Message[] = [];
    await until("the platform has noticed", async () => {
      const { status } = await platform.ask(URL, { body: { action: "scale", counts: { app: 1 }, dry_run: true } });
      return status === 200;
    });
    for await (const message of client.stream<typeof ROUTE, Message>(ROUTE, input("web:3"))) messages.push(message);
    assert.deepEqual(messages.at(-1), { complete: true, version: 2 });
    const { releases } = (await platform.ask("GET /v1/apps/web/releases")).body;
    assert.equal(releases.length, 2, "what was streamed is not done a second time");
  });

  test("a deploy that fails is rolled back and says why", async (t) => {
    const platform = await platformWithApp(t);
    await platform.ask(URL, { body: { action: "deploy", image: "web:1" } });
    const failed = await platform.ask(URL, { body: { action: "deploy", image: "http://not an image" } });
    assert.equal(failed.status, 400);
    const missing = await platform.ask(URL, { body: { action: "rollback", version: 77 } });
    assert.deepEqual([missing.status, missing.body.status], [404, "not_found"]);
    assert.deepEqual(await images(platform), ["web:1"]);
  });

  test("a token for another app or one that only reads cannot deploy", async (t) => {
    const platform = await platformWithApp(t);
    const made = await platform.ask("POST /v1/orgs/personal/tokens", { body: { kind: "readonly", name: "eyes" } });
    const body = { action: "deploy", image: "web:1" };
    assert.equal((await platform.ask(URL, { body, token: made.body.token })).status, 403);
  });

  test("a release that the end of the platform interrupted is marked as failed at the next start", async (t) => {
    const platform = await platformWithApp(t);
    const { id } = (await platform.ask("GET /v1/apps/web")).body;
    await platform.ask("POST /v1/apps/web/releases", { body: { description: "deploy", definition: {} } });
    const running = join(platform.data_dir, "deployments/running");
    mkdirSync(running, { recursive: true });
    writeFileSync(join(running, `${id}.json`), JSON.stringify({ app_id: id, after: 0 }));
    await platform.close();
    const next = await testPlatform(t, { HANGAR_DATA_DIR: platform.data_dir });
    const [release] = (await next.ask("GET /v1/apps/web/releases")).body.releases;
    assert.equal(release.status, "failed");
    assert.match(release.failure, /deploy again/);
  });
});
