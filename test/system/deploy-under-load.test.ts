/** Deploys while wrk asks the edge proxy without a pause: no strategy may lose a request, whichever server runs. */
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
import { failures, type LoadResult, wrkLoad, wrkMissing } from "./wrk-load.ts";

const PACKAGES = ["python3", "nodejs", "nginx"];

/** As people write them: no word about signals, drains or the edge proxy. */
const PYTHON = `
import http.server, os, time

class Page(http.server.BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    def answer(self):
        self.rfile.read(int(self.headers.get("content-length", 0)))
        if self.path == "/slow":
            time.sleep(0.3)
        body = os.environ.get("RELEASE", "").encode()
        self.send_response(200)
        self.send_header("content-length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)
    do_GET = do_POST = answer
    def log_message(self, *words):
        pass

class Server(http.server.ThreadingHTTPServer):
    request_queue_size = 128

Server(("0.0.0.0", 8080), Page).serve_forever()
`;

const NODE = `
const answer = (request, response) => {
  request.resume();
  setTimeout(() => response.end(process.env.RELEASE), request.url === "/slow" ? 300 : 0);
};
require("node:http").createServer(answer).listen(8080, "0.0.0.0");
`;

const NGINX = `
daemon off;
error_log /dev/stderr warn;
pid /tmp/nginx.pid;
events {}
http {
  access_log off;
  server {
    listen 8080;
    location / { return 200 "nginx"; }
  }
}
`;

const SERVERS: Record<string, string> = {
  python: '"python3", "/app/server.py"',
  node: '"node", "/app/server.js"',
  nginx: '"nginx", "-c", "/app/nginx.conf"',
};

interface Machine {
  state: string;
  checks: Record<string, { status: string }>;
}

suite("a deploy under load", { skip: realMachinesMissing() ?? packagesMissing(PACKAGES) ?? wrkMissing() }, () => {
  const ends: (() => unknown)[] = [];
  const data_dir = tempDir();
  const cwd = tempDir();
  let platform: TestPlatform;
  let release = 0;

  before(async () => {
    const later = { after: (end: () => unknown) => void ends.push(end) };
    platform = await testPlatform(later, { HANGAR_DRIVER: "runc", HANGAR_DATA_DIR: data_dir });
    const root = join(cwd, "root");
    mkdirSync(join(root, "app"), { recursive: true });
    packageRoot(root, PACKAGES);
    writeFileSync(join(root, "app/server.py"), PYTHON);
    writeFileSync(join(root, "app/server.js"), NODE);
    writeFileSync(join(root, "app/nginx.conf"), NGINX);
    await hangar(`images import servers:1 ${root}`);
  });

  after(async () => {
    for (const end of ends) await end();
    if (existsSync(join(data_dir, "node_id")))
      await takeDown({ data_dir, node_id: nodeIdOf(data_dir), clock: systemClock, log: silentLog });
  });

  async function hangar(line: string): Promise<string> {
    const command = `"${process.execPath}" "${join(ROOT, "bin/hangar.mjs")}" ${line}`;
    const { status, stdout, stderr } = await shell(command, { cwd, HOME: cwd, HANGAR_DATA_DIR: data_dir });
    assert.equal(status, 0, `${line}: ${stdout}${stderr}`);
    return stdout;
  }

  const write = (server: string, port: number): void =>
    writeFileSync(
      join(cwd, "hangar.toml"),
      `app = "${server}"
image = "servers:1"
[experimental]
cmd = [${SERVERS[server]}]
[env]
RELEASE = "${++release}"
[[vm]]
memory = "256mb"
[[services]]
internal_port = 8080
protocol = "tcp"
[[services.ports]]
port = ${port}
handlers = ["http"]
[[services.http_checks]]
path = "/"
interval = "1s"
timeout = "5s"
grace_period = "1s"
`,
    );

  /** What both kinds of clients saw while this was done: kept connections, and a new one for each request. */
  async function underLoad(server: string, port: number, work: () => Promise<unknown>): Promise<LoadResult[]> {
    const host = `${server}.localhost`;
    const url = `http://127.0.0.1:${port}/`;
    const loads = [wrkLoad(url, { host }), wrkLoad(url, { host, close: true })];
    try {
      await work();
    } finally {
      await Promise.all(loads.map(async (load) => results.push(await load.end())));
    }
    return results.splice(0);
  }
  const results: LoadResult[] = [];

  /** Also after a strategy that does not wait for it. */
  const healthy = (server: string): Promise<unknown> =>
    until(`every machine of ${server} is healthy`, async () => {
      const machines: Machine[] = (await platform.ask(`GET /v1/apps/${server}/machines`)).body;
      const isHealthy = ({ state, checks }: Machine): boolean =>
        state === "started" && Object.values(checks).every(({ status }) => status === "passing");
      return machines.every(isHealthy) || undefined;
    });

  /** Done one after the other, beginning with three machines. */
  const deploy = async (server: string, port: number, strategy: string): Promise<void> => {
    write(server, port);
    await hangar(`deploy --strategy ${strategy} --stable-for 1s`);
  };
  const STRATEGIES = ["rolling", "canary", "bluegreen", "immediate"];
  const WORK: [string, (server: string, port: number) => Promise<unknown>][] = [
    ...STRATEGIES.map((name): (typeof WORK)[number] => [name, (server, port) => deploy(server, port, name)]),
    ["rollback", () => hangar("rollback --stable-for 1s")],
    ["scale 3 to 1", () => hangar("scale 1 --stable-for 1s")],
    ["rolling, one machine", (server, port) => deploy(server, port, "rolling")],
    ["bluegreen, one machine", (server, port) => deploy(server, port, "bluegreen")],
    ["scale 1 to 2", () => hangar("scale 2 --stable-for 1s")],
  ];

  for (const server of Object.keys(SERVERS))
    test(`of ${server} loses no request: every strategy, rollback, scale`, async (t) => {
      const port = await freePort();
      write(server, port);
      await hangar("deploy --stable-for 1s");
      await hangar("scale 3 --stable-for 1s");
      await healthy(server);
      for (const [name, work] of WORK) {
        const [kept, closed] = await underLoad(server, port, async () => {
          await work(server, port);
          await healthy(server);
        });
        for (const [how, result] of [
          ["kept connections", kept],
          ["new connections", closed],
        ] as const) {
          const text = JSON.stringify(result);
          t.diagnostic(`${name}, ${how}: ${text}`);
          assert.ok(result && result.requests > 20, `${name}, ${how}: ${text}`);
          assert.equal(failures(result), 0, `${name}, ${how}: ${text}`);
        }
      }
      await hangar(`apps delete ${server} --force`);
    });
});
