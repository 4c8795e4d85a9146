/** Every command of `hangar`, in a real process against a real platform. */
import assert from "node:assert/strict";
import { writeFileSync } from "node:fs";
import { join } from "node:path";
import { suite, test } from "node:test";
import { allVerbs } from "../../src/cli/verbs.ts";
import { overSocket } from "../inside.ts";
import { testPlatform } from "../platform.ts";
import { shell, tempDir, until } from "../support.ts";
import { ROOT } from "./child.ts";

const VERBS = await allVerbs();
const HANGAR = `hangar() { "${process.execPath}" "${join(ROOT, "bin/hangar.mjs")}" "$@"; }`;

async function start(t: Parameters<typeof testPlatform>[0]) {
  const cwd = tempDir();
  const config = join(cwd, "platform.toml");
  writeFileSync(config, '[connectors.github]\nclient_id = "id"\nclient_secret = "secret"\n');
  const platform = await testPlatform(t, {
    // For names with *., which an authority proves by DNS.
    HANGAR_ACME_DNS_HOOK: "/bin/true",
    HANGAR_CONFIG: config,
    HANGAR_ACME_DIRECTORY: "http://127.0.0.1:9/directory",
    HANGAR_FLY_LISTEN: "127.0.0.1:0",
  });
  const run = (line: string, env: Record<string, string> = {}) =>
    shell(`${HANGAR}\n${line}`, { cwd, HOME: cwd, HANGAR_DATA_DIR: platform.data_dir, ...env });
  return { platform, run };
}

