/** `git push` with Debian's Git: what is deployed, what is refused, and what is left when the platform is killed. */
import assert from "node:assert/strict";
import { existsSync, readdirSync, readFileSync, symlinkSync } from "node:fs";
import { createServer, type Server } from "node:http";
import type { AddressInfo } from "node:net";
import { join } from "node:path";
import { after, before, suite, type TestContext, test } from "node:test";
import { messageOf } from "#core/assert.ts";
import { systemClock } from "#core/clock.ts";
import { silentLog } from "#core/log.ts";
import { NamespaceConfinement } from "#drivers/git/confinement.ts";
import { GitHttp } from "#git/http.ts";
import { GIT_LIMITS, type GitLimits } from "#git/limits.ts";
import { type PreviewApps, Previews } from "#git/previews.ts";
import { GitService } from "#git/service.ts";
import { Turns } from "#git/turns.ts";
import { migrate } from "#stores/migrate.ts";
import { sqlPreviewStore } from "#stores/sql/previews.ts";
import { inlineSqlite } from "#stores/sqlite/inline.ts";
import { type TestPlatform, testPlatform } from "../platform.ts";
import { tempDir, until } from "../support.ts";
import { ROOT } from "./child.ts";
import { startDaemon } from "./daemon.ts";
import { GitWork, gitMissing, repositoryUrl } from "./git-work.ts";

const APP_FILE = 'app = "web"\nimage = "hangar/hello"\n[http_service]\ninternal_port = 8080\n';
const skip = gitMissing();

interface Scene {
  platform: TestPlatform;
  work: GitWork;
  url: string;
}

async function scene(t: Pick<TestContext, "after">): Promise<Scene> {
  const platform = await testPlatform(t);
  await platform.ask("POST /v1/apps", { body: { app_name: "web" } });
  const work = new GitWork();
  return { platform, work, url: repositoryUrl(platform.base_url, platform.token) };
}

const releasesOf = async ({ platform }: Scene) => (await platform.ask("GET /v1/apps/web/releases")).body.releases;

