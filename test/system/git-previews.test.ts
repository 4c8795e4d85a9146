/** Branches pushed with Debian's Git become preview apps: what is made, what goes, and what is left by kills. */
import assert from "node:assert/strict";
import { suite, type TestContext, test } from "node:test";
import { type TestPlatform, testPlatform } from "../platform.ts";
import { tempDir, until } from "../support.ts";
import { type Daemon, startDaemon } from "./daemon.ts";
import { GitWork, gitMissing, repositoryUrl } from "./git-work.ts";

const APP_FILE = `app = "web"
image = "hangar/hello"
[http_service]
internal_port = 8080
min_machines_running = 2
[[vm]]
size = "performance-2x"
memory = "1gb"
`;
const skip = gitMissing();

/** With a release command that takes this long on simulated machines. */
const slow = (ms: number): string => `${APP_FILE}[deploy]\nrelease_command = "migrate"\n[env]\nSIM_RUN_MS = "${ms}"\n`;

interface Scene {
  platform: TestPlatform;
  work: GitWork;
  url: string;
  apps(): Promise<string[]>;
}

async function scene(t: Pick<TestContext, "after">, settings: object = {}): Promise<Scene> {
  const platform = await testPlatform(t);
  await platform.ask("POST /v1/apps", { body: { app_name: "web" } });
  await platform.ask("POST /v1/apps/web/secrets", { body: { values: { SHARED: "1", LIVE_KEY: "2" } } });
  const body = { enabled: true, secrets: ["SHARED"], ...settings };
  assert.equal((await platform.ask("PUT /v1/apps/web/previews/settings", { body })).status, 200);
  return {
    platform,
    work: new GitWork(),
    url: repositoryUrl(platform.base_url, platform.token),
    apps: async () =>
      (await platform.ask("GET /v1/apps?org_slug=personal")).body.apps.map(({ name }: { name: string }) => name),
  };
}

suite("previews by git push", { skip }, () => {
  test("a branch is deployed beside the app, updated by a push, and goes with the branch", async (t) => {
    const { platform, work, url, apps } = await scene(t);
    work.commit("Begin", { "hangar.toml": APP_FILE });
    work.git("checkout", "-q", "-b", "feature/x");
    const commit = work.commit("Try it", { "hangar.toml": `${APP_FILE}[env]\nBRANCH = "x"\n` });
    const pushed = await work.run(`git push '${url}' feature/x`);
    assert.equal(pushed.status, 0, pushed.text);
    const [, name = ""] = /New preview of feature\/x: (web-feature-x-[0-9a-f]{8})/.exec(pushed.text) ?? [];
    assert.match(pushed.text, new RegExp(`remote: at http://${name}\\.localhost`));
    assert.deepEqual(await apps(), ["web", name]);
    const preview = (await platform.ask(`GET /v1/apps/web/previews/${name}`)).body;
    assert.deepEqual(
      [preview.state, preview.git_commit, preview.secrets, preview.urls],
      ["ready", commit, ["SHARED"], [`https://${name}.localhost`, `http://${name}.localhost`]],
    );
    const machines = (await platform.ask(`GET /v1/apps/${name}/machines`)).body;
    const [{ config }] = machines;
    const [service] = config.services;
    assert.equal(machines.length, 1);
    assert.deepEqual(
      [service.autostop, service.autostart, service.min_machines_running, config.guest, config.env.BRANCH],
      ["suspend", true, 0, { cpu_kind: "shared", cpus: 1, memory_mb: 1024 }, "x"],
    );
    assert.deepEqual(
      (await platform.ask("GET /v1/apps/web/releases")).body.releases,
      [],
      "the app itself is as it was",
    );

    const again = work.commit("Again");
    assert.match((await work.run(`git push '${url}' feature/x`)).text, new RegExp(`${name} runs release 2`));
    const [release] = (await platform.ask(`GET /v1/apps/${name}/releases`)).body.releases;
    assert.deepEqual(
      [release.git_commit, release.git_branch, release.message, release.created_by],
      [again, "feature/x", "Again (Ada)", "first start"],
    );
    const deleted = await work.run(`git push '${url}' --delete feature/x`);
    assert.match(deleted.text, new RegExp(`Deleting the preview ${name}`));
    await until("the preview's app is gone", async () => (await apps()).length === 1 || undefined);
    const previews = async () => (await platform.ask("GET /v1/apps/web/previews")).body.previews;
    await until("the preview, which goes last, is gone", async () => (await previews()).length === 0 || undefined);
    assert.match((await work.run(`git ls-remote '${url}'`)).text, /^$/);
  });

  test("a first deploy that fails leaves nothing; a later one leaves the preview as it was", async (t) => {
    const { platform, work, url, apps } = await scene(t, { most: 1 });
    work.commit("Begin", { "hangar.toml": APP_FILE });
    work.commit("Break it", { "hangar.toml": `${APP_FILE}image = [\n` });
    const failed = await work.run(`git push '${url}' main:x`);
    assert.match(failed.text, /x was not deployed[\s\S]*remote rejected\] main -> x/);
    await until("nothing is left", async () => (await apps()).length === 1 || undefined);
    const crashing = `${APP_FILE}[env]\nSIM_RUN_MS = "100"\nSIM_EXIT_CODE = "1"\n[restart]\npolicy = "never"\n`;
    work.commit("Crash", { "hangar.toml": crashing });
    assert.notEqual((await work.run(`git push '${url}' main:x`)).status, 0);
    await until("nothing is left again", async () => (await apps()).length === 1 || undefined);
    work.commit("Mend it", { "hangar.toml": APP_FILE });
    assert.equal((await work.run(`git push '${url}' main:x`)).status, 0);
    const names = await apps();
    work.commit("Crash again", { "hangar.toml": crashing });
    assert.notEqual((await work.run(`git push '${url}' main:x`)).status, 0);
    assert.deepEqual(await apps(), names);
    const more = await work.run(`git push '${url}' HEAD~1:refs/heads/y`);
    assert.match(more.text, /web has 1 previews, as many as its settings allow/);
    assert.match((await work.run(`git push '${url}' HEAD:refs/heads/%odd`)).text, /%odd is stored; a preview's branch/);
    await platform.ask("PUT /v1/apps/web/previews/settings", { body: { enabled: false } });
    assert.match(
      (await work.run(`git push '${url}' HEAD:refs/heads/z`)).text,
      /z is stored; web is deployed from main/,
    );
  });

  test("a deploy token of the app makes previews; a token that may only read does not", async (t) => {
    const { platform, work, apps } = await scene(t);
    const { token } = (await platform.ask("POST /v1/apps/web/deploy_token", { body: { expiry: "1h" } })).body;
    work.commit("Begin", { "hangar.toml": APP_FILE });
    const deployer = repositoryUrl(platform.base_url, token);
    const pushed = await work.run(`git push '${deployer}' main:x`);
    assert.match(pushed.text, /runs release 1/);
    const [release] = (await platform.ask(`GET /v1/apps/${(await apps())[1]}/releases`)).body.releases;
    assert.match(release.created_by, /^deploy web$/);
    const { token: reading } = (await platform.ask("POST /v1/orgs/personal/tokens", { body: { kind: "readonly" } }))
      .body;
    const reader = repositoryUrl(platform.base_url, reading);
    assert.match((await work.run(`git push '${reader}' main:y`)).text, /the token allows read, this needs write/);
  });
});

