/** Programs of Debian that listen on one address family, and everything of the platform that connects to them. */
import assert from "node:assert/strict";
import { spawn } from "node:child_process";
import { createSocket } from "node:dgram";
import { once } from "node:events";
import { existsSync } from "node:fs";
import { connect } from "node:net";
import { join } from "node:path";
import { text as read } from "node:stream/consumers";
import { after, before, suite, type TestContext, test } from "node:test";
import { systemClock } from "#core/clock.ts";
import { silentLog } from "#core/log.ts";
import { takeDown } from "#drivers/runtime/runc/down.ts";
import { freePort } from "#proxy/fixtures.ts";
import { packageRoot, packagesMissing } from "../debian-root.ts";
import { type TestPlatform, testPlatform } from "../platform.ts";
import { fixtureImages, realMachinesMissing } from "../rootfs.ts";
import { tempDir, until } from "../support.ts";
import { nodeIdOf } from "./leaks.ts";

const PACKAGES = ["python3", "nginx-light"];
const PYTHON = "/usr/bin/python3";
const web = (host: string, port = 8000): string[] => [PYTHON, "-m", "http.server", "--bind", host, String(port)];
/** Both families at the first sign of the other: a program that moves while its machine runs. */
const MOVES = `
import http.server, signal, socket, threading
class Six(http.server.HTTPServer):
    address_family = socket.AF_INET6
    def server_bind(self):
        self.socket.setsockopt(socket.IPPROTO_IPV6, socket.IPV6_V6ONLY, 1)
        super().server_bind()
first = http.server.HTTPServer(("0.0.0.0", 8000), http.server.SimpleHTTPRequestHandler)
signal.signal(signal.SIGUSR1, lambda *_: threading.Thread(target=first.shutdown).start())
first.serve_forever()
first.server_close()
Six(("::", 8000), http.server.SimpleHTTPRequestHandler).serve_forever()
`;
const ECHO_TCP = `
import socket
server = socket.create_server(("0.0.0.0", 8000))
while True:
    connection, _ = server.accept()
    with connection:
        connection.sendall(b"echo " + connection.recv(100))
`;
const ECHO_UDP = `
import socket
server = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
server.bind(("0.0.0.0", 8000))
while True:
    data, sender = server.recvfrom(2048)
    server.sendto(b"echo " + data, sender)
`;
const METRICS = `
import http.server
class Page(http.server.BaseHTTPRequestHandler):
    def do_GET(self):
        self.send_response(200)
        self.end_headers()
        self.wfile.write(b"ipv4_only_pages_total 7\\n")
http.server.HTTPServer(("0.0.0.0", 9091), Page).serve_forever()
`;
const NGINX = `
daemon off; user root; pid /tmp/nginx.pid; error_log stderr; events {}
http { access_log off; server { listen 0.0.0.0:8000 http2; location / { return 200 "over $server_protocol"; } } }
`;

