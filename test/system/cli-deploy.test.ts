/** `hangar deploy` and what goes with it, in a real process against a platform whose machines are simulated. */
import assert from "node:assert/strict";
import { writeFileSync } from "node:fs";
import { join } from "node:path";
import { suite, type TestContext, test } from "node:test";
import { testPlatform } from "../platform.ts";
import { shell, tempDir } from "../support.ts";
import { ROOT } from "./child.ts";

interface Shown {
  id: string;
  instance_id: string;
  name: string;
  state: string;
  config: {
    image: string;
    env?: Record<string, string>;
    metadata: Record<string, string>;
    mounts?: { volume: string }[];
  };
}

/** Simulated machines crash only on command, so watching them for long is useless. */
const quick = (line: string): string => (/^(deploy|rollback|scale)\b/.test(line) ? `${line} --stable-for 0s` : line);

/** The image that a machine was given, without the digest that it is pinned to. */
const nameOf = (machine: Shown | undefined): string | undefined => machine?.config.image.split("@sha256:")[0];

async function start(t: TestContext) {
  const platform = await testPlatform(t);
  const cwd = tempDir();
  const hangar = (line: string, env: Record<string, string> = {}) =>
    shell(`"${process.execPath}" "${join(ROOT, "bin/hangar.mjs")}" ${quick(line)}`, {
      cwd,
      HOME: cwd,
      HANGAR_DATA_DIR: platform.data_dir,
      ...env,
    });
  return {
    write: (text: string) => writeFileSync(join(cwd, "hangar.toml"), text),
    hangar,
    async ok(line: string) {
      const { status, stdout, stderr } = await hangar(line);
      assert.equal(status, 0, `${line}: ${stdout}${stderr}`);
      return stdout + stderr;
    },
    machines: async (): Promise<Shown[]> => (await platform.ask("GET /v1/apps/web/machines")).body,
    ask: platform.ask,
  };
}

/** A size of which only a part is said: the platform fills in the rest, which is no difference. */
const VM = '[[vm]]\nmemory = "512mb"';

const file = (more = "", env = "") => `
app = "web"
[build]
image = "web:1"
[env]
MODE = "fast"
${env}
[checks.alive]
type = "tcp"
port = 8080
interval = "1s"
timeout = "1s"
grace_period = "0s"
[deploy]
${more}
`;

