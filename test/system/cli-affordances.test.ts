/** What makes the command pleasant: short names, dry runs, being asked, completion, in a real process against an emulator. */
import assert from "node:assert/strict";
import { join } from "node:path";
import { suite, type TestContext, test } from "node:test";
import { changesSomething } from "../../src/cli/dry-run.ts";
import { NOUNS } from "../../src/cli/nouns.ts";
import { allVerbs } from "../../src/cli/verbs.ts";
import { startPlatform } from "../../src/testing/index.ts";
import { shell, tempDir, until } from "../support.ts";
import { ROOT } from "./child.ts";

const VERBS = await allVerbs();
const HANGAR = join(ROOT, "bin/hangar.mjs");

async function start(t: TestContext) {
  const emulator = await startPlatform();
  t.after(() => emulator.close());
  const cwd = tempDir();
  const env = { cwd, HOME: cwd, XDG_CONFIG_HOME: "", HANGAR_URL: emulator.base_url, HANGAR_TOKEN: emulator.token };
  const run = (line: string) => shell(`hangar() { "${process.execPath}" "${HANGAR}" "$@"; }\n${line}`, env);
  const ok = async (line: string): Promise<string> => {
    const { status, stdout, stderr } = await run(line);
    assert.equal(status, 0, `${line}: ${stdout}${stderr}`);
    return stdout;
  };
  /** As if `answer` was typed on a terminal. */
  const typed = (line: string, answer: string) =>
    shell(`printf '${answer}' | script -qec '"${process.execPath}" "${HANGAR}" ${line}' /dev/null`, env);
  return { emulator, run, ok, typed };
}