suite("hangar command", () => {
  test("warnings of a response are printed beside the result", async (t) => {
    const { platform, run } = await start(t);
    await platform.ask("POST /v1/apps", { body: { app_name: "web" } });
    const { stdout, stderr } = await run("hangar volumes create data --app web --region mars");
    assert.match(stderr, /^warning: region mars is a name only/m);
    assert.match(stdout, /^created vol_/);
  });

  test("every example of every command works", async (t) => {
    const { platform, run } = await start(t);
    const { token, id } = (await platform.ask("POST /v1/orgs/personal/tokens", { body: { kind: "org" } })).body;
    await platform.ask("POST /v1/apps", { body: { app_name: "machinery" } });
    const machine: string = (
      await platform.ask("POST /v1/apps/machinery/machines", { body: { config: { image: "hangar/hello" } } })
    ).body.id;
    const path = "/v1/apps/machinery/volumes";
    const volume: string = (await platform.ask(`POST ${path}`, { body: { name: "kept", size_gb: 1 } })).body.id;
    const taken = await platform.ask(`POST ${path}/${volume}/snapshots`);
    const key = { provider: "github", api_key: "k" };
    const { connection } = (await platform.ask("POST /v1/oauth/connections/api_key", { body: key })).body;
    await platform.ask(`GET /v1/apps/machinery/machines/${machine}/wait`);
    const socket = `${await platform.local_api.open(machine)}/api`;
    const identity = await overSocket(socket, "POST /v1/tokens/oidc", { body: '{"aud":"sts.amazonaws.com"}' });
    const sent = await platform.ask("POST /v1/orgs/personal/webhooks", { body: { url: "http://127.0.0.1:9/hangar" } });
    const loki = { kind: "loki", url: "http://127.0.0.1:9" };
    const drain = (await platform.ask("POST /v1/orgs/personal/log-drains", { body: loki })).body;
    const env = {
      TOKEN: token,
      WEBHOOK: sent.body.id as string,
      DRAIN: drain.id as string,
      TOKEN_ID: id,
      MACHINE: machine,
      VOLUME: volume,
      SNAPSHOT: taken.body.Msg.backup.graph_id as string,
      CONNECTOR: connection.id,
      KEY: "k2",
      IDENTITY: identity.text,
      FLY_API_TOKEN: token,
      FLY_FLAPS_BASE_URL: platform.fly_url ?? "",
    };
    // In an order in which each finds what it needs: made before shown, shown before deleted, files apart.
    const last = (words: string): number => ["revoke", "unset", "delete"].findIndex((verb) => words.endsWith(verb)) + 1;
    // Those that need a second host, or leave none, are tried in hosts-together.test.ts.
    const elsewhere = ["machines move", "hosts drain", "hosts fail", "hosts remove"];
    // A service needs systemd: box-service.test.ts has a whole system for it.
    const services = ["service install", "service uninstall", "service status"];
    // `proxy` runs until it is interrupted (cli-proxy.test.ts); a base image takes minutes (images/base.test.ts).
    // `launch` needs a folder with an app in it: cli-launch.test.ts.
    // Simulated machines run no PostgreSQL, and no node of SQLite, that could be asked.
    const real = ["attach", "detach", "show", "connect", "backup", "backups", "restore"].map(
      (verb) => `postgres ${verb}`,
    );
    const apart = [
      "launch",
      "up",
      "down",
      "connectors finish",
      "proxy",
      "images base",
      "sqlite backups",
      "sqlite restore",
      ...real,
      ...services,
      ...elsewhere,
    ];
    const verbs = VERBS.filter(({ words }) => !apart.includes(words) && !words.startsWith("db ")).toSorted(
      (a, b) => last(a.words) - last(b.words) || creates(b.words) - creates(a.words),
    );
    await run("mkdir -p ~/.local/share/bash-completion/completions");
    await run(`printf 'app = "web"\\n[build]\\nimage = "hangar/hello"\\n' > hangar.toml`);
    await run(`printf 'groups: []\\n' > rules.yml; printf 'rule_files: [rules.yml]\\ntests: []\\n' > rules.test.yml`);
    const receivers = "[{name: operator, webhook_configs: [{url: http://127.0.0.1:9/hook}]}]";
    await run(`printf 'route: {receiver: operator}\\nreceivers: ${receivers}\\n' > receivers.yml`);
    const ledger = 'app = "ledger"\\nimage = "hangar/hello"\\n[[mounts]]\\nsource = "data"\\ndestination = "/data"\\n';
    const before: [words: RegExp, work: () => Promise<unknown>][] = [
      // A machine that runs is what every verb about machines can do something with.
      [/^machines/, () => platform.ask(`POST /v1/apps/machinery/machines/${machine}/start`)],
      [
        /^machines destroy$/,
        // The lease that an example has taken is over after a second.
        () =>
          until("the lease is over", async () => {
            const { status } = await platform.ask(`GET /v1/apps/machinery/machines/${machine}/lease`);
            return status === 404;
          }),
      ],
      [/^alerts try$/, () => run("hangar alerts receivers receivers.yml", env)],
      [/^previews /, () => platform.ask("POST /v1/apps", { body: { app_name: "web" } })],
      [/^previews /, () => platform.ask("PUT /v1/apps/web/previews/settings", { body: { enabled: true } })],
      [/^previews /, () => platform.ask("POST /v1/apps/web/previews", { body: { branch: "feature/x" } })],
      [
        /^sqlite attach$/,
        () => run(`mkdir -p ledger; cd ledger; printf '${ledger}' > hangar.toml; hangar deploy --stable-for 1s`, env),
      ],
      // There must be an earlier release, and another one since.
      [/^rollback$/, () => run(`printf '[env]\\nA = "1"\\n' >> hangar.toml; hangar deploy`, env)],
    ];
    const prepare = async (words: string): Promise<void> => {
      for (const [pattern, work] of before) if (pattern.test(words)) await work();
    };
    const wrong: string[] = [];
    for (const { words, examples } of verbs) {
      // A simulated machine never ends: runs.test.ts.
      for (const example of examples.filter((text) => !text.includes("--once"))) {
        await prepare(words);
        const { status, stdout, stderr } = await run(`set -e; ${example}`, env);
        // What is asked may be answered with no.
        if (status !== 0 && !(["tokens inspect", "connectors test", "alerts try"].includes(words) && status === 1))
          wrong.push(`${example}: ${status} ${stdout} ${stderr}`);
      }
    }
    assert.deepEqual(wrong, []);
  });

  test("--json prints only JSON, for results and for errors", async (t) => {
    const { run } = await start(t);
    const commands = [
      "orgs list",
      "apps create web",
      "apps list",
      "apps show web",
      "secrets list -a web",
      "tokens list",
      "auth whoami",
      "auth token",
      "doctor",
      "completion bash",
    ];
    for (const command of commands) {
      const { status, stdout } = await run(`hangar ${command} --json`);
      // What the doctor finds is the box's.
      if (command !== "doctor") assert.equal(status, 0, `${command}: ${stdout}`);
      assert.doesNotThrow(() => JSON.parse(stdout) as unknown, `${command}: ${stdout}`);
    }
    const failed = await run("hangar apps show nowhere --json");
    assert.equal((JSON.parse(failed.stdout) as { status: string }).status, "not_found");
    assert.equal((await run("hangar --json apps list")).stdout.trimStart()[0], "[");
  });

  test("exit codes distinguish kinds of failure", async (t) => {
    const { platform, run } = await start(t);
    const token: string = (await platform.ask("POST /v1/orgs/personal/tokens", { body: { kind: "readonly" } })).body
      .token;
    const cases: [string, number, RegExp][] = [
      ["hangar apps show nowhere", 4, /Could not find App/],
      ["hangar apps create Bad_Name", 2, /lower-case letters/],
      ["hangar apps creat web", 2, /Did you mean create/],
      ["hangar aps list", 2, /Did you mean ps or apps or ips/],
      ["hangar restart", 2, /Did you mean machines restart/],
      ["hangar apps list --ogr x", 2, /Did you mean --org/],
      ["hangar tokens create wide", 2, /org, readonly or deploy/],
      [`hangar apps create x --token ${token}`, 3, /caveat org: the token allows read/],
      ["hangar apps list --token nonsense", 3, /not a token of this platform/],
      ["hangar apps list --url http://127.0.0.1:1", 1, /no answer from/],
      ["hangar secrets set -a web NOVALUE", 2, /not NAME=VALUE/],
    ];
    for (const [command, code, text] of cases) {
      const { status, stderr } = await run(command);
      assert.equal(status, code, `${command}: ${stderr}`);
      assert.match(stderr, text, command);
    }
    assert.equal((await run("hangar --help")).status, 0);
    assert.match((await run("hangar apps create --help")).stdout, /^Examples:\n {2}hangar apps create web/);
  });

  test("a secret is read from stdin and printed nowhere", async (t) => {
    const { platform, run } = await start(t);
    await platform.ask("POST /v1/apps", { body: { app_name: "web" } });
    const { status, stdout, stderr } = await run("echo canary-77 | hangar secrets set -a web KEY=- ");
    assert.equal(status, 0, stderr);
    assert.doesNotMatch(stdout + stderr, /canary/);
    const path = "/v1/apps/web/secrets/KEY";
    const { digest } = (await platform.ask(`GET ${path}`)).body;
    assert.match(digest, /^[0-9a-f]{16}$/);
    const same = await platform.ask(`POST ${path}`, { body: { value: "canary-77" } });
    assert.equal(same.body.digest, digest, "it is what was on stdin");
    const shown = await run("hangar apps list --show-request");
    assert.match(shown.stderr, /curl -X GET -H "Authorization: Bearer \$\(hangar auth token\)"/);
    assert.doesNotMatch(shown.stderr, new RegExp(platform.token));
  });

  test("completion offers nouns, verbs, options and live names", async (t) => {
    const { platform, run } = await start(t);
    for (const app_name of ["web", "worker"]) await platform.ask("POST /v1/apps", { body: { app_name } });
    const complete = async (...words: string[]): Promise<string[]> =>
      (await run(`hangar __complete -- ${words.map((w) => `'${w}'`).join(" ")}`)).stdout.trim().split("\n");
    assert.deepEqual(await complete("ap"), ["apply", "apps"]);
    assert.deepEqual(await complete("apps", ""), ["create", "delete", "list", "show"]);
    // A busy platform that does not answer at once is not waited for: then there are no names, this time.
    const answered = (...words: string[]) =>
      until(`names after ${words.join(" ")}`, async () => {
        const found = await complete(...words);
        return found[0] !== "" && found;
      });
    assert.deepEqual(await answered("apps", "show", "w"), ["web", "worker"]);
    assert.ok((await complete("tokens", "create", "--n")).includes("--name"));
    assert.deepEqual(await answered("orgs", "show", ""), ["personal"]);
  });
});

const creates = (words: string): number => Number(words.endsWith("create"));
