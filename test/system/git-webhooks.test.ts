/** Events in the shapes that GitHub and Gitea document, sent with curl and openssl, about a real Git server on loopback. */
import assert from "node:assert/strict";
import { createHmac } from "node:crypto";
import { suite, type TestContext, test } from "node:test";
import { type Answer, type TestPlatform, testPlatform } from "../platform.ts";
import { shell, tempDir, until } from "../support.ts";
import { startDaemon } from "./daemon.ts";
import { type GitServer, startGitServer } from "./git-server.ts";
import { GitWork, gitMissing } from "./git-work.ts";

const APP_FILE = 'app = "web"\nimage = "hangar/hello"\n[http_service]\ninternal_port = 8080\n';
const ZEROS = "0".repeat(40);
const skip = gitMissing();

/** `push`, as GitHub sends it; Gitea's has the same fields. */
const pushEvent = (branch: string, after: string) => ({
  ref: `refs/heads/${branch}`,
  before: ZEROS,
  after,
  created: after !== ZEROS,
  deleted: after === ZEROS,
  forced: false,
  compare: "https://git.example.com/acme/shop/compare/main",
  repository: { id: 1, name: "shop", full_name: "acme/shop", clone_url: "https://elsewhere.example/acme/shop.git" },
  pusher: { name: "ada", email: "ada@example.com" },
  head_commit: after === ZEROS ? null : { id: after, message: "Begin", timestamp: "2026-11-19T00:00:00Z" },
  commits: [],
});

/** `pull_request`; `from` is the repository that its branch is in. */
const pullRequest = (action: string, ref: string, from = "acme/shop") => ({
  action,
  number: 7,
  pull_request: {
    number: 7,
    state: action === "closed" ? "closed" : "open",
    head: { ref, sha: ZEROS, repo: { full_name: from } },
    base: { ref: "main", sha: ZEROS, repo: { full_name: "acme/shop" } },
  },
  repository: { full_name: "acme/shop" },
});

const DIALECTS = {
  github: (event: string, hex: string) => ({ "x-github-event": event, "x-hub-signature-256": `sha256=${hex}` }),
  gitea: (event: string, hex: string) => ({ "x-gitea-event": event, "x-gitea-signature": hex }),
};

interface Scene {
  platform: TestPlatform;
  server: GitServer;
  work: GitWork;
  webhook: { id: string; secret: string; url: string };
  send(event: string, payload: object, dialect?: keyof typeof DIALECTS): Promise<Answer>;
  /** The newest delivery, when it has ended. */
  ended(): Promise<{ state: string; result: string; git_commit: string | null; branch: string }>;
}

async function scene(t: Pick<TestContext, "after">, access: { password?: string } = {}): Promise<Scene> {
  const server = await startGitServer(access);
  t.after(() => server.close());
  const platform = await testPlatform(t, { HANGAR_GIT_ALLOW_PRIVATE: server.host });
  const { ask } = platform;
  await ask("POST /v1/apps", { body: { app_name: "web" } });
  await ask("PUT /v1/apps/web/previews/settings", { body: { enabled: true } });
  const made = await ask("POST /v1/apps/web/git/webhooks", { body: { repository: server.url, ...access } });
  assert.equal(made.status, 201, made.text);
  const webhook = made.body;
  const path = `/v1/apps/web/git/webhooks/${webhook.id}`;
  const work = new GitWork();
  work.git("remote", "add", "origin", server.dir);
  return {
    platform,
    server,
    work,
    webhook,
    async send(event, payload, dialect = "github") {
      const body = JSON.stringify(payload);
      const hex = createHmac("sha256", webhook.secret).update(body).digest("hex");
      return await ask(`POST ${path}`, { body, headers: DIALECTS[dialect](event, hex), token: null });
    },
    ended: () =>
      until("the delivery has ended", async () => {
        const [newest] = (await ask(`GET ${path}/deliveries`)).body.deliveries;
        return newest?.ended_at ? newest : undefined;
      }),
  };
}

const versions = async ({ ask }: TestPlatform, app: string): Promise<[string, string][]> =>
  (await ask(`GET /v1/apps/${app}/releases`)).body.releases.map(
    ({ git_commit, status }: { git_commit: string; status: string }): [string, string] => [git_commit, status],
  );

