/** Every HTTP listener of the platform, spoken to in raw bytes: what a request line must have, and how long it may take. */
import assert from "node:assert/strict";
import { once } from "node:events";
import { globSync, readFileSync } from "node:fs";
import { createServer } from "node:http";
import { type AddressInfo, connect, type Socket } from "node:net";
import { join } from "node:path";
import { suite, test } from "node:test";
import { systemClock } from "#core/clock.ts";
import { Channel } from "#hosts/channel.ts";
import { HOST_LIMITS } from "#hosts/limits.ts";
import { answerTo, LISTENERS, openChannel, tcp } from "./http-listeners.ts";
import { testPlatform } from "./platform.ts";
import { until } from "./support.ts";

const root = join(import.meta.dirname, "..");

/** Request lines that are not of HTTP/1.0 or 1.1. Node's own parser answers all but the last two with 200. */
const VERSIONS = ["", " HTTP/0.9", " HTTP/2.0", " HTTP/1", " HTTP/3.0"];

test("a platform with a public address listens where its settings say", async (t) => {
  const { data_dir, base_url } = await testPlatform(t, { HANGAR_BASE_URL: "https://machines.example" });
  assert.equal(base_url, "https://machines.example");
  const address = readFileSync(join(data_dir, "address"), "utf8").trim();
  assert.equal((await fetch(`${address}/healthz`)).status, 200);
});

suite("every HTTP listener", () => {
  test("control: a plain Node server answers requests without an HTTP version", async (t) => {
    const server = createServer({ requireHostHeader: false }, (_request, response) => response.end("ok"));
    await once(server.listen(0, "127.0.0.1"), "listening");
    t.after(() => server.close());
    const open = (): Socket => connect((server.address() as AddressInfo).port, "127.0.0.1");
    for (const version of VERSIONS.slice(0, 3))
      assert.match(await answerTo(open(), `GET /${version}\r\n\r\n`), /^HTTP\/1\.1 200 /, version);
  });

  for (const [name, start] of Object.entries(LISTENERS)) {
    test(`${name}: a request line without a version, or with another, gets no 200`, async (t) => {
      const { open, path, headers = "", method = "GET", body = "" } = await start(t);
      const rest = `host: web.localhost\r\n${headers}content-length: ${body.length}\r\n\r\n${body}`;
      for (const version of VERSIONS) {
        for (const bytes of [`${method} ${path}${version}\r\n\r\n`, `${method} ${path}${version}\r\n${rest}`]) {
          const answer = await answerTo(open(), bytes);
          assert.match(answer, /^(HTTP\/1\.1 (400|505) |$)/, `${JSON.stringify(bytes)}: ${answer}`);
        }
      }
      const good = await answerTo(open(), `${method} ${path} HTTP/1.1\r\n${rest}`);
      assert.match(good, /^HTTP\/1\.1 200 /, "a good request is served");
    });
  }

  test("slow headers and stalled TLS handshakes are cut off on every listener", async (t) => {
    const { "the edge proxy": _edge, ...nodes } = LISTENERS; // Its own clock: src/proxy/plane/listen/timeouts.test.ts.
    const started = performance.now();
    const cut = Object.entries(nodes).map(async ([name, start]) => {
      const { open, path } = await start(t);
      const socket = open();
      const ended = answerTo(socket, `GET ${path} HTTP/1.1\r\nhost: h\r\nx-drip: `);
      const drip = setInterval(() => socket.writable && socket.write("a"), 100);
      t.after(() => clearInterval(drip));
      assert.match(await ended, /^(HTTP\/1\.1 408 |$)/, name);
    });
    const { address } = await openChannel(t);
    await Promise.all([...cut, answerTo(tcp(`http://${address}`), "\x16")]);
    const took = performance.now() - started;
    // Node's own bounds are a minute for headers, and two for a handshake.
    assert.ok(took < 55_000, `${took} ms`);
  });

  test("connections without the platform's key do not keep hosts out of the channel", async (t) => {
    const { address, sealer } = await openChannel(t);
    const channel = new Channel(sealer, systemClock);
    t.after(() => channel.close());
    let closed = 0;
    const silent = Array.from({ length: HOST_LIMITS.handshakes + 20 }, () => tcp(`http://${address}`));
    const connected = silent.map((socket) => {
      t.after(() => socket.destroy());
      socket.on("error", () => {}).once("close", () => closed++);
      return once(socket.resume(), "connect");
    });
    await Promise.all(connected);
    assert.equal(await channel.call(address, "ping", {}), "pong");
    await until("the oldest ones are closed", () => closed >= 20);
  });

  test("every HTTP server in the code has these limits", () => {
    const files = globSync("src/**/*.ts", {
      cwd: root,
      exclude: (name) => /\.test\.ts$|fixtures\.ts$/.test(String(name)),
    });
    const servers = files.filter((file) =>
      /import \{[^}]*\bcreateServer\b[^}]*\} from "(node:https?|#http\/node-http\.ts)"/.test(
        readFileSync(join(root, file), "utf8"),
      ),
    );
    assert.deepEqual(servers.sort(), [
      "src/hosts/channel.ts",
      "src/replication/node/server.ts",
      "src/replication/proxy/http-proxy.ts",
      "src/sprites/urls/gate.ts",
      "src/testing/control.ts",
      "src/wiring/database-wait.ts",
    ]);
    for (const file of servers) {
      const source = readFileSync(join(root, file), "utf8");
      for (const word of ["HTTP_BOUNDS", "strictly("]) assert.ok(source.includes(word), `${file} has no ${word}`);
    }
  });
});
