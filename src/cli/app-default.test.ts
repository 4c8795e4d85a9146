import assert from "node:assert/strict";
import { writeFileSync } from "node:fs";
import { join } from "node:path";
import { suite, test } from "node:test";
import { tempDir } from "../../test/support.ts";
import { defaultApp, hasDefaultApp } from "./app-default.ts";
import { optionsOf } from "./options.ts";
import { UsageError } from "./verb.ts";
import { allVerbs } from "./verbs.ts";

const VERBS = await allVerbs();

function verb(words: string) {
  return VERBS.find((one) => one.words === words) ?? assert.fail(`there is no ${words}`);
}

/** A folder with these files. */
function folder(files: Record<string, string>): string {
  const cwd = tempDir();
  for (const [name, text] of Object.entries(files)) writeFileSync(join(cwd, name), text);
  return cwd;
}

const found = async (words: string, cwd: string, args: string[] = [], options = {}, env = {}) =>
  (await defaultApp(verb(words), { args, options }, { env, cwd }))?.name;

suite("the default app of a command", () => {
  test("every command with --app has a default app, except those that must name one", () => {
    const takes = VERBS.filter((one) => optionsOf(one).some(([flags]) => flags.includes("--app <app>")));
    const without = takes.filter((one) => !hasDefaultApp(one)).map(({ words }) => words);
    assert.deepEqual(without, ["apps delete", "webhooks create"]);
    for (const words of ["secrets set", "logs", "machines list", "machines run", "ssh", "volumes create", "ips list"])
      assert.ok(hasDefaultApp(verb(words)), words);
    for (const one of takes.filter(hasDefaultApp)) {
      const [, words = ""] = optionsOf(one).find(([flags]) => flags.includes("--app <app>")) ?? [];
      assert.match(words, /default: HANGAR_APP, else the app of hangar\.toml or fly\.toml in this folder/);
    }
  });

  test("the default app is --app, else HANGAR_APP, else hangar.toml's, else fly.toml's", async () => {
    const both = folder({ "hangar.toml": 'app = "one"', "fly.toml": 'app = "two"' });
    assert.equal(await found("secrets list", both, [], { app: "named" }), undefined, "it is named");
    assert.equal(await found("secrets list", both, [], {}, { HANGAR_APP: "three" }), "three");
    assert.equal(await found("secrets list", both), "one");
    assert.equal(await found("secrets list", folder({ "fly.toml": 'app = "two"' })), "two");
    assert.equal(await found("secrets list", folder({ "hangar.toml": "" })), undefined);
    assert.equal(await found("secrets list", folder({})), undefined);
    assert.equal(await found("apps delete", both), undefined);
  });

  test("the default app replaces a missing first argument", async () => {
    const cwd = folder({ "hangar.toml": 'app = "web"' });
    assert.equal(await found("logs", cwd), "web");
    assert.equal(await found("logs", cwd, ["other"]), undefined);
    assert.equal(await found("certs add", cwd, ["www.example.com"]), "web");
    assert.equal(await found("certs add", cwd, ["other", "www.example.com"]), undefined);
  });

  test("the default app comes from the file given to deploy, and an unreadable file is named", async () => {
    const cwd = folder({ "hangar.toml": 'app = "web"', "staging.toml": 'app = "web-staging"', "fly.toml": "app = =" });
    assert.equal(await found("deploy", cwd, [], { config: "staging.toml" }), "web-staging");
    assert.equal(await found("deploy", cwd, [], { file: "staging.toml" }), "web-staging");
    await assert.rejects(found("diff", cwd, [], { file: "fly.toml" }), /fly\.toml: /);
    await assert.rejects(found("diff", cwd, [], { file: "none.toml" }), UsageError);
  });
});
