/** Every HTTP listener of the platform, spoken to in raw bytes: what a request line must have, and how long it may take. */
import assert from "node:assert/strict";
import { randomBytes } from "node:crypto";
import { once } from "node:events";
import { globSync, readFileSync } from "node:fs";
import { createServer } from "node:http";
import { type AddressInfo, connect, type Socket } from "node:net";
import { join } from "node:path";
import { suite, type TestContext, test } from "node:test";
import { type ConnectionOptions, connect as connectTls } from "node:tls";
import { systemClock } from "#core/clock.ts";
import { silentLog } from "#core/log.ts";
import { Sealer } from "#core/sealer.ts";
import { Channel, listenForPeers } from "#hosts/channel.ts";
import { HOST_LIMITS } from "#hosts/limits.ts";
import { aBackend, aPlane, aTarget } from "#proxy/fixtures.ts";
import { startNode } from "../src/replication/commands.ts";
import { openControl } from "../src/testing/control.ts";
import { startPlatform } from "../src/testing/emulator.ts";
import { inside } from "./inside.ts";
import { testPlatform } from "./platform.ts";
import { tempDir, until } from "./support.ts";

const root = join(import.meta.dirname, "..");

interface Listener {
  open(): Socket;
  /** A path that answers 200 to a good request. */
  path: string;
  /** More header lines of a good request. */
  headers?: string;
  method?: string;
  body?: string;
}

const tcp = (url: string): Socket => {
  const { hostname, port } = new URL(url);
  return connect(Number(port), hostname.replace(/^\[|\]$/g, ""));
};

async function openChannel(t: TestContext): Promise<{ address: string; sealer: Sealer }> {
  const sealer = new Sealer(randomBytes(32));
  const calls = { ping: async () => "pong" };
  const listen = { host: "127.0.0.1", port: 0 };
  const door = await listenForPeers({ listen, sealer, calls, streams: {}, clock: systemClock, log: silentLog });
  t.after(() => door.close());
  return { address: door.address, sealer };
}

/** A connection to the hosts' channel, by hand. */
function channelSocket(address: string, options: ConnectionOptions): Socket {
  const { hostname, port } = new URL(`https://${address}`);
  return connectTls({
    host: hostname,
    port: Number(port),
    ciphers: "TLS_AES_128_GCM_SHA256",
    minVersion: "TLSv1.3",
    checkServerIdentity: () => undefined,
    ...options,
  });
}

const LISTENERS: Record<string, (t: TestContext) => Promise<Listener>> = {
  "the API": async (t) => {
    const { base_url } = await testPlatform(t);
    return { open: () => tcp(base_url), path: "/healthz" };
  },
  "a machine's socket, with the gateway": async (t) => {
    const platform = await inside(t);
    const machine = await platform.machine("m");
    return { open: () => connect(machine.socket), path: "/v1/gateway/list" };
  },
  "the edge proxy": async (t) => {
    const backend = await aBackend(t, (_request, response) => response.end("ok"));
    const plane = await aPlane(t);
    await plane.serve({ targets: [aTarget(backend.port)] });
    return { open: () => connect(plane.port, "127.0.0.1"), path: "/" };
  },
  "a replication node": async (t) => {
    const node = await startNode({
      dir: tempDir(),
      host: "127.0.0.1",
      port: 0,
      election: { kind: "primary" },
      clock: systemClock,
      log: () => {},
      onFailure: () => {},
    });
    t.after(() => node.close());
    return { open: () => tcp(node.url), path: "/info" };
  },
  "the hosts' channel": async (t) => {
    const { address, sealer } = await openChannel(t);
    const pskCallback = () => ({ identity: "hangar", psk: sealer.derive("channel between hosts") });
    const more = { method: "POST", body: "{}" };
    return { open: () => channelSocket(address, { pskCallback }), path: "/ping", ...more };
  },
  "the emulator's control port": async (t) => {
    const emulator = await startPlatform();
    t.after(() => emulator.close());
    const control = await openControl(emulator, { host: "127.0.0.1", port: 0 });
    t.after(() => control.close());
    const headers = `authorization: Bearer ${emulator.token}\r\n`;
    return { open: () => tcp(control.url), path: "/clock", headers };
  },
};

/** Sends bytes and reads until the answer has its head, or the connection is closed. */
async function answerTo(socket: Socket, bytes: string): Promise<string> {
  socket.on("error", () => {});
  socket.write(bytes);
  let answer = "";
  socket.on("data", (chunk) => {
    answer += chunk.toString("latin1");
    if (answer.includes("\r\n\r\n")) socket.destroy();
  });
  await new Promise((resolve) => socket.once("close", resolve));
  return answer;
}

/** Request lines that are not of HTTP/1.0 or 1.1. Node's own parser answers all but the last two with 200. */
const VERSIONS = ["", " HTTP/0.9", " HTTP/2.0", " HTTP/1", " HTTP/3.0"];

suite("every listener", () => {
  test("a plain server of Node answers requests without a version: the attack works where nothing is done", async (t) => {
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

  test("headers that drip in are cut off on each of them, and so is a handshake that stops", async (t) => {
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

  test("connections that never show the platform's key keep no host out of the channel", async (t) => {
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

  test("no HTTP server in the code does without these bounds", () => {
    const files = globSync("src/**/*.ts", {
      cwd: root,
      exclude: (name) => /\.test\.ts$|fixtures\.ts$/.test(String(name)),
    });
    const servers = files.filter((file) =>
      /import \{[^}]*\bcreateServer\b[^}]*\} from "node:https?"/.test(readFileSync(join(root, file), "utf8")),
    );
    assert.deepEqual(servers.sort(), [
      "src/hosts/channel.ts",
      "src/replication/node/server.ts",
      "src/replication/proxy/http-proxy.ts",
      "src/testing/control.ts",
    ]);
    for (const file of servers) {
      const source = readFileSync(join(root, file), "utf8");
      for (const word of ["HTTP_BOUNDS", "strictly("]) assert.ok(source.includes(word), `${file} has no ${word}`);
    }
  });
});