suite("hangar deploy", () => {
  test("deploy creates the app, updates machines, scales and rolls back", async (t) => {
    const { write, ok, machines, hangar } = await start(t);
    write(file());
    assert.match(await ok("deploy --dry-run"), /create {2}a machine, group app/);
    assert.equal((await hangar("apps show web")).status, 4, "nothing was done");
    assert.match(await ok("deploy"), /web runs release 1\n[\s\S]*created app web\n/);
    const [first, ...none] = await machines();
    assert.deepEqual([nameOf(first), first?.config.env, none.length], ["web:1", { MODE: "fast" }, 0]);
    assert.equal(first?.config.metadata["fly_release_version"], "1");
    assert.match(await ok("diff"), /nothing differs/);

    write(file().replace("web:1", "web:2"));
    const differs = await hangar("diff");
    assert.equal(differs.status, 1);
    assert.match(differs.stdout, /image: "web:1 \([0-9a-f]{12}\)" → "web:2 \([0-9a-f]{12}\)"/);
    assert.match(await ok("deploy --strategy canary"), /destroyed the canary/);
    assert.deepEqual(
      (await machines()).map((one) => [one.id, nameOf(one)]),
      [[first?.id, "web:2"]],
    );
    assert.match(await ok("scale 3 --dry-run"), /^create {2}a machine, group app\ncreate {2}a machine, group app\n$/);
    const [version] = (await machines()).map(({ instance_id }) => instance_id);
    assert.match(await ok("scale 3"), /app: 3/);
    assert.equal((await machines()).find(({ id }) => id === first?.id)?.instance_id, version, "it was left alone");
    assert.match(await ok("deploy --strategy bluegreen --image web:3"), /gets no more traffic/);
    const green = await machines();
    assert.deepEqual(new Set(green.map(nameOf)), new Set(["web:3"]));
    assert.equal(green.length, 3);
    assert.ok(!green.some(({ id }) => id === first?.id));

    assert.match(await ok("rollback 2"), /runs release 5, the same as 2: web:2 \([0-9a-f]{12}\)/);
    assert.deepEqual(new Set((await machines()).map(nameOf)), new Set(["web:2"]));
    const list = JSON.parse((await hangar("releases --json")).stdout) as { version: number; status: string }[];
    assert.deepEqual(
      list.map(({ version, status }) => [version, status]),
      [5, 4, 3, 2, 1].map((version) => [version, "complete"]),
    );
    assert.match(await ok("scale 1"), /app: 1/);
  });

  test("an app with services is public after deploy, and diff shows the path of each change", async (t) => {
    const { write, ok, hangar, ask } = await start(t);
    const service = (path: string) =>
      file(`[http_service]\ninternal_port = 8080\n[[http_service.checks]]\npath = "${path}"\n${VM}`);
    write(service("/"));
    await ok("deploy");
    assert.deepEqual(
      (await ask("GET /v1/apps/web/ip_assignments")).body.ips.map(({ shared }: { shared: boolean }) => shared),
      [true],
    );
    assert.match(await ok("diff"), /nothing differs/);
    await ok("deploy");
    assert.equal((await ask("GET /v1/apps/web/ip_assignments")).body.ips.length, 1);
    write(service("/up"));
    const { stdout } = await hangar("diff");
    assert.match(stdout, / services\[0\]\.checks\[0\]\.path: "\/" → "\/up"\n$/);
    const wrong = await hangar("rollback x");
    assert.deepEqual([wrong.status, /x is not a number of `hangar releases`/.test(wrong.stderr)], [2, true]);
  });

  test("a failed deploy is rolled back and reports what failed", async (t) => {
    const { write, ok, machines, hangar } = await start(t);
    write(file());
    await ok("deploy");
    await ok("scale 2");
    const before = await machines();
    const wait = 'wait_timeout = "3s"';
    write(file(wait, 'SIM_CHECK = "the database is not there"').replace("web:1", "web:2"));
    for (const strategy of ["rolling", "canary", "bluegreen"]) {
      const { status, stderr } = await hangar(`deploy --strategy ${strategy}`);
      assert.notEqual(status, 0);
      assert.match(stderr, /check alive is critical: the database is not there/, strategy);
      const after = await machines();
      assert.deepEqual(
        new Map(after.map((one) => [one.id, nameOf(one)])),
        new Map(before.map(({ id }) => [id, "web:1"])),
        strategy,
      );
    }
    const list = JSON.parse((await hangar("releases --json")).stdout) as { status: string }[];
    assert.deepEqual(
      list.map(({ status }) => status),
      ["failed", "failed", "failed", "complete", "complete"],
    );
  });

  test("a failing release command stops the deploy before anything changes", async (t) => {
    const { write, machines, hangar, ok } = await start(t);
    write(file());
    await ok("deploy");
    write(file('release_command = "migrate"', 'SIM_RUN_MS = "1"\nSIM_EXIT_CODE = "3"').replace("web:1", "web:2"));
    const { status, stderr } = await hangar("deploy");
    assert.notEqual(status, 0);
    assert.match(stderr, /the release command did not succeed: its program exited with code 3/);
    assert.deepEqual((await machines()).map(nameOf), ["web:1"]);
  });

  test("each machine of a group with a volume keeps its own; machines of a removed group are destroyed", async (t) => {
    const { write, ok, machines, hangar } = await start(t);
    const groups = `
[processes]
web = "serve"
worker = "work"
[[mounts]]
source = "data"
destination = "/data"
processes = ["worker"]
`;
    write(file(groups));
    await ok("deploy");
    await ok("scale worker=2");
    const volumes = async () =>
      (await machines()).flatMap(({ config }) => config.mounts?.map(({ volume }) => volume) ?? []).sort();
    const own = await volumes();
    assert.equal(new Set(own).size, 2);
    await ok("deploy --image web:2");
    assert.deepEqual(await volumes(), own);
    assert.match((await hangar("deploy --strategy bluegreen")).stderr, /use another strategy than bluegreen/);
    write(file());
    assert.match(await ok("deploy"), /destroyed/);
    assert.deepEqual(
      (await machines()).map(({ config }) => config.metadata["fly_process_group"]),
      ["app"],
    );
  });

  test("a failed first deploy leaves no app, machine, volume or address behind", async (t) => {
    const { write, hangar, ask, ok } = await start(t);
    const service = "[http_service]\ninternal_port = 8080";
    const mount = '[[mounts]]\nsource = "data"\ndestination = "/data"';
    write(file(`wait_timeout = "1s"\n${service}\n${mount}`, 'SIM_CHECK = "no database"'));
    const { status, stderr } = await hangar("deploy");
    assert.equal(status, 1);
    assert.match(stderr, /undone: machine [\s\S]*undone: volume data[\s\S]*undone: app web/);
    assert.equal((await ask("GET /v1/apps/web")).status, 404);
    assert.deepEqual(JSON.parse((await hangar("volumes list --org personal --json")).stdout), []);

    // An app that was there before stays, with what it had.
    await ok("apps create web");
    await ok("ips allocate");
    assert.equal((await hangar("deploy")).status, 1);
    assert.deepEqual((await ask("GET /v1/apps/web/machines")).body, []);
    assert.deepEqual((await ask("GET /v1/apps/web/volumes")).body, []);
    assert.equal((await ask("GET /v1/apps/web/ip_assignments")).body.ips.length, 1);
  });

  test("a refused deploy uses up no release number", async (t) => {
    const { write, hangar, ok, machines } = await start(t);
    const mount = '[[mounts]]\nsource = "data"\ndestination = "/data"';
    write(file(mount));
    await ok("deploy");
    const refused = {
      "deploy --strategy bluegreen": /has a volume, which two machines cannot share/,
      "deploy --strategy sideways": /sideways is no strategy/,
      "deploy --image Not/An/Image": /is not the name of an image/,
      "deploy --wait-timeout soon": /--wait-timeout is a duration such as 30s, not soon/,
    };
    for (const [line, why] of Object.entries(refused)) {
      const { status, stderr } = await hangar(line);
      assert.notEqual(status, 0, line);
      assert.match(stderr, why);
    }
    write(file(mount).replace("interval", "intervall = 1\ninterval").replace("port = 8080", 'port = "many"'));
    assert.match((await hangar("deploy")).stderr, /checks\.alive\.port/);
    assert.equal((JSON.parse((await hangar("releases --json")).stdout) as unknown[]).length, 1);
    assert.equal((await machines()).length, 1);
  });

  test("a failed deploy with --json has the machine's reason, its logs and the rollback", async (t) => {
    const { write, hangar, ok } = await start(t);
    write(file());
    await ok("deploy");
    write(file("", 'SIM_RUN_MS = "100"\nSIM_EXIT_CODE = "3"'));
    const { status, stdout, stderr } = await hangar("deploy --json");
    assert.equal(status, 1);
    const { error, machine, undone } = JSON.parse(stdout);
    assert.match(error, /^machine [\w-]+ \([0-9a-f]{14}\): its program exited with code 3$/);
    assert.equal(machine.reason, "its program exited with code 3");
    assert.deepEqual(machine.exit, { exit_code: 3, signal: -1, oom_killed: false });
    assert.ok(Array.isArray(machine.logs));
    assert.match(undone[0].what, /^the update of/);
    assert.match(stderr, /Failed: machine .* exited with code 3\n[\s\S]*Rolling back:/);
  });

  test("blue-green keeps the old machines of two groups until the new ones of both are healthy", async (t) => {
    const { write, hangar, ok, machines } = await start(t);
    const groups = '\n[processes]\nweb = "serve"\nworker = "work"';
    // Only the workers have a check that can fail.
    const of_workers = (text: string) => text.replace("[checks.alive]", '[checks.alive]\nprocesses = ["worker"]');
    write(of_workers(file(groups)));
    await ok("deploy");
    const before = (await machines()).map(({ id }) => id).sort();
    write(of_workers(file(`wait_timeout = "1s"${groups}`, 'SIM_CHECK = "nothing listens"')));
    const { status } = await hangar("deploy --strategy bluegreen");
    assert.equal(status, 1);
    const after = await machines();
    assert.deepEqual(after.map(({ id }) => id).sort(), before);
  });

  test("in a folder with an app file other commands use its app, too", async (t) => {
    const { write, ok, hangar, machines } = await start(t);
    write(file());
    await ok("deploy");
    await ok("apps create other");
    await ok("machines run web:1 --app other --name elsewhere");
    const [own] = await machines();
    await ok("secrets set KEY=1");
    assert.match(await ok("secrets list"), /KEY/);
    for (const line of ["logs", "services", "ips list", "releases", "apps show", "volumes list", "certs list"])
      await ok(line);
    const listed = await ok("machines list");
    assert.ok(listed.includes(own?.id ?? "?") && !listed.includes("elsewhere"));
    assert.match(await ok("machines list --org personal"), /elsewhere/);
    assert.match(await ok("machines show elsewhere"), /elsewhere/, "a machine of another app is found by its name");
    assert.match(await ok(`machines show ${own?.name}`), /web:1/);
    assert.equal((await hangar("secrets list", { HANGAR_APP: "other" })).stdout.includes("KEY"), false);
    const unnamed = await hangar("apps delete");
    assert.deepEqual([unnamed.status, /missing required argument 'app'/.test(unnamed.stderr)], [2, true]);
  });
});