suite("git push", { skip }, () => {
  test("deploys the commit as a release with its subject and author, and gives it back to a clone", async (t) => {
    const here = await scene(t);
    const { platform, work } = here;
    const hangar = `"${process.execPath}" "${join(ROOT, "bin/hangar.mjs")}"`;
    const env = { HANGAR_DATA_DIR: platform.data_dir, HANGAR_APP: "web" };
    const commit = work.commit("Show the first page", { "hangar.toml": APP_FILE });
    // As a person does it; the helper is named by its path, because it is not installed here.
    const added = await work.run(`${hangar} git remote --add && git config --local --get-regexp credential`, env);
    assert.match(added.text, /Next: git push hangar main\ncredential\.http:\S+\.helper !hangar git credential/);
    const helper = `git -c credential.helper='!${hangar.replaceAll('"', "")} git credential'`;
    const pushed = await work.run(`${helper} push hangar main`, env);
    assert.equal(pushed.status, 0, pushed.text);
    assert.match(pushed.text, /remote: Deploying main \([0-9a-f]{12}\) to web/);
    assert.match(pushed.text, /remote: Release 1 of web: hangar\/hello .*\n[\s\S]*remote: web runs release 1\n/);
    const [release] = await releasesOf(here);
    const { status, message, git_commit, git_branch, created_by } = release;
    assert.deepEqual(
      [status, message, git_commit, git_branch, created_by],
      ["complete", "Show the first page (Ada)", commit, "main", "first start"],
    );
    const { url } = here;
    const again = await work.run(`git config --unset-all credential.\${U}.helper; git push '${url}' main`, {
      U: platform.base_url,
    });
    assert.match(again.text, /Everything up-to-date/);
    assert.match((await work.run(`git clone -q '${url}' copy && git -C copy rev-parse HEAD`)).text, new RegExp(commit));
    assert.deepEqual(readdirSync(join(platform.data_dir, "git/repositories", ...(await folderOf(here)), "work")), []);
  });

  test("a failed deploy rejects the push with the reason, and the next push is deployed", async (t) => {
    const here = await scene(t);
    const { work, url } = here;
    work.commit("Break it", { "hangar.toml": `${APP_FILE}port = [\n` });
    const failed = await work.run(`git push '${url}' main`);
    assert.notEqual(failed.status, 0);
    assert.match(
      failed.text,
      /remote: error: hangar\.toml: [\s\S]*main was not deployed[\s\S]*remote rejected\] main -> main/,
    );
    assert.match((await work.run(`git ls-remote '${url}'`)).text, /^$/);
    work.commit("Mend it", { "hangar.toml": APP_FILE });
    assert.match((await work.run(`git push '${url}' main`)).text, /web runs release 1/);
  });

  test("only the deploy branch is deployed; it can be changed, and not be deleted", async (t) => {
    const here = await scene(t);
    const { platform, work, url } = here;
    work.commit("Begin", { "hangar.toml": APP_FILE });
    const stored = await work.run(`git push '${url}' main:feature`);
    assert.match(stored.text, /feature is stored; web is deployed from main/);
    assert.deepEqual(await releasesOf(here), []);
    const bad = await platform.ask("PUT /v1/apps/web/git", { body: { deploy_branch: "../x" } });
    assert.deepEqual([bad.status, bad.body.details[0].path], [400, "body.deploy_branch"]);
    const set = await platform.ask("PUT /v1/apps/web/git", { body: { deploy_branch: "live" } });
    assert.equal(set.body.deploy_branch, "live", set.text);
    assert.match((await work.run(`git push '${url}' main:live`)).text, /web runs release 1/);
    assert.match((await work.run(`git push '${url}' --delete live`)).text, /it cannot be deleted.*hangar git branch/);
    assert.equal((await work.run(`git push '${url}' --delete feature`)).status, 0);
  });

  test("a token that may not write the app cannot push; one that may read it can clone", async (t) => {
    const here = await scene(t);
    const { platform, work, url } = here;
    await platform.ask("POST /v1/apps", { body: { app_name: "shop" } });
    await platform.ask("POST /v1/orgs", { body: { name: "other" } });
    const tokenOf = async (path: string, kind: object = {}): Promise<string> => {
      const made = await platform.ask(`POST /v1/${path}`, { body: { expiry: "1h", ...kind } });
      assert.ok(made.body.token, made.text);
      return made.body.token as string;
    };
    work.commit("Begin", { "hangar.toml": APP_FILE });
    const deployer = repositoryUrl(platform.base_url, await tokenOf("apps/web/deploy_token"));
    const pushed = await work.run(`git push '${deployer}' main`);
    assert.match(pushed.text, /web runs release 1/, "a token of this app alone deploys it");
    const refused = [
      ["hm1_nonsense", /Authentication failed/],
      [await tokenOf("orgs/personal/tokens", { kind: "readonly" }), /the token allows read, this needs write/],
      [await tokenOf("apps/shop/deploy_token"), /the token is for app shop only/],
      [await tokenOf("orgs/other/tokens", { kind: "org" }), /Could not find App "web"/],
    ] as const;
    for (const [token, reason] of refused) {
      const { status, text } = await work.run(`git push '${repositoryUrl(platform.base_url, token)}' main`);
      assert.notEqual(status, 0);
      assert.match(text, reason);
    }
    const reader = repositoryUrl(platform.base_url, refused[1][0]);
    assert.equal((await work.run(`git clone -q '${reader}' copy && ls copy`)).text, "hangar.toml\n");
    const nobody = url.replace(/\/\/.*@/, "//");
    assert.match(
      (await work.run(`git -c credential.helper= push '${nobody}' main </dev/null`)).text,
      /could not read Username/,
    );
  });

  test("names, trees and files that lead elsewhere are refused, and nothing of them is kept", async (t) => {
    const { platform, work, url } = await scene(t);
    const commit = work.commit("Begin", { "hangar.toml": APP_FILE });
    const rejected = async (refs: string, reason: RegExp): Promise<void> => {
      const { status, text } = await work.run(`git push '${url}' ${refs}`);
      assert.notEqual(status, 0, text);
      assert.match(text, reason);
    };
    await rejected("main:refs/notes/x", /is neither a branch nor a tag/);
    await rejected(`main:refs/heads/${"x".repeat(200)}`, /limit ref_name_chars/);
    await rejected(Array.from({ length: 101 }, (_, i) => `main:b${i}`).join(" "), /limit refs_per_push/);

    const blob = work.git("rev-parse", "HEAD:hangar.toml");
    const inner = work.git("rev-parse", "HEAD^{tree}");
    const entry = (mode: string, name: string, id: string): Buffer =>
      Buffer.concat([Buffer.from(`${mode} ${name}\0`), Buffer.from(id, "hex")]);
    const pushTree = async (bytes: Buffer, reason: RegExp): Promise<void> => {
      const tree = work.object("tree", bytes);
      const head = `tree ${tree}\nauthor A <a@b> 1 +0000\ncommitter A <a@b> 1 +0000\n\nx\n`;
      await rejected(`${work.object("commit", Buffer.from(head))}:refs/heads/main`, reason);
    };
    await pushTree(entry("40000", "..", inner), /hasDotdot/);
    await pushTree(entry("40000", ".git", inner), /hasDotgit/);
    await pushTree(entry("100644", "../../etc/cron.d/x", blob), /fullPathname/);

    // Each folder has the one before it ten times: few bytes, and more files than there are atoms on the disk.
    let bomb = inner;
    for (let level = 0; level < 8; level++)
      bomb = work.object("tree", Buffer.concat(Array.from({ length: 10 }, (_, i) => entry("40000", `d${i}`, bomb))));
    await pushTree(entry("40000", "d", bomb), /more than 50000 files \(limit tree_entries\)/);

    for (const [path, why] of [
      ["/etc/shadow", "an absolute path"],
      ["../../../../../../etc/shadow", "a path out of the folder"],
      ["link", "a link out of the folder"],
      [`${platform.data_dir}/token`, "the platform's own files"],
    ] as const) {
      work.git("reset", "-q", "--hard", commit);
      symlinkSync("/etc/shadow", join(work.dir, "link"));
      work.commit(why, {
        "hangar.toml": `${APP_FILE}[[files]]\nguest_path = "/x"\nlocal_path = "${path}"\n`,
      });
      await rejected("HEAD:main", /cannot be read: ENOENT/);
    }
    const { body } = await platform.ask("GET /v1/apps/web/git");
    assert.match((await work.run(`git ls-remote '${url}'`)).text, /^$/);
    assert.ok(body.repository_bytes < 10_000, `${body.repository_bytes} bytes are kept`);
    assert.equal((await fetch(`${platform.base_url}/git/..%2f..%2fetc/info/refs?service=git-upload-pack`)).status, 401);
  });

  test("of two concurrent pushes the second waits, and fails because the branch has changed", async (t) => {
    const here = await scene(t);
    const { work, url } = here;
    work.commit("One", { "hangar.toml": APP_FILE });
    const other = new GitWork();
    other.commit("Two", { "hangar.toml": `${APP_FILE}[env]\nTWO = "2"\n` });
    await work.run(`git push '${url}' main`);
    work.commit("Three");
    const both = await Promise.all([
      work.run(`git push '${url}' main`),
      other.run(`git fetch -q '${url}' main && git push --force '${url}' main`),
    ]);
    const texts = both.map(({ text }) => text).join("\n");
    assert.equal(both.filter(({ status }) => status === 0).length, 1, texts);
    assert.match(texts, /Another push to web is being deployed: waiting for it/);
    assert.match(texts, /refs\/heads\/main was changed by another push in the meantime/);
    assert.deepEqual(
      (await releasesOf(here)).map(({ status }: { status: string }) => status),
      ["complete", "complete"],
    );
  });

  test("a push whose token is revoked ends at once, whether it deploys or waits, and nothing of it is kept", async (t) => {
    const here = await scene(t);
    const { platform, work, url } = here;
    const tokenOf = async (): Promise<{ id: string; url: string }> => {
      const { id, token } = (await platform.ask("POST /v1/apps/web/deploy_token", { body: {} })).body;
      return { id, url: repositoryUrl(platform.base_url, token) };
    };
    const [first, second] = [await tokenOf(), await tokenOf()];
    const never = '[deploy]\nwait_timeout = "10m"\n[checks.never]\ntype = "tcp"\nport = 1\ninterval = "1s"\n';
    work.commit("Never healthy", { "hangar.toml": `${APP_FILE}${never}` });
    const other = new GitWork();
    other.commit("Waits", { "hangar.toml": APP_FILE });
    const deploys = work.run(`git push '${first.url}' main`);
    await until("the first push deploys", async () => (await releasesOf(here)).length > 0 || undefined);
    const waits = other.run(`git push '${second.url}' main 2>&1 | tee waits`);
    const said = (): string =>
      existsSync(join(other.dir, "waits")) ? readFileSync(join(other.dir, "waits"), "utf8") : "";
    await until("the second one waits", () => Promise.resolve(/waiting for it/.test(said()) || undefined));
    for (const [{ id }, push] of [
      [second, waits],
      [first, deploys],
    ] as const) {
      await platform.ask(`DELETE /v1/orgs/personal/tokens/${id}`);
      const { text } = await push;
      assert.match(text, /token[\s\S]*revoked[\s\S]*Nothing of this push is kept[\s\S]*remote rejected\] main -> main/);
    }
    assert.match((await work.run(`git ls-remote '${url}'`)).text, /^$/);
    // It counts as interrupted when nothing was heard from its deployer for a minute (deploy-kill).
    const [release, ...others] = await releasesOf(here);
    assert.deepEqual([release.status === "complete", others], [false, []]);
  });
});

