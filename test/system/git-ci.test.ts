/** The commands of the recipes for CI in docs/git.md, run as a job runs them: with a token of one app and Debian's Git. */
import assert from "node:assert/strict";
import { readFileSync } from "node:fs";
import { join } from "node:path";
import { suite, test } from "node:test";
import { testPlatform } from "../platform.ts";
import { shell, until } from "../support.ts";
import { ROOT } from "./child.ts";
import { GitWork, gitMissing } from "./git-work.ts";

const APP_FILE = 'app = "shop"\nimage = "hangar/hello"\n[http_service]\ninternal_port = 8080\n';
const HANGAR = `hangar() { "${process.execPath}" "${join(ROOT, "bin/hangar.mjs")}" "$@"; }`;

const page = readFileSync(join(ROOT, "docs/git.md"), "utf8");
/** `- run: …`, and the lines of a `script:`. */
const commands = [...page.matchAll(/```yaml\n([\s\S]*?)```/g)].flatMap(([, block = ""]) =>
  [...block.matchAll(/^ +- (?:run: )?((?:git|hangar) .*)$/gm)].map(([, command = ""]) => command),
);

suite("recipes for CI", { skip: gitMissing() }, () => {
  test("deploy the app, make previews of branches and delete them, with a token of the app alone", async (t) => {
    assert.equal(commands.length, 5);
    const [github = "", remove = "", gitlab = "", deploy = "", preview = ""] = commands;
    const platform = await testPlatform(t);
    const { ask, base_url, data_dir } = platform;
    await ask("POST /v1/apps", { body: { app_name: "shop" } });
    await ask("PUT /v1/apps/shop/previews/settings", { body: { enabled: true } });
    const create = /^hangar tokens create .*$/m.exec(page)?.[0] ?? assert.fail("the page makes no token");
    const made = await shell(`${HANGAR}\n${create} --json`, { HANGAR_DATA_DIR: data_dir });
    const { token } = JSON.parse(made.stdout) as { token: string };
    const work = new GitWork();
    const job = async (command: string, env: Record<string, string>): Promise<string> => {
      const secrets = { HANGAR_URL: base_url, HANGAR_TOKEN: token, HANGAR_DATA_DIR: "/nonexistent" };
      const { status, text } = await work.run(`${HANGAR}\n${command}`, { ...secrets, ...env });
      assert.equal(status, 0, `${command}\n${text}`);
      assert.doesNotMatch(text, new RegExp(token), "the token is not in the log of the job");
      return text;
    };
    const previews = async (): Promise<string[]> =>
      (await ask("GET /v1/apps/shop/previews")).body.previews.map(({ branch }: { branch: string }) => branch);

    work.commit("Begin", { "hangar.toml": APP_FILE });
    assert.match(await job(github, { GITHUB_REF_NAME: "main" }), /shop runs release 1/);
    assert.match(await job(github, { GITHUB_REF_NAME: "feature/x" }), /shop-feature-x-\w+ runs release 1/);
    work.commit("More");
    assert.match(await job(gitlab, { CI_COMMIT_BRANCH: "feature/x" }), /shop-feature-x-\w+ runs release 2/);
    assert.match(await job(deploy, { CI_PIPELINE_ID: "7" }), /shop runs release 2/);
    assert.match(await job(preview, { CI_COMMIT_BRANCH: "feature/y" }), /shop-feature-y-\w+ runs release 1/);
    const [release] = (await ask("GET /v1/apps/shop/releases")).body.releases;
    assert.deepEqual([release.message, release.created_by, release.status], ["pipeline 7", "ci", "complete"]);
    assert.deepEqual(await previews(), ["feature/x", "feature/y"]);
    assert.match(await job(remove, { BRANCH: "feature/x" }), /Deleting the preview shop-feature-x/);
    await until("the preview is gone", async () => (await previews()).join() === "feature/y" || undefined);
  });
});
