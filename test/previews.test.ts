/** Preview apps over the API: what they get, who may make them, and that nothing of them is left. */
import assert from "node:assert/strict";
import { suite, type TestContext, test } from "node:test";
import { MovingClock } from "#core/moving-clock.ts";
import { type TestPlatform, testPlatform } from "./platform.ts";
import { until } from "./support.ts";

const HOUR = 60 * 60 * 1000;
const CONFIG = { config: { image: "hangar/hello" } };

interface Scene extends TestPlatform {
  /** Makes or finds the preview of the branch. */
  open(branch: string, token?: string): ReturnType<TestPlatform["ask"]>;
  apps(): Promise<string[]>;
}

async function scene(t: TestContext, settings: object = { enabled: true }, options = {}): Promise<Scene> {
  const platform = await testPlatform(t, {}, options);
  const { ask } = platform;
  await ask("POST /v1/apps", { body: { app_name: "web" } });
  assert.equal((await ask("PUT /v1/apps/web/previews/settings", { body: settings })).status, 200);
  return {
    ...platform,
    open: (branch, token) => ask("POST /v1/apps/web/previews", { body: { branch }, ...(token ? { token } : {}) }),
    apps: async () => (await ask("GET /v1/apps?org_slug=personal")).body.apps.map(({ name }: { name: string }) => name),
  };
}