const folderOf = async ({ platform }: Scene): Promise<string[]> => {
  const [org = ""] = readdirSync(join(platform.data_dir, "git/repositories"));
  return [org, (await platform.ask("GET /v1/apps/web")).body.id as string];
};

suite("limits of git push", { skip }, () => {
  let url = "";
  let git: GitService;
  let server: Server;

  before(async () => {
    const dir = tempDir();
    const limits: GitLimits = { ...GIT_LIMITS, push_bytes: 100_000, repository_bytes: 200_000 };
    const confinement = new NamespaceConfinement({ root: join(dir, "root"), installed: ROOT, limits });
    const store = {
      settings: async () => ({ deploy_branch: "live" }),
      putSettings: async () => true,
      hasApp: async () => true,
      app: async () => undefined,
    };
    const database = inlineSqlite();
    await migrate(database);
    const shared = { limits, log: silentLog, clock: systemClock };
    // Previews are off: nothing of other modules is asked for.
    const previews = new Previews({ ...shared, store: sqlPreviewStore(database), apps: {} as PreviewApps });
    const parts = { confinement, limits, log: silentLog, previews, turns: new Turns(), url: () => "" };
    git = new GitService({ ...parts, store, dir: join(dir, "repositories"), interrupted: async () => {} });
    const app = { id: "a1", name: "web", org_id: "o1" };
    const http = new GitHttp({
      git,
      confinement,
      limits,
      clock: systemClock,
      guard: { admit: async () => ({ app, org: { id: "o1", slug: "personal" } }) },
      apps: { get: async () => app },
      deployToken: async () => "",
    });
    server = createServer((request, response) => {
      const caller = { token_id: "", name: "" };
      const whileAllowed = () => new AbortController().signal;
      http
        .relay({ request, response, caller, request_id: "", takeOver() {}, whileAllowed })
        .catch((thrown: unknown) => {
          response.writeHead(422, { "content-type": "text/plain" }).end(messageOf(thrown));
        });
    });
    await new Promise<void>((resolve) => {
      server.listen(0, "127.0.0.1", resolve);
    });
    url = `http://127.0.0.1:${(server.address() as AddressInfo).port}/git/web`;
  });
  after(() => server.close());

  test("a push over its limit is rejected and names it; a full repository is repacked first", async () => {
    const work = new GitWork();
    const noise = (bytes: number): string =>
      Array.from({ length: bytes / 4 }, () => Math.random().toString(36).slice(2, 6).padEnd(4)).join("");
    work.commit("Large", { a: noise(300_000) });
    const large = await work.run(`git push ${url} main`);
    assert.notEqual(large.status, 0);
    assert.match(large.text, /remote: The push has more than \d+ bytes[\s\S]*\(limit push_bytes\)/);
    const other = new GitWork();
    for (let i = 0; i < 4; i++) {
      // Nothing reaches what was pushed before: it goes when room is needed.
      other.git("checkout", "-q", "--orphan", `b${i}`);
      other.commit("Small", { a: noise(100_000) });
      const { status, text } = await other.run(`git push --force ${url} HEAD:refs/heads/x`);
      assert.equal(status, 0, text);
    }
    assert.ok(((await git.repositoryBytes({ id: "a1", name: "web", org_id: "o1" })) ?? 0) < 200_000);
  });
});

