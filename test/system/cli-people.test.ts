/** The command for daily work: documents, contexts, watching, explaining, in a real process against an emulator. */
import assert from "node:assert/strict";
import { readFileSync, statSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { suite, type TestContext, test } from "node:test";
import { type Emulator, startPlatform } from "../../src/testing/index.ts";
import { shell, tempDir } from "../support.ts";
import { Child, ROOT } from "./child.ts";

const HANGAR = join(ROOT, "bin/hangar.mjs");

async function start(t: TestContext, metrics = false) {
  const emulator = await startPlatform({ metrics });
  t.after(() => emulator.close());
  const cwd = tempDir();
  const env = { HOME: cwd, XDG_CONFIG_HOME: "", HANGAR_URL: emulator.base_url, HANGAR_TOKEN: emulator.token };
  const hangar = (line: string) => shell(`"${process.execPath}" "${HANGAR}" ${line}`, { cwd, ...env });
  const ok = async (line: string) => {
    const { status, stdout, stderr } = await hangar(line);
    assert.equal(status, 0, `${line}: ${stdout}${stderr}`);
    return stdout + stderr;
  };
  return { emulator, cwd, env, hangar, ok };
}

const machines = ({ client }: Emulator, app_name: string) =>
  client.call("GET /v1/apps/:app_name/machines", { params: { app_name }, query: {} });

suite("hangar apply and export", () => {
  test("an export applied elsewhere recreates everything, and applying it twice changes nothing", async (t) => {
    const one = await start(t);
    await one.ok("apps create web");
    await one.ok("volumes create data --app web --size 2");
    const [volume] = await one.emulator.client.call("GET /v1/apps/:app_name/volumes", {
      params: { app_name: "web" },
      query: {},
    });
    await one.ok(`machines run any:1 --app web --name first -e MODE=fast -v ${volume?.id}:/data --port 8080/tcp`);
    await one.ok("machines run any:1 --app web --name second --skip-launch");
    await one.ok("export -o state.json");
    assert.match(await one.ok("apply state.json"), /nothing differs/);

    const two = await start(t);
    const from = join(one.cwd, "state.json");
    const shown = await two.hangar(`apply ${from} --dry-run`);
    assert.equal(shown.status, 1);
    assert.match(
      shown.stdout,
      /\+ app web in personal\n[\s\S]*\+ web: volume data, 2 GB\n\+ web: machine first, any:1/,
    );
    await two.ok(`apply ${from}`);
    const made = await machines(two.emulator, "web");
    assert.deepEqual(made.map(({ name, state }) => `${name} ${state}`).sort(), ["first started", "second created"]);
    assert.match(await two.ok(`apply ${from}`), /nothing differs/);
    assert.equal(await two.ok("export"), readFileSync(from, "utf8"));
  });

  test("apply shows and makes the differences; other resources stay unless pruned", async (t) => {
    const { emulator, cwd, hangar, ok } = await start(t);
    const write = (env: object, size_gb: number) =>
      writeFileSync(
        join(cwd, "doc.json"),
        JSON.stringify({
          hangar: 1,
          apps: [
            {
              name: "web",
              secrets: ["KEY"],
              volumes: [{ name: "data", region: "local", size_gb }],
              machines: [{ name: "first", config: { image: "any:1", env, guest: { memory_mb: 512 } } }],
            },
          ],
        }),
      );
    write({ MODE: "fast" }, 1);
    const first = await hangar("apply doc.json");
    assert.equal(first.status, 1);
    assert.match(first.stderr, /problem: web: secret KEY is not set \(hangar secrets set --app web KEY=-\)/);
    await ok("secrets set --app web KEY=1");
    assert.match(await ok("apply doc.json"), /nothing differs/);

    await ok("machines run any:2 --app web --name other");
    const short = await ok("machines run any:1 --app web --name short --restart no -e SIM_RUN_MS=1 -e SIM_EXIT_CODE=3");
    assert.match(short, /\(short\) is (started|stopped: exit code 3)/, "it may be over before anybody looks");
    await ok("machines destroy short --force");
    write({ MODE: "slow" }, 3);
    const { stdout } = await hangar("apply doc.json --dry-run");
    assert.match(stdout, /~ web: volume data, 1 → 3 GB\n~ web: machine first\n {4}env.MODE: "fast" → "slow"\n$/);
    const steps = JSON.parse((await hangar("apply doc.json --json")).stdout) as { steps: { do: string }[] };
    assert.deepEqual(
      steps.steps.map((step) => step.do),
      ["extend volume", "update machine"],
    );
    assert.equal((await machines(emulator, "web")).length, 2);
    await ok("apply doc.json --prune");
    assert.deepEqual(
      (await machines(emulator, "web")).map(({ name }) => name),
      ["first"],
    );
    write({ MODE: "slow" }, 1);
    assert.match((await hangar("apply doc.json")).stderr, /volumes do not shrink to 1/);
    const wrong = await hangar('apply -  <<< \'{"hangar": 1, "apps": [{"name": "x", "machines": [{}]}]}\'');
    assert.equal(wrong.status, 2);
    assert.match(wrong.stderr, /apps\[0\]\.machines\[0\] has no name/);
  });
});

suite("hangar command: daily work", () => {
  test("run creates the app, opens its port and prints the URL; explain shows what would start a machine", async (t) => {
    const { emulator, hangar, ok } = await start(t);
    assert.match(await ok("run hangar/hello --name one"), /is started\n[\s\S]*created the app hello/);
    await ok("run hangar/hello --name two --detach");
    const { urls } = JSON.parse((await hangar("run hangar/hello --name four --json")).stdout) as { urls: string[] };
    assert.match(urls.join(" "), /^http:\/\/\S+:8080\b/, "scripts get the URL as well");
    await ok("machines destroy four --force");
    await ok("machines stop one");
    const told = await ok("machines explain one");
    assert.match(told, /state +it is stopped since .* ago: a stop was requested/);
    assert.match(told, /restart +its restart policy/);
    const [machine] = await machines(emulator, "hello");
    const ports = [{ port: 8080, handlers: ["http"] }];
    assert.partialDeepStrictEqual(machine?.config, { services: [{ internal_port: 8080, ports }] });
    const params = { app_name: "hello" };
    assert.equal((await emulator.client.call("GET /v1/apps/:app_name/ip_assignments", { params })).ips.length, 1);
    assert.match(await ok("run any:1 --app jobs --name job --restart no"), /is started/);
    const [job] = await machines(emulator, "jobs");
    assert.ok(job);
    emulator.crash(job.id, { exit_code: 137, oom_killed: true });
    await ok("machines wait job --state stopped");
    assert.match(
      await ok("machines explain job"),
      /memory was full[\s\S]*only a user starts it\n +try: hangar machines start/,
    );
  });

  test("contexts name platforms in the user's config file, and the most specific setting wins", async (t) => {
    const { emulator, cwd, env, hangar, ok } = await start(t);
    const other = await start(t);
    await ok("context add one");
    await ok(`context add two --url ${other.emulator.base_url} --token ${other.emulator.token}`);
    assert.equal(statSync(join(cwd, ".config/hangar/contexts.json")).mode & 0o777, 0o600);
    await ok("apps create here --context one");
    assert.equal((await emulator.client.call("GET /v1/apps", { query: {} })).apps.length, 1);
    assert.match(await ok("apps list --context two"), /no apps/);
    const asked = `env -u HANGAR_URL -u HANGAR_TOKEN "${process.execPath}" "${HANGAR}"`;
    const plain = (line: string) => shell(`${asked} ${line}`, { cwd, ...env });
    assert.match((await plain("context show")).stdout, /because +context two/);
    assert.match((await plain("apps list")).stdout, /no apps/);
    await ok("context use one");
    assert.match((await plain("apps list")).stdout, /here/);
    assert.match((await plain("context show --url http://127.0.0.1:1")).stdout, /because +--url/);
    assert.match((await hangar("context use tow")).stderr, /there is no context tow; did you mean two\?/);
    await ok("context remove one");
    assert.match((await plain("context show")).stdout, /the default/);
    assert.doesNotMatch(await ok("context list --json"), new RegExp(emulator.token));
  });

  test("--watch prints each change, one line each with --json", async (t) => {
    const { cwd, env, ok } = await start(t);
    const watching = new Child(process.execPath, [HANGAR, "apps", "list", "--watch", "--json"], {
      cwd,
      env: { ...process.env, ...env },
    });
    t.after(() => watching.kill());
    await watching.until(/^\[\]$/);
    await ok("apps create web");
    assert.match(await watching.until(/web/), /^\[\{.*"name":"web".*\}\]$/);
  });

  test("explain describes a field; top shows machines, usage and events", async (t) => {
    const { hangar, ok } = await start(t, true);
    assert.match(await ok("explain config.restart.policy"), /"no" \| "on-failure"/);
    assert.match(await ok("explain config.services.ports"), /handlers +list of/);
    const wrong = await hangar("explain config.servces");
    assert.equal(wrong.status, 2);
    assert.match(wrong.stderr, /config has no field servces; did you mean services\?/);
    await ok("run any:1 --app web --name first");
    assert.match(
      await ok("top"),
      /1 machine: 1 started[\s\S]*first +web +started[\s\S]*web\/first {2}start started by/,
    );
    const { machines: shown } = JSON.parse(await ok("top --json")) as { machines: { name: string }[] };
    assert.deepEqual(
      shown.map(({ name }) => name),
      ["first"],
    );
  });
});