suite("Git webhooks", { skip }, () => {
  test("a push deploys what the repository has, whatever the event says; the same again does nothing", async (t) => {
    const { platform, server, work, send, ended } = await scene(t);
    const first = work.commit("Begin", { "hangar.toml": APP_FILE });
    work.git("push", "-q", "origin", "main");
    // Another commit and another address in the event: neither is looked at.
    const sent = await send("push", pushEvent("main", "a".repeat(40)));
    assert.deepEqual([sent.status, sent.body], [202, { result: "queued" }]);
    const { state, result, git_commit } = await ended();
    assert.deepEqual([state, git_commit, result], ["done", first, `deployed ${first.slice(0, 12)}`]);
    assert.deepEqual(await versions(platform, "web"), [[first, "complete"]]);
    assert.deepEqual((await send("push", pushEvent("main", "a".repeat(40)))).body, { result: "repeated" });
    const before = server.requests();
    await send("push", pushEvent("main", first));
    assert.match((await ended()).result, /is deployed already/);
    assert.equal(server.requests() - before, 2, "only the branch was looked up");

    // Gitea's headers; only what is new is fetched.
    const second = work.commit("More", { "hangar.toml": `${APP_FILE}[env]\nMORE = "1"\n` });
    work.git("push", "-q", "origin", "main");
    assert.equal((await send("push", pushEvent("main", second), "gitea")).status, 202);
    assert.equal((await ended()).git_commit, second);
    const [release] = (await platform.ask("GET /v1/apps/web/releases")).body.releases;
    assert.deepEqual(
      [release.message, release.git_branch, release.created_by],
      ["More (Ada)", "main", "Git webhook of web"],
    );
  });

  test("branches and pull requests become previews, and go with them; forks do not", async (t) => {
    const { platform, work, send, ended } = await scene(t);
    work.commit("Begin", { "hangar.toml": APP_FILE });
    work.git("push", "-q", "origin", "main:feature/x", "main:pr");
    await send("push", pushEvent("feature/x", "b".repeat(40)), "gitea");
    assert.match((await ended()).result, /^deployed [0-9a-f]{12} as a preview$/);
    await send("pull_request", pullRequest("opened", "pr"));
    assert.equal((await ended()).state, "done");
    const branches = async () =>
      (await platform.ask("GET /v1/apps/web/previews")).body.previews.map(({ branch }: { branch: string }) => branch);
    assert.deepEqual(await branches(), ["feature/x", "pr"]);
    const fork = await send("pull_request", pullRequest("opened", "pr", "mallory/shop"));
    assert.deepEqual(fork.body, { result: "ignored", why: "pull requests of forks are not deployed" });
    // A delete that is not true deletes nothing.
    await send("push", pushEvent("feature/x", ZEROS));
    assert.match((await ended()).result, /is deployed already/);
    work.git("push", "-q", "origin", ":feature/x");
    await send("delete", { ref: "feature/x", ref_type: "branch", repository: { full_name: "acme/shop" } }, "gitea");
    assert.match((await ended()).result, /the preview web-feature-x-\w+ is deleted/);
    await send("pull_request", pullRequest("closed", "pr"));
    await until("no preview is left", async () => (await branches()).length === 0 || undefined);
    assert.deepEqual(await versions(platform, "web"), []);
    assert.match((await send("push", { ...pushEvent("x", ZEROS), ref: "refs/tags/v1" })).body.why, /only branches/);
    assert.deepEqual((await send("ping", { zen: "Keep it simple." })).body, { result: "pong" });
    assert.match((await send("star", {})).body.why, /"star" are not used/);
  });

  test("a signature made by openssl is taken, also of a form; any other is refused before anything is done", async (t) => {
    const { platform, server, webhook, work } = await scene(t);
    work.commit("Begin", { "hangar.toml": APP_FILE });
    work.git("push", "-q", "origin", "main");
    const post = async (body: string, headers: string, secret = webhook.secret) =>
      await shell(
        `printf %s "$BODY" > body
         hex=$(openssl dgst -sha256 -hmac "$SECRET" < body | sed 's/.* //')
         curl -s -w ' %{http_code}' --data-binary @body ${headers} -H 'X-GitHub-Event: ping' "$URL"`,
        { cwd: tempDir(), BODY: body, SECRET: secret, URL: webhook.url },
      );
    const signed = '-H "X-Hub-Signature-256: sha256=$hex"';
    const json = "-H 'Content-Type: application/json'";
    assert.equal((await post('{"zen":"x"}', `${json} ${signed}`)).stdout, '{"result":"pong"} 200');
    const form = `payload=${encodeURIComponent('{"zen":"x"}')}`;
    assert.equal((await post(form, signed)).stdout, '{"result":"pong"} 200');
    const refused = [
      await post("{}", `${json} ${signed}`, "another secret"),
      await post("{}", json),
      await post("{}", `${json} -H 'X-Hub-Signature-256: sha1=abc'`),
      await post("{}", `${json} -H "X-Hub-Signature: sha1=$hex"`),
    ];
    for (const { stdout } of refused) assert.match(stdout, /not signed with the webhook's secret.* 401$/s);
    assert.match((await post("[1]", `${json} ${signed}`)).stdout, / 400$/);
    const path = webhook.url.slice(webhook.url.indexOf("/v1/"));
    for (const other of [path.replace("/web/", "/other/"), `${path}x`])
      assert.equal((await platform.ask(`POST ${other}`, { body: {}, token: null })).status, 404);
    const large = await platform.ask(`POST ${path}`, { body: { x: "x".repeat(8 * 2 ** 20) }, token: null });
    assert.deepEqual([large.status, large.body.status], [413, "payload_too_large"]);
    assert.equal(server.requests(), 0);
  });

  test("credentials are kept sealed; wrong ones, private hosts and revoked makers fail with words", async (t) => {
    const { platform, work, send, ended, webhook } = await scene(t, { password: "s3cret-of-the-repository" });
    const { ask } = platform;
    const commit = work.commit("Begin", { "hangar.toml": APP_FILE });
    work.git("push", "-q", "origin", "main");
    await send("push", pushEvent("main", commit));
    assert.equal((await ended()).git_commit, commit);
    const listed = await ask("GET /v1/apps/web/git/webhooks");
    assert.equal(listed.body.webhooks[0].has_password, true);
    assert.doesNotMatch(listed.text, new RegExp(`s3cret|${webhook.secret}`));
    const connect = (repository: string) => ask("POST /v1/apps/web/git/webhooks", { body: { repository } });
    for (const [address, status] of [
      ["http://git.example.com/x.git", "invalid_request"],
      ["https://me:pw@git.example.com/x.git", "invalid_request"],
      ["https://git.example.com/x.git?y", "invalid_request"],
      ["file:///etc", "invalid_request"],
      ["https://169.254.169.254/x.git", "address_refused"],
      ["https://[::1]/x.git", "address_refused"],
    ] as const)
      assert.equal((await connect(address)).body.status, status, address);
    const other = (await connect("https://localhost:8443/x.git")).body;
    const body = JSON.stringify(pushEvent("main", commit));
    const hex = createHmac("sha256", other.secret).update(body).digest("hex");
    const path = `/v1/apps/web/git/webhooks/${other.id}`;
    await ask(`POST ${path}`, { body, headers: DIALECTS.github("push", hex), token: null });
    const inside = await until("it has failed", async () => {
      const [newest] = (await ask(`GET ${path}/deliveries`)).body.deliveries;
      return newest?.ended_at ? newest : undefined;
    });
    assert.match(inside.result, /localhost is at .*not a public address; .*HANGAR_GIT_ALLOW_PRIVATE=localhost:8443/);
    const tokens = (await ask("GET /v1/orgs/personal/tokens")).body.tokens as { id: string; name: string }[];
    for (const { id, name } of tokens)
      if (name === "Git webhook of web") await ask(`DELETE /v1/orgs/personal/tokens/${id}`);
    const next = work.commit("More");
    work.git("push", "-q", "origin", "main");
    await send("push", pushEvent("main", next));
    assert.match((await ended()).result, /The token that made this webhook is no longer good.*revoked/);
    assert.equal((await ask(`DELETE ${webhook.url.slice(webhook.url.indexOf("/v1/"))}`)).status, 204);
    assert.equal((await send("ping", {})).status, 404);
  });

  test("a webhook of a revoked maker deletes no preview", async (t) => {
    const { platform, work, send, ended } = await scene(t);
    const { ask } = platform;
    work.commit("Begin", { "hangar.toml": APP_FILE });
    work.git("checkout", "-q", "-b", "feature");
    const commit = work.commit("A feature");
    work.git("push", "-q", "origin", "main", "feature");
    await send("push", pushEvent("feature", commit));
    assert.equal((await ended()).git_commit, commit);
    const previews = async () => (await ask("GET /v1/apps/web/previews")).body.previews;
    const before = await previews();
    assert.equal(before.length, 1);
    const tokens = (await ask("GET /v1/orgs/personal/tokens")).body.tokens as { id: string; name: string }[];
    for (const { id, name } of tokens)
      if (name === "Git webhook of web") await ask(`DELETE /v1/orgs/personal/tokens/${id}`);
    work.git("push", "-q", "origin", ":feature");
    for (const [event, payload] of [
      ["pull_request", pullRequest("closed", "feature")],
      ["push", pushEvent("feature", ZEROS)],
      ["delete", { ref: "feature", ref_type: "branch", repository: { full_name: "acme/shop" } }],
    ] as const) {
      assert.equal((await send(event, payload)).status, 202);
      const { state, result } = await ended();
      assert.equal(state, "failed", result);
      assert.match(result, /The token that made this webhook is no longer good.*revoked/);
      assert.deepEqual(await previews(), before);
    }
  });

  test("a failed deploy is reported in the delivery, keeps the branch, and a repeated event retries it", async (t) => {
    const { platform, work, send, ended } = await scene(t);
    const broken = work.commit("Break it", { "hangar.toml": "port = [\n" });
    work.git("push", "-q", "origin", "main");
    await send("push", pushEvent("main", broken));
    const failed = await ended();
    assert.equal(failed.state, "failed");
    assert.match(failed.result, /hangar\.toml[\s\S]*main was not deployed/);
    work.git("checkout", "-q", "--orphan", "mended");
    const mended = work.commit("Mend it", { "hangar.toml": APP_FILE });
    work.git("push", "-q", "--force", "origin", "mended:main");
    assert.deepEqual((await send("push", pushEvent("main", broken))).body, { result: "queued" });
    await until("it is deployed", async () => (await ended()).state === "done" || undefined);
    assert.deepEqual(await versions(platform, "web"), [[mended, "complete"]]);
  });
});

suite("a platform killed during the deploy of a webhook", { skip }, () => {
  test("deploys it after its next start", async (t) => {
    const server = await startGitServer();
    t.after(() => server.close());
    const data_dir = tempDir();
    const env = { HANGAR_GIT_ALLOW_PRIVATE: server.host };
    const first = await startDaemon(t, data_dir, [], env);
    await first.call("POST", "/v1/apps", { app_name: "web" });
    const { body } = await first.call("POST", "/v1/apps/web/git/webhooks", { repository: server.url });
    const work = new GitWork();
    // The release command takes a while on simulated machines.
    const slow = `${APP_FILE}[deploy]\nrelease_command = "migrate"\n[env]\nSIM_RUN_MS = "15000"\n`;
    const commit = work.commit("Begin", { "hangar.toml": slow });
    work.git("push", "-q", server.dir, "main");
    const event = pushEvent("main", commit);
    const hex = createHmac("sha256", String(body["secret"])).update(JSON.stringify(event)).digest("hex");
    const path = `/v1/apps/web/git/webhooks/${String(body["id"])}`;
    const sent = await first.call("POST", path, event, DIALECTS.github("push", hex));
    assert.equal(sent.status, 202);
    const statuses = async ({ call }: typeof first): Promise<string[]> => {
      const releases = (await call("GET", "/v1/apps/web/releases")).body["releases"];
      return (releases as { status: string }[]).map(({ status }) => status);
    };
    await until("it is being deployed", async () => (await statuses(first)).includes("running") || undefined);
    await first.child.kill();
    const second = await startDaemon(t, data_dir, [], env);
    await until("it is deployed", async () => (await statuses(second)).includes("complete") || undefined);
    assert.deepEqual(await statuses(second), ["complete", "failed"]);
    const done = await until("the delivery is done", async () => {
      const { deliveries } = (await second.call("GET", `${path}/deliveries`)).body;
      return (deliveries as { git_commit: string | null }[])[0]?.git_commit ?? undefined;
    });
    assert.equal(done, commit);
  });
});