suite("a platform that ends during a push", { skip }, () => {
  test("stopped: the push is rejected, and nothing of it is kept", async (t) => {
    const { pushing, platform } = await pushInProgress(t, tempDir());
    platform.child.signal("SIGTERM");
    const { status, text } = await pushing;
    assert.notEqual(status, 0);
    assert.match(text, /Nothing of this push is kept[\s\S]*remote rejected\] main -> main/);
    await platform.child.ended;
  });

  test("killed: leaves nothing of it, the release is failed with the reason, and the next push is deployed", async (t) => {
    const data_dir = tempDir();
    const { work, pushing, platform } = await pushInProgress(t, data_dir);
    await platform.child.kill();
    assert.notEqual((await pushing).status, 0);
    const second = await startDaemon(t, data_dir);
    const { body } = await second.call("GET", "/v1/apps/web/releases");
    const [release] = body["releases"] as { status: string; failure: string }[];
    assert.deepEqual(
      [release?.status, release?.failure],
      ["failed", "the platform was restarted while this release was deployed by a push; push again"],
    );
    const repositories = join(data_dir, "git/repositories");
    const left = readdirSync(repositories, { recursive: true, encoding: "utf8" });
    assert.deepEqual(
      left.filter((path) => /work\/|tmp_|\.lock$/.test(path)),
      [],
    );
    await until("no process of the push runs", async () => !confined(data_dir) || undefined);
    const again = await work.run(`git push '${repositoryUrl(second.base_url, second.token)}' main`);
    assert.match(again.text, /web runs release 2/);
  });
});

async function pushInProgress(t: TestContext, data_dir: string) {
  const platform = await startDaemon(t, data_dir);
  await platform.call("POST", "/v1/apps", { app_name: "web" });
  const work = new GitWork();
  work.commit("Begin", { "hangar.toml": APP_FILE });
  const pushing = work.run(`git push '${repositoryUrl(platform.base_url, platform.token)}' main`);
  await until("the push deploys", async () => {
    const { body } = await platform.call("GET", "/v1/apps/web/releases");
    return (body["releases"] as { status: string }[]).some(({ status }) => status === "running") || undefined;
  });
  return { platform, work, pushing };
}

/** Whether a process has a root of this data dir mounted. */
const confined = (data_dir: string): boolean =>
  readdirSync("/proc").some(
    (pid) => /^\d+$/.test(pid) && existsSync(`/proc/${pid}/root/app/repo.git`) && mountsOf(pid).includes(data_dir),
  );

function mountsOf(pid: string): string {
  try {
    return readFileSync(`/proc/${pid}/mountinfo`, "utf8");
  } catch {
    // It has ended meanwhile.
    return "";
  }
}