const previewsOf = async ({ call }: Daemon): Promise<{ app_name: string; state: string }[]> =>
  (await call("GET", "/v1/apps/web/previews")).body["previews"] as { app_name: string; state: string }[];
const appsOf = async ({ call }: Daemon): Promise<string[]> => {
  const { body } = await call("GET", "/v1/apps?org_slug=personal");
  return (body["apps"] as { name: string }[]).map(({ name }) => name);
};

suite("a platform killed with previews", { skip }, () => {
  test("while it makes one removes it; while it deletes one finishes; one that ran keeps its release", async (t) => {
    const data_dir = tempDir();
    const first = await startDaemon(t, data_dir);
    await first.call("POST", "/v1/apps", { app_name: "web" });
    await first.call("PUT", "/v1/apps/web/previews/settings", { enabled: true });
    const work = new GitWork();
    work.commit("Begin", { "hangar.toml": APP_FILE });
    const url = ({ base_url, token }: Daemon): string => repositoryUrl(base_url, token);
    assert.equal((await work.run(`git push '${url(first)}' main:kept main:gone`)).status, 0);
    const [gone, kept] = (await previewsOf(first)).map(({ app_name }) => app_name);

    work.commit("More");
    const pushing = work.run(`git push '${url(first)}' main:fresh`);
    await until("the new preview has a machine", async () => {
      const fresh = (await appsOf(first)).find((name) => name.startsWith("web-fresh"));
      const { body } = await first.call("GET", `/v1/apps/${fresh}/machines`);
      return (Array.isArray(body) && body.length > 0) || undefined;
    });
    const deleting = first.call("DELETE", `/v1/apps/web/previews/${gone}`).catch(() => undefined);
    await until(
      "one is being deleted",
      async () =>
        (await previewsOf(first)).every(({ app_name, state }) => app_name !== gone || state === "deleting") ||
        undefined,
    );
    await first.child.kill();
    assert.notEqual((await pushing).status, 0);
    await deleting;

    const second = await startDaemon(t, data_dir);
    await until("only what ran is left", async () => (await appsOf(second)).length === 2 || undefined);
    assert.deepEqual(await appsOf(second), ["web", kept]);
    await until("no other preview is known", async () => (await previewsOf(second)).length === 1 || undefined);
    const { body } = await second.call("GET", "/v1/orgs/personal/machines");
    assert.equal((body["machines"] as { app_name: string }[]).length, 1);

    work.commit("Take long", { "hangar.toml": slow(60_000) });
    const updating = work.run(`git push '${url(second)}' main:kept`);
    await until("the update runs", async () => {
      const releases = (await second.call("GET", `/v1/apps/${kept}/releases`)).body["releases"];
      return (releases as { status: string }[]).some(({ status }) => status === "running") || undefined;
    });
    await second.child.kill();
    assert.notEqual((await updating).status, 0);
    const third = await startDaemon(t, data_dir);
    const releases = (await third.call("GET", `/v1/apps/${kept}/releases`)).body["releases"];
    assert.deepEqual(
      (releases as { status: string }[]).map(({ status }) => status),
      ["failed", "complete"],
    );
    assert.equal((await previewsOf(third))[0]?.state, "ready");
    work.commit("Be quick", { "hangar.toml": APP_FILE });
    const again = await work.run(`git push '${url(third)}' main:kept main:fresh`);
    assert.equal(again.status, 0, again.text);
  });
});