suite("hangar command: help, aliases and prompts", () => {
  test("every noun has a description, help begins with examples, and up --help lists the settings", async (t) => {
    const { ok, run } = await start(t);
    const nouns = new Set(VERBS.flatMap(({ words }) => (words.includes(" ") ? [words.split(" ")[0] ?? ""] : [])));
    assert.deepEqual(
      [...nouns].filter((noun) => !NOUNS[noun]),
      [],
    );
    assert.match(await ok("hangar --help"), /^Examples:\n {2}hangar up\n {2}hangar run hangar\/hello\n/);
    assert.match(await ok("hangar up --help"), /--proxy-listen-host +\w/, "its settings are listed");
    // What `up` does not know belongs to the platform, which says what is wrong with it.
    const { status, stderr, stdout } = await run("hangar up --listen nowhere");
    assert.equal(status, 1);
    assert.match(stdout + stderr, /listen/);
    assert.doesNotMatch(stdout + stderr, /unknown option/);
  });

  test("aliases work, and run creates machines with autostart", async (t) => {
    const { emulator, ok } = await start(t);
    await ok("hangar run hangar/hello --name one");
    assert.match(await ok("hangar m ls"), /one +hello +started/);
    const params = { app_name: "hello" };
    const [machine] = await emulator.client.call("GET /v1/apps/:app_name/machines", { params, query: {} });
    assert.partialDeepStrictEqual(machine?.config, { services: [{ autostart: true }] });
    assert.match(await ok("hangar m ps one"), /PID +CPU TIME +MEMORY +COMMAND\n1 +0\.00 s +0 B/);
    await ok("hangar m rm one --force && hangar apps rm hello");
  });

  test("a usage error is JSON with --json", async (t) => {
    const { run } = await start(t);
    for (const [line, text] of [
      ["hangar apps create --json", /missing required argument 'name'/],
      ["hangar apps frob --json", /unknown command 'frob'/],
      ["hangar machines stop --json", /missing required argument 'machine'/],
      ["hangar logs --json", /missing required argument 'app'/],
    ] as const) {
      const { status, stdout } = await run(line);
      assert.equal(status, 2, line);
      assert.match((JSON.parse(stdout) as { error: string }).error, text, line);
    }
  });

  test("--dry-run prints the request and changes nothing", async (t) => {
    const { emulator, ok, run } = await start(t);
    assert.match(await ok("hangar apps create web --dry-run"), /^would send: curl -X POST .*"app_name":"web"/);
    await ok("hangar apps create web && hangar machines run any:1 --app web --name one");
    const before = await ok("hangar machines show one --json");
    const lines = [
      "m stop one",
      "m update one -e A=1",
      "m rm one --force",
      "m metadata one a=b",
      "apps rm web --force",
    ];
    for (const line of lines) assert.match(await ok(`hangar ${line} --dry-run`), /^would send: curl -X /, line);
    assert.deepEqual(JSON.parse(await ok("hangar m stop one --dry-run --json")), {
      dry_run: true,
      method: "POST",
      path: `/v1/apps/web/machines/${(JSON.parse(before) as { id: string }).id}/stop`,
      body: {},
    });
    assert.equal(await ok("hangar machines show one --json"), before);
    assert.equal((await emulator.client.call("GET /v1/apps", { query: {} })).apps.length, 1);
    assert.equal((await run("hangar down --dry-run")).status, 2, "what cannot be shown is not offered");
    assert(!VERBS.some((verb) => changesSomething(verb) && verb.words.startsWith("context ")));
  });

  test("on a terminal a missing name is asked for", async (t) => {
    const { ok, typed } = await start(t);
    await ok("hangar run hangar/hello --name one && hangar run hangar/hello --name two");
    const stopped = await typed("machines stop", "2\\n");
    assert.match(stopped.stdout, /1 +one +hello, started[\s\S]*2 +two +hello, started[\s\S]*which machine\?/);
    assert.match(await ok("hangar m ls --state stopped"), /two/);
    assert.match((await typed("machines start", "tw\\n")).stdout, /\(two\) is started/);
    const wrong = await typed("machines stop", "7\\n");
    assert.equal(wrong.status, 2);
    assert.match(wrong.stdout, /7 is none of them/);
    assert.match((await typed("machines stop", "\\004")).stdout, /missing required argument 'machine'/);
  });

  test("top uses the alternate screen until q, restores it on SIGTERM, and prints plain text in a pipe", async (t) => {
    const { ok, run, typed } = await start(t);
    await ok("hangar run hangar/hello --name one");
    const { status, stdout } = await typed("top", "q");
    assert.equal(status, 0, stdout);
    const screen = stdout.slice(stdout.indexOf("\u001b[?1049h"), stdout.indexOf("\u001b[?1049l"));
    assert.match(screen, /1 machine: 1 started[\s\S]*hello\/one +start started[\s\S]*q ends/);
    // In a pipe it is text, and nothing but text.
    assert.doesNotMatch(await ok("hangar top --once"), /\?1049|q ends/);
    const top = `echo $$ > pid; exec "${process.execPath}" "${HANGAR}" top`;
    const seen = `script -qefc '${top}' screen & until grep -q "q ends" screen || ! kill -0 $!; do sleep 0.1; done`;
    const told = await run(`(${seen}; kill $(cat pid); wait) > out 2>&1; cat screen`);
    assert.match(told.stdout, /\?1049h[\s\S]*q ends[\s\S]*\?25h[\s\S]*\?1049l/, "whoever is told to go tidies up");
  });

  test("completion offers aliases, names in options, and names after options", async (t) => {
    const { ok } = await start(t);
    await ok("hangar run hangar/hello --name one && hangar context add lab");
    // A busy platform that does not answer at once is not waited for: then there are no names, this time.
    const complete = (words: string) =>
      until(`words after ${words}`, async () => {
        const found = (await ok(`hangar __complete -- ${words}`)).trim().split("\n");
        return found[0] !== "" && found;
      });
    assert.ok((await complete("m ''")).includes("stop"));
    assert.ok((await complete("m stop ''")).includes("one"));
    assert.deepEqual(await complete("secrets list --app ''"), ["hello"]);
    assert.deepEqual(await complete("m ls --context ''"), ["lab"]);
    assert.ok((await complete("m logs --app hello ''")).includes("one"));
    assert.deepEqual(await complete("apps ls --wa"), ["--watch"]);
    assert.deepEqual(await complete("m stop --dry"), ["--dry-run"]);
    assert.deepEqual(await complete("deploy --strategy ''"), ["bluegreen", "canary", "immediate", "rolling"]);
    assert.deepEqual(await complete("m ls --state st"), ["started", "stopped"]);
    assert.deepEqual(await complete("tokens inspect --machine on"), ["one"]);
  });

  test("every config field has a description, and explain accepts it without the config prefix", async (t) => {
    const { ok } = await start(t);
    interface Explained {
      schema: { properties: Record<string, { description?: string }> };
    }
    const { schema } = JSON.parse(await ok("hangar explain config --json")) as Explained;
    const silent = Object.entries(schema.properties).flatMap(([name, { description }]) => (description ? [] : [name]));
    assert.deepEqual(silent, []);
    assert.match(await ok("hangar explain services.autostart"), /Requests start stopped machines/);
  });
});
