/** `hangar releases`: what each deploy was, why, from which Git commit, and why it failed. */
import assert from "node:assert/strict";
import { execFileSync } from "node:child_process";
import { writeFileSync } from "node:fs";
import { join } from "node:path";
import { suite, type TestContext, test } from "node:test";
import { testPlatform } from "../platform.ts";
import { shell, tempDir } from "../support.ts";
import { ROOT } from "./child.ts";

interface Release {
  version: number;
  status: string;
  message: string;
  git_commit: string | null;
  git_branch: string | null;
  failure: string | null;
  duration_ms: number | null;
}

/** A folder with an app's file in a Git repository, and `hangar` in it. */
async function start(t: TestContext) {
  const platform = await testPlatform(t);
  const cwd = tempDir();
  const git = (...args: string[]): string => {
    const author = ["-c", "user.name=test", "-c", "user.email=test@example.com"];
    return execFileSync("git", [...author, ...args], { cwd, encoding: "utf8" }).trim();
  };
  git("init", "--quiet", "--initial-branch=main");
  const hangar = async (line: string, exit = 0) => {
    const command = `"${process.execPath}" "${join(ROOT, "bin/hangar.mjs")}" ${line}`;
    const { status, stdout, stderr } = await shell(command, { cwd, HOME: cwd, HANGAR_DATA_DIR: platform.data_dir });
    assert.equal(status, exit, `${line}: ${stdout}${stderr}`);
    return stdout + stderr;
  };
  const write = (env: string): void =>
    writeFileSync(join(cwd, "hangar.toml"), `app = "web"\nimage = "web:1"\n[env]\n${env}\n`);
  const release = async (version = ""): Promise<Release> => JSON.parse(await hangar(`releases show ${version} --json`));
  return { git, hangar, write, release };
}

suite("hangar releases", () => {
  test("a release records its message, commit, branch and duration, and -dirty for changed files", async (t) => {
    const { git, hangar, write, release } = await start(t);
    write('MODE = "slow"');
    git("add", "-A");
    git("commit", "--quiet", "-m", "first");
    const commit = git("rev-parse", "HEAD");
    await hangar('deploy --stable-for 0s -m "first try"');
    const first = await release();
    assert.deepEqual(
      [first.message, first.git_commit, first.git_branch, first.failure],
      ["first try", commit, "main", null],
    );
    assert.ok((first.duration_ms ?? -1) >= 0);
    write('MODE = "fast"');
    await hangar("deploy --stable-for 0s");
    assert.equal((await release("2")).git_commit, `${commit}-dirty`);
    const list = await hangar("releases");
    assert.match(list, new RegExp(`deploy: first try +${commit.slice(0, 7)} `));
    assert.match(list, new RegExp(` ${commit.slice(0, 7)}-dirty `));
    const facts = (text: string): string => text.replaceAll(/\S+ \S+ ago|just now/g, "");
    assert.equal(facts(await hangar("releases list")), facts(list));
    const shown = await hangar("releases show 1");
    assert.match(shown, /message +first try/);
    assert.match(shown, new RegExp(`commit +${commit.slice(0, 7)} on main`));
  });

  test("two releases are compared field by field", async (t) => {
    const { hangar, write } = await start(t);
    write('MODE = "slow"');
    await hangar("deploy --stable-for 0s");
    write('MODE = "fast"\nEXTRA = "1"');
    await hangar("deploy --stable-for 0s");
    const text = await hangar("releases diff 1 2");
    assert.equal(text, 'groups.app.config.env.EXTRA: nothing → "1"\ngroups.app.config.env.MODE: "slow" → "fast"\n');
    assert.equal(await hangar("releases diff 1"), text, "the newest is the default");
    assert.match(await hangar("releases diff 2 2"), /releases 2 and 2 run the same/);
    assert.match(await hangar("releases diff one", 2), /one is not a number of `hangar releases`/);
    assert.match(await hangar("releases diff 1 9", 4), /there is no release 9/);
  });

  test("a failed release says why, and a folder without Git is deployed as well", async (t) => {
    const { hangar, write, release } = await start(t);
    write('MODE = "slow"');
    // A repository without a commit.
    await hangar("deploy --stable-for 0s");
    assert.equal((await release()).git_commit, null);
    write('SIM_RUN_MS = "100"\nSIM_EXIT_CODE = "3"');
    await hangar("deploy", 1);
    const failed = await release();
    assert.deepEqual([failed.version, failed.status], [2, "failed"]);
    assert.match(failed.failure ?? "", /its program exited with code 3/);
    assert.match(await hangar("releases show"), /failure +machine .* exited with code 3/);
  });
});