suite("programs that listen on one address family", {
  skip: realMachinesMissing() ?? packagesMissing(PACKAGES),
}, () => {
  const ends: (() => unknown)[] = [];
  const data_dir = tempDir();
  let platform: TestPlatform;
  let port: number;

  before(async () => {
    const root = packageRoot(tempDir(), PACKAGES);
    const images = fixtureImages({ debian: { layers: [root] } });
    const later = { after: (end: () => unknown) => void ends.push(end) };
    platform = await testPlatform(later, { HANGAR_DRIVER: "runc", HANGAR_DATA_DIR: data_dir }, { images });
    port = await freePort();
    await platform.ask("POST /v1/apps", { body: { app_name: "web", org_slug: "personal" } });
    await platform.ask("POST /v1/apps/web/ip_assignments", { body: { type: "shared_v4" } });
  });

  after(async () => {
    for (const end of ends) await end();
    if (existsSync(join(data_dir, "node_id")))
      await takeDown({ data_dir, node_id: nodeIdOf(data_dir), clock: systemClock, log: silentLog });
  });

  const service = (change: object = {}, exposed: object = {}): object => ({
    services: [{ protocol: "tcp", internal_port: 8000, ports: [{ port, handlers: ["http"], ...exposed }], ...change }],
  });
  const shown = async (id: string) => (await platform.ask(`GET /v1/apps/web/machines/${id}`)).body;

  /** A machine with this program; removed with the test. */
  async function machine(t: TestContext, exec: string[], more: object = service()): Promise<string> {
    const config = { image: "debian", init: { exec }, guest: { cpus: 1, memory_mb: 256, cpu_kind: "shared" }, ...more };
    const { status, body, text } = await platform.ask("POST /v1/apps/web/machines", { body: { config } });
    assert.equal(status, 200, text);
    t.after(() => platform.ask(`DELETE /v1/apps/web/machines/${body.id}?force=true`));
    const wait = `GET /v1/apps/web/machines/${body.id}/wait?state=started&timeout=60`;
    assert.equal(
      (await platform.ask(wait)).status,
      200,
      (await platform.ask(`GET /v1/apps/web/machines/${body.id}`)).text,
    );
    return body.id as string;
  }
  const get = async (): Promise<{ status: number; text: string }> => {
    const answer = await fetch(`http://127.0.0.1:${port}/etc/hostname`, { headers: { connection: "close" } });
    return { status: answer.status, text: await answer.text() };
  };
  const serves = (): Promise<unknown> => until("requests are answered", async () => (await get()).status === 200);

  for (const host of ["0.0.0.0", "::"])
    test(`http.server on ${host} is reached by the proxy and by checks`, async (t) => {
      const checks = {
        page: { type: "http", port: 8000, path: "/etc/hostname", interval: "1s", timeout: "5s" },
        port: { type: "tcp", port: 8000, interval: "1s", timeout: "5s" },
      };
      const id = await machine(t, web(host), { ...service(), checks });
      assert.equal((await get()).status, 200);
      await until("both checks pass", async () => {
        const all = Object.values((await shown(id)).checks as Record<string, { status: string }>);
        return all.length === 2 && all.every(({ status }) => status === "passing");
      });
    });

  test("a program that moves from IPv4 to IPv6 while its machine runs is found again", async (t) => {
    const id = await machine(t, [PYTHON, "-c", MOVES]);
    await serves();
    const signal = { body: { signal: "SIGUSR1" } };
    assert.equal((await platform.ask(`POST /v1/apps/web/machines/${id}/signal`, signal)).status, 200);
    await until("it listens on IPv6", async () => {
      const processes = (await platform.ask(`GET /v1/apps/web/machines/${id}/ps`)).body as {
        listen_sockets: { address: string }[];
      }[];
      return processes.some(({ listen_sockets }) => listen_sockets.some(({ address }) => address === "[::]:8000"));
    });
    assert.equal((await get()).status, 200);
  });

  test("nginx with HTTP/2 on IPv4 is reached as an HTTP/2 backend", async (t) => {
    const files = [{ guest_path: "/nginx.conf", raw_value: Buffer.from(NGINX).toString("base64") }];
    const h2 = service({}, { http_options: { h2_backend: true } });
    await machine(t, ["/usr/sbin/nginx", "-c", "/nginx.conf"], { ...h2, files });
    await serves();
    assert.equal((await get()).text, "over HTTP/2.0");
  });

  test("a TCP program on IPv4 is reached", async (t) => {
    await machine(t, [PYTHON, "-c", ECHO_TCP], service({ ports: [{ port, handlers: ["tcp"] }] }));
    const said = await until("TCP is answered", async () => {
      const socket = connect({ port, host: "127.0.0.1" });
      socket.on("error", () => {});
      socket.write("hi");
      return (await read(socket).catch(() => "")) || undefined;
    });
    assert.equal(said, "echo hi");
  });

  test("a UDP program on IPv4 is reached", async (t) => {
    await machine(t, [PYTHON, "-c", ECHO_UDP], service({ protocol: "udp", ports: [{ port }] }));
    const client = createSocket("udp4");
    t.after(() => client.close());
    const answer = once(client, "message") as Promise<[Buffer]>;
    let heard = "";
    void answer.then(([data]) => {
      heard = data.toString();
    });
    await until("datagrams are answered", async () => {
      client.send("hi", port, "127.0.0.1");
      return heard !== "";
    });
    assert.equal(heard, "echo hi");
  });

  test("a metrics endpoint on IPv4 is scraped", async (t) => {
    await machine(t, [PYTHON, "-c", METRICS], { metrics: { port: 9091, path: "/metrics" } });
    const query = "/prometheus/personal/api/v1/query?query=ipv4_only_pages_total";
    await until("the sample is there", async () => {
      const { body } = await platform.ask(`GET ${query}`);
      return body?.data?.result?.[0]?.value?.[1] === "7";
    });
  });

  test("a suspended program on IPv4 is resumed with its memory", async (t) => {
    const id = await machine(t, web("0.0.0.0"), service({ autostart: true }));
    await serves();
    await platform.ask(`POST /v1/apps/web/machines/${id}/suspend`);
    const { state } = (await platform.ask(`GET /v1/apps/web/machines/${id}/wait?state=settled&timeout=60`)).body;
    if (state !== "suspended") return t.skip("this box cannot suspend");
    assert.equal((await get()).status, 200);
    const { events } = await shown(id);
    const start = (events as { request?: { resumed?: boolean } }[]).find(
      ({ request }) => request?.resumed !== undefined,
    );
    assert.equal(start?.request?.resumed, true);
  });

  test("a program on loopback is reported by the check, the services, explain and the 502", async (t) => {
    // Not looked at before the program listens.
    const checks = { port: { type: "tcp", port: 8000, interval: "1s", timeout: "5s", grace_period: "5s" } };
    const id = await machine(t, web("127.0.0.1"), { checks });
    const only = /the program listens on 127\.0\.0\.1:8000 only; let it listen on 0\.0\.0\.0:8000 or \[::\]:8000/;
    await until("the check says so", async () => {
      const [check] = Object.values((await shown(id)).checks as Record<string, { output: string }>);
      return only.test(check?.output ?? "");
    });
    // Without the check, which would take it out of service.
    await platform.ask(`DELETE /v1/apps/web/machines/${id}?force=true`);
    const served = await machine(t, web("127.0.0.1"));
    const answer = get();
    const problem = await until("the services say so", async () => {
      const { services } = (await platform.ask("GET /v1/apps/web/services")).body;
      const found = services[0]?.machines.find((one: { id: string }) => one.id === served);
      return only.test(found?.problem ?? "") ? (found as { serving: boolean }) : undefined;
    });
    assert.equal(problem.serving, true);
    const told = await explained(served);
    assert.match(told, only);
    assert.doesNotMatch(told, /it serves/);
    const { status, text } = await answer;
    assert.equal(status, 502);
    assert.match(text, only);
  });

  test("a port without a listener is reported with the ports that are open", async (t) => {
    const id = await machine(t, web("0.0.0.0", 3000));
    await until("the services say so", async () => {
      const { services } = (await platform.ask("GET /v1/apps/web/services")).body;
      const found = services[0]?.machines.find((one: { id: string }) => one.id === id);
      return found?.problem === "nothing listens on port 8000; the machine listens on 0.0.0.0:3000";
    });
  });

  /** What `hangar machines explain` prints. */
  async function explained(id: string): Promise<string> {
    const env = { ...process.env, HANGAR_URL: platform.base_url, HANGAR_TOKEN: platform.token };
    const program = join(import.meta.dirname, "../../bin/hangar.mjs");
    const child = spawn(process.execPath, [program, "machines", "explain", id, "--app", "web"], { env });
    return `${await read(child.stdout)}${await read(child.stderr)}`;
  }
});
