/** `hangar deploy` with real machines that run Debian's Python: what a release runs, and what a failed deploy says. */
import assert from "node:assert/strict";
import { existsSync, mkdirSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { after, before, suite, test } from "node:test";
import { systemClock } from "#core/clock.ts";
import { silentLog } from "#core/log.ts";
import { takeDown } from "#drivers/runtime/runc/down.ts";
import { freePort } from "#proxy/fixtures.ts";
import { packageRoot, packagesMissing } from "../debian-root.ts";
import { type TestPlatform, testPlatform } from "../platform.ts";
import { realMachinesMissing } from "../rootfs.ts";
import { shell, tempDir, until } from "../support.ts";
import { ROOT } from "./child.ts";
import { nodeIdOf } from "./leaks.ts";

const PYTHON = ["python3"];

/** Answers with the contents of /app/page; the environment makes it fail. */
const SERVER = `
import http.server, os, socket, sys, time

class Server(http.server.ThreadingHTTPServer):
    address_family = socket.AF_INET6

class Page(http.server.BaseHTTPRequestHandler):
    def do_GET(self):
        if self.path == "/up" and os.environ.get("UNHEALTHY"):
            return self.send_error(500, "the database is not there")
        body = open("/app/page", "rb").read()
        self.send_response(200)
        self.send_header("content-length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

if "migrate" in sys.argv:
    print("migrating", flush=True)
    sys.exit(int(os.environ.get("MIGRATION_EXIT", "0")))
print("listening", flush=True)
if os.environ.get("CRASH_AFTER"):
    time.sleep(float(os.environ["CRASH_AFTER"]))
    raise RuntimeError("no configuration for the queue")
if os.environ.get("EAT"):
    hoard = [bytearray(16 * 1024 * 1024) for _ in range(1000)]
Server(("::", 8080), Page).serve_forever()
`;

suite("hangar deploy with real machines", { skip: realMachinesMissing() ?? packagesMissing(PYTHON) }, () => {
  const ends: (() => unknown)[] = [];
  const data_dir = tempDir();
  const cwd = tempDir();
  const root = join(cwd, "root");
  let platform: TestPlatform;
  let port: number;

  before(async () => {
    const later = { after: (end: () => unknown) => void ends.push(end) };
    platform = await testPlatform(later, { HANGAR_DRIVER: "runc", HANGAR_DATA_DIR: data_dir });
    port = await freePort();
    mkdirSync(join(root, "app"), { recursive: true });
    packageRoot(root, PYTHON);
    writeFileSync(join(root, "app/server.py"), SERVER);
    await importPage("one");
  });

  after(async () => {
    for (const end of ends) await end();
    if (existsSync(join(data_dir, "node_id")))
      await takeDown({ data_dir, node_id: nodeIdOf(data_dir), clock: systemClock, log: silentLog });
  });

  const hangar = (line: string) =>
    shell(`"${process.execPath}" "${join(ROOT, "bin/hangar.mjs")}" ${line}`, {
      cwd,
      HOME: cwd,
      HANGAR_DATA_DIR: data_dir,
    });

  async function ok(line: string): Promise<string> {
    const { status, stdout, stderr } = await hangar(line);
    assert.equal(status, 0, `${line}: ${stdout}${stderr}`);
    return stdout + stderr;
  }

  /** The same tag, with other contents. */
  async function importPage(text: string): Promise<void> {
    writeFileSync(join(root, "app/page"), text);
    await ok(`images import shop:1 ${root}`);
  }

  const SERVE = '"python3", "/app/server.py"';
  const write = ({ cmd = SERVE, env = "", deploy = "", more = "" } = {}): void =>
    writeFileSync(
      join(cwd, "hangar.toml"),
      `app = "shop"
image = "shop:1"
[experimental]
cmd = [${cmd}]
[env]
${env}
[deploy]
${deploy}
[[vm]]
memory = "256mb"
[restart]
policy = "on-failure"
${more}
`,
    );

  const service = (): string => `
[[services]]
internal_port = 8080
protocol = "tcp"
[[services.ports]]
port = ${port}
handlers = ["http"]
[[services.http_checks]]
path = "/up"
interval = "1s"
timeout = "1s"
grace_period = "0s"
`;

  /** What the app serves, as soon as it does. */
  const page = (): Promise<string> =>
    until("the app is served", async () => {
      const answer = await fetch(`http://127.0.0.1:${port}/`).catch(() => undefined);
      const text = await answer?.text();
      return answer?.ok ? text : undefined;
    });
  const versions = async () => (await machines()).map(({ id, instance_id }) => [id, instance_id]);
  const machines = async (): Promise<{ id: string; instance_id: string; config: { image: string } }[]> =>
    (await platform.ask("GET /v1/apps/shop/machines")).body;

  test("rollback and scale use the digest of their release after the tag was imported again", async () => {
    write({ more: service() });
    await ok("deploy");
    assert.equal(await page(), "one");
    await importPage("two");
    const differs = await hangar("diff");
    assert.match(differs.stdout, /image: "shop:1 \([0-9a-f]{12}\)" → "shop:1 \([0-9a-f]{12}\)"/);
    await ok("deploy");
    assert.equal(await page(), "two");
    assert.match(await ok("diff"), /nothing differs/);

    await ok("rollback");
    assert.equal(await page(), "one", "the old code, by its digest");
    await importPage("three");
    await ok("scale 2");
    const images = new Set((await machines()).map(({ config }) => config.image));
    const releases = JSON.parse((await hangar("releases --json")).stdout);
    const [scaled, rolled_back, second, first] = releases;
    assert.equal(releases.length, 4);
    assert.deepEqual([scaled.image, scaled.image_digest], ["shop:1", first.image_digest]);
    assert.deepEqual(
      [rolled_back.image_digest, second.image_digest === first.image_digest],
      [first.image_digest, false],
    );
    assert.deepEqual([...images], [`shop:1@${first.image_digest}`]);
    assert.match(
      await ok("releases"),
      new RegExp(`shop:1 +${first.image_digest.slice("sha256:".length).slice(0, 12)}`),
    );
    await ok("scale 1");
  });

  test("a program that does not exist fails every deploy, with the reason", async () => {
    const before_it = (await machines()).map(({ id, config }) => [id, config.image]);
    const served = await page();
    write({ cmd: '"/app/no-such-program"', more: service() });
    for (let i = 0; i < 10; i++) {
      const { status, stderr } = await hangar("deploy");
      assert.equal(status, 1, stderr);
      assert.match(stderr, /its program exited with code 127\n[\s\S]*\| hangar: cannot run \/app\/no-such-program/);
    }
    assert.deepEqual(
      (await machines()).map(({ id, config }) => [id, config.image]),
      before_it,
    );
    assert.equal(await page(), served, "the release before is served again");
  });

  test("a program that crashes soon after its start fails the deploy with its last log lines", async () => {
    write({ env: 'CRASH_AFTER = "2"' });
    // Longer than it takes to crash, however busy the box is; the deploy fails as soon as it does.
    const { status, stderr } = await hangar("deploy --stable-for 60s");
    assert.equal(status, 1);
    assert.match(stderr, /its program exited with code 1\n/);
    assert.match(
      stderr,
      /last \d+ log lines:\n {2}\| listening\n[\s\S]* {2}\| RuntimeError: no configuration for the queue\n/,
    );
    const [undo, logs] = [stderr.indexOf("Rolling back"), stderr.indexOf("RuntimeError")];
    assert.ok(logs > 0 && logs < undo, "the log is read before the machine is put back");
  });

  test("out of memory and a failing check are named as the reason", async () => {
    write({ env: 'EAT = "1"' });
    const eaten = JSON.parse((await hangar("deploy --stable-for 60s --json")).stdout);
    assert.match(eaten.machine.reason, /ran out of memory/);
    assert.equal(eaten.machine.exit.oom_killed, true);

    write({ env: 'UNHEALTHY = "1"', deploy: 'wait_timeout = "15s"', more: service() });
    const { stdout, stderr } = await hangar("deploy --json");
    const unhealthy = JSON.parse(stdout);
    assert.match(unhealthy.error, /was not healthy after 15 s \(check .* is critical: .*500/);
    assert.equal(unhealthy.machine.checks.length, 1);
    assert.match(JSON.stringify(unhealthy.machine.logs), /message the database is not there/);
    const live = stderr.split("\n").filter((line) => /started, 0 of 1 checks passing; .*500/.test(line));
    assert.equal(live.length, 1, "a pipe gets a line when a result changes, and no other");
  });

  test("a failing release command shows its output, and nothing is changed", async () => {
    const before_it = await versions();
    write({ deploy: 'release_command = "python3 /app/server.py migrate"', env: 'MIGRATION_EXIT = "7"' });
    const { status, stderr } = await hangar("deploy");
    assert.equal(status, 1);
    assert.match(stderr, /the release command did not succeed: its program exited with code 7\n[\s\S]*\| migrating\n/);
    assert.deepEqual(await versions(), before_it);
  });

  test("a failed first deploy leaves nothing behind", async () => {
    write({ cmd: '"/app/no-such-program"', more: `${service()}\n[[mounts]]\nsource = "data"\ndestination = "/data"` });
    const { status, stderr } = await hangar("deploy --app fresh");
    assert.equal(status, 1, stderr);
    assert.equal((await platform.ask("GET /v1/apps/fresh")).status, 404);
  });
});