suite("preview apps", () => {
  test("are off until they are switched on, which takes the right to create apps", async (t) => {
    const { ask, open } = await scene(t, {});
    const { body } = await ask("GET /v1/apps/web/previews/settings");
    assert.deepEqual(body, { enabled: false, days: 7, most: 5, secrets: [] });
    const refused = await open("feature/x");
    assert.deepEqual([refused.status, refused.body.status], [422, "git_refused"]);
    assert.match(refused.body.hint, /hangar previews settings on/);
    const deployer = (await ask("POST /v1/apps/web/deploy_token", { body: { expiry: "1h" } })).body.token;
    const put = (token: string, change: object) => ask("PUT /v1/apps/web/previews/settings", { body: change, token });
    assert.match((await put(deployer, { enabled: true })).body.error, /the token is for app web only/);
    const owner = (await ask("POST /v1/orgs/personal/tokens", { body: { kind: "org" } })).body.token;
    assert.equal((await put(owner, { enabled: true })).body.enabled, true);
    for (const change of [{ days: 0 }, { days: 91 }, { most: 21 }, { secrets: [""] }])
      assert.equal((await put(owner, change)).status, 400, JSON.stringify(change));
    // From then on a token of this app makes them, in the bounds that the owner set.
    const made = await open("feature/x", deployer);
    assert.equal(made.status, 201, made.text);
    const nested = await ask(`PUT /v1/apps/${made.body.app_name}/previews/settings`, { body: { enabled: true } });
    assert.match(nested.body.error, /is a preview itself/);
  });

  test("get secrets that are named, the network and egress policy of their app, and nothing else", async (t) => {
    const { ask, open } = await scene(t, { enabled: true, secrets: ["SHARED", "MISSING"] });
    await ask("POST /v1/apps/web/secrets", { body: { values: { SHARED: "1", LIVE_KEY: "2" } } });
    await ask("PUT /v1/apps/web/egress", { body: { mode: "none" } });
    const { body } = await open("Feature/Ümlaut-x".replace("Ü", "U"));
    assert.match(body.app_name, /^web-feature-umlaut-x-[0-9a-f]{8}$/);
    const secrets = async (): Promise<string[]> =>
      (await ask(`GET /v1/apps/${body.app_name}/secrets`)).body.secrets.map(({ name }: { name: string }) => name);
    assert.deepEqual(await secrets(), ["SHARED"]);
    assert.equal((await ask(`GET /v1/apps/${body.app_name}/egress`)).body.mode, "none");
    await ask(`POST /v1/apps/${body.app_name}/secrets`, { body: { values: { OWN: "3" } } });
    await ask("PUT /v1/apps/web/previews/settings", { body: { secrets: ["LIVE_KEY"] } });
    const again = await open("Feature/Umlaut-x");
    assert.deepEqual([again.body.is_new, again.body.app_name], [false, body.app_name]);
    assert.deepEqual(await secrets(), ["LIVE_KEY", "OWN"], "what is no longer named goes, what it was given stays");
    assert.notEqual((await open("feature/umlaut-x")).body.app_name, body.app_name);
    for (const branch of ["", "../x", "a b", "x".repeat(201)]) assert.equal((await open(branch)).status, 400, branch);
  });

  test("their token deploys the preview and nothing else, and falls with its maker's", async (t) => {
    const { ask, open } = await scene(t);
    const maker = (await ask("POST /v1/apps/web/deploy_token", { body: { expiry: "1h" } })).body;
    const { app_name, token } = (await open("x", maker.token)).body;
    const post = async (app: string) => (await ask(`POST /v1/apps/${app}/machines`, { body: CONFIG, token })).status;
    assert.deepEqual([await post(app_name), await post("web")], [200, 403]);
    assert.equal((await ask("POST /v1/apps", { body: { app_name: "more" }, token })).status, 403);
    const reader = (await ask("POST /v1/orgs/personal/tokens", { body: { kind: "readonly" } })).body.token;
    assert.equal((await open("x", reader)).status, 403);
    await ask(`DELETE /v1/orgs/personal/tokens/${maker.id}`);
    assert.equal(await post(app_name), 401);
  });

  test("are bounded per app, and deleting one makes room; nothing of it is left", async (t) => {
    const { ask, open, apps } = await scene(t, { enabled: true, most: 2 });
    const first = (await open("one")).body;
    await open("two");
    const third = await open("three");
    assert.match(third.body.error, /web has 2 previews, as many as its settings allow/);
    await ask(`POST /v1/apps/${first.app_name}/machines`, { body: CONFIG });
    await ask(`POST /v1/apps/${first.app_name}/volumes`, { body: { name: "data", size_gb: 1 } });
    const gone = await ask(`DELETE /v1/apps/web/previews/${first.app_name}`);
    assert.equal(gone.status, 202, gone.text);
    assert.deepEqual((await apps()).includes(first.app_name), false);
    assert.equal((await ask("GET /v1/orgs/personal/machines")).body.machines.length, 0);
    const tokens = (await ask("GET /v1/orgs/personal/tokens")).body.tokens as { kind: string }[];
    assert.equal(tokens.filter(({ kind }) => kind === "deploy").length, 1, "only that of the other preview");
    assert.equal((await open("three")).status, 201);
    const { previews } = (await ask("GET /v1/apps/web/previews?limit=1")).body;
    assert.deepEqual(
      previews.map(({ branch, state }: { branch: string; state: string }) => [branch, state]),
      [["three", "creating"]],
    );
    assert.equal((await ask(`GET /v1/apps/web/previews/${first.app_name}`)).status, 404);
  });

  test("go with their app; one whose app was deleted by hand is made anew", async (t) => {
    const { ask, open, apps } = await scene(t);
    const { app_name } = (await open("x")).body;
    await ask(`DELETE /v1/apps/${app_name}?force=true`);
    const again = (await open("x")).body;
    assert.deepEqual([again.app_name, again.is_new], [app_name, true]);
    await ask(`POST /v1/apps/${app_name}/machines`, { body: CONFIG });
    await ask("DELETE /v1/apps/web?force=true");
    await until("the preview is gone", async () => (await apps()).length === 0 || undefined);
  });

  test("are deleted after their days without a push, and when their first deploy never ended", async (t) => {
    const clock = new MovingClock();
    const { ask, open, apps } = await scene(t, { enabled: true, days: 2 }, { clock });
    const [kept, left] = [(await open("kept")).body.app_name, (await open("left")).body.app_name];
    const release = { definition: {} };
    await ask(`POST /v1/apps/${kept}/releases`, { body: release });
    await ask(`POST /v1/apps/${kept}/releases/1`, { body: { status: "complete" } });
    await clock.advance(3 * HOUR);
    await until("the one that never ran is gone", async () => !(await apps()).includes(left) || undefined);
    assert.deepEqual(await apps(), ["web", kept]);
    await clock.advance(47 * HOUR);
    await until("the other one is gone", async () => (await apps()).length === 1 || undefined);
  });
});
