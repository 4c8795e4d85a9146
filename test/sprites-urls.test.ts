/** URLs of sprites through the edge proxy, with the simulated driver and a server of the test in its sprites. */
import assert from "node:assert/strict";
import { once } from "node:events";
import { type IncomingMessage, type RequestListener, request } from "node:http";
import { connect as connectHttp2 } from "node:http2";
import { connect } from "node:net";
import { text } from "node:stream/consumers";
import { suite, type TestContext, test } from "node:test";
import { SpritesClient } from "@fly/sprites";
import { WebSocket, WebSocketServer } from "ws";
import { fail } from "#core/errors.ts";
import type { RuntimeDriver } from "#machines/runtime/driver.ts";
import { aBackend, freePort } from "#proxy/fixtures.ts";
import { type TestPlatform, testPlatform } from "./platform.ts";
import { until } from "./support.ts";

interface Rig {
  platform: TestPlatform;
  client: SpritesClient;
  port: number;
  /** Ports that the sprites' programs listen on; each is the test's server. */
  ports: number[];
  /** Ports that were connected to. */
  dialled: number[];
  backend: Awaited<ReturnType<typeof aBackend>>;
  get(url: string, options?: { token?: string | null; method?: string; body?: string; path?: string }): Promise<Got>;
}

interface Got {
  status: number;
  headers: IncomingMessage["headers"];
  text: string;
}

async function open(t: TestContext, listener: RequestListener, env: Record<string, string> = {}): Promise<Rig> {
  const backend = await aBackend(t, listener);
  const port = await freePort();
  const ports = [3000];
  const dialled: number[] = [];
  const around = (driver: RuntimeDriver): RuntimeDriver =>
    new Proxy(driver, {
      get(target, name) {
        if (name === "connect") {
          return async (_ref: unknown, at: number) => {
            dialled.push(at);
            if (!ports.includes(at)) fail("port_unreachable", `nothing listens on port ${at}`);
            const socket = connect(backend.port, "127.0.0.1");
            await once(socket, "connect");
            return socket;
          };
        }
        if (name === "ps") {
          return async () => [
            { pid: 1, listen_sockets: ports.map((at) => ({ proto: "tcp", address: `0.0.0.0:${at}` })) },
          ];
        }
        const found: unknown = Reflect.get(target, name, target);
        return typeof found === "function" ? (found.bind(target) as unknown) : found;
      },
    });
  const platform = await testPlatform(
    t,
    { HANGAR_SPRITE_URL_PORT: String(port), HANGAR_PROXY_WORKERS: "1", ...env },
    { around },
  );
  const client = new SpritesClient(platform.token, { baseURL: platform.base_url });
  const get: Rig["get"] = async (url, { token = platform.token, method = "GET", body, path = "/" } = {}) => {
    const headers = { host: new URL(url).host, ...(token === null ? {} : { authorization: `Bearer ${token}` }) };
    const asked = request({ host: "127.0.0.1", port, method, path, headers, agent: false });
    asked.end(body);
    const [answer] = (await once(asked, "response")) as [IncomingMessage];
    return { status: answer.statusCode ?? 0, headers: answer.headers, text: await text(answer) };
  };
  return { platform, client, port, ports, dialled, backend, get };
}

const shows: RequestListener = (asked, answer) => {
  void text(asked).then((body) => {
    answer.setHeader("x-program", "1");
    answer.end(JSON.stringify({ method: asked.method, url: asked.url, headers: asked.headers, body }));
  });
};

async function made(rig: Rig, name: string, auth: "sprite" | "public" = "sprite"): Promise<string> {
  const { url } = await rig.client.createSprite(name, { urlSettings: { auth } });
  assert.ok(url);
  await until("the port is open", () =>
    rig.get(url, { token: null }).then(
      () => true,
      () => false,
    ),
  );
  return url;
}

suite("URLs of sprites", () => {
  test("a private URL asks for a token of the organization, which the program does not get", async (t) => {
    const rig = await open(t, shows);
    const url = await made(rig, "one");
    assert.match(url, /^http:\/\/one-[a-z2-7]{10}\.sprites\.localhost:\d+$/);
    const without = await rig.get(url, { token: null });
    assert.equal(without.status, 401);
    assert.match(String(without.headers["www-authenticate"]), /Bearer/);
    assert.match(without.text, /this URL is private: send a token/);
    assert.equal((await rig.get(url, { token: "nonsense" })).status, 401);
    assert.deepEqual(rig.dialled, []);

    const { status, text: said } = await rig.get(url, { method: "POST", body: "hello", path: "/a?b=c" });
    assert.equal(status, 200);
    const seen = JSON.parse(said);
    assert.deepEqual([seen.method, seen.url, seen.body], ["POST", "/a?b=c", "hello"]);
    assert.equal(seen.headers.authorization, undefined);
    assert.equal(seen.headers.host, new URL(url).host);
    assert.equal(seen.headers["x-forwarded-for"], "127.0.0.1");
  });

  test("tokens of another organization and narrower ones are refused", async (t) => {
    const rig = await open(t, shows);
    const url = await made(rig, "one");
    const { ask } = rig.platform;
    await ask("POST /v1/orgs", { body: { name: "other" } });
    const tokenOf = async (org: string, kind: "org" | "readonly"): Promise<string> => {
      const { body, status } = await ask(`POST /v1/orgs/${org}/tokens`, { body: { name: "t", kind } });
      assert.equal(status, 201, JSON.stringify(body));
      return body.token;
    };
    const foreign = await rig.get(url, { token: await tokenOf("other", "org") });
    assert.ok([403, 404].includes(foreign.status), String(foreign.status));
    assert.equal((await rig.get(url, { token: await tokenOf("personal", "org") })).status, 200);
    assert.equal((await rig.get(url, { token: await tokenOf("personal", "readonly") })).status, 403);
  });

  test("a public URL is open to everyone, and closed again at once", async (t) => {
    const rig = await open(t, shows);
    const url = await made(rig, "one", "public");
    const { status, text: said } = await rig.get(url, { token: "the-program's-own" });
    assert.equal(status, 200);
    assert.equal(JSON.parse(said).headers.authorization, "Bearer the-program's-own");
    await rig.client.updateURLSettings("one", { auth: "sprite" });
    assert.equal((await rig.get(url, { token: null })).status, 401);
  });

  test("hosts without a sprite look private, and are not found with a token", async (t) => {
    const rig = await open(t, shows);
    const url = await made(rig, "one", "public");
    rig.dialled.length = 0;
    const tag = new URL(url).hostname.slice("one-".length, "one-".length + 10);
    for (const host of [`two-${tag}`, "one-aaaaaaaaaa", "one", `-${tag}`]) {
      const other = `http://${host}.sprites.localhost`;
      assert.equal((await rig.get(other, { token: null })).status, 401, host);
      assert.equal((await rig.get(other)).status, 404, host);
    }
    await rig.client.deleteSprite("one");
    assert.equal((await rig.get(url)).status, 404);
    assert.deepEqual(rig.dialled, []);
  });

  test("a name too long for a host name gives way to the machine's", async (t) => {
    const rig = await open(t, shows);
    const url = await made(rig, "n".repeat(63), "public");
    assert.match(url, /^http:\/\/[0-9a-f]{14}-[a-z2-7]{10}\./);
    assert.equal((await rig.get(url, { token: null })).status, 200);
  });

  test("requests go to the port that answered before, else to 8080, else to the first that listens", async (t) => {
    const rig = await open(t, shows);
    const url = await made(rig, "one");
    for (const [ports, used] of [
      [[3000, 4000], 3000],
      [[4000, 3000, 8080], 3000],
      [[4000, 8080], 8080],
      [[4000], 4000],
    ] as const) {
      rig.ports.splice(0, rig.ports.length, ...ports);
      assert.equal((await rig.get(url)).status, 200);
      assert.equal(rig.dialled.at(-1), used);
    }
    rig.ports.length = 0;
    const { status, text: said } = await rig.get(url);
    assert.equal(status, 502);
    assert.match(said, /no program in the sprite one listens on a port/);
  });

  test("a request wakes the sprite", async (t) => {
    const rig = await open(t, shows);
    const url = await made(rig, "one");
    const { machine_id, app_name } = (await rig.platform.ask("GET /v1/sprites/one")).body;
    await rig.get(url);
    assert.equal(
      (await rig.platform.ask(`POST /v1/apps/${app_name}/machines/${machine_id}/suspend`, { body: {} })).status,
      200,
    );
    await rig.platform.ask(`GET /v1/apps/${app_name}/machines/${machine_id}/wait?state=suspended`);
    assert.equal((await rig.client.getSprite("one")).status, "warm");
    assert.equal((await rig.get(url)).status, 200);
    assert.equal((await rig.client.getSprite("one")).status, "running");
  });

  test("a WebSocket carries messages both ways, and a refused one ends its connection", async (t) => {
    const rig = await open(t, (_asked, answer) => answer.writeHead(426).end("not here"));
    const url = await made(rig, "one");
    const { host } = new URL(url);
    const socketAt = (): WebSocket =>
      new WebSocket(`ws://127.0.0.1:${rig.port}/chat`, {
        headers: { host, authorization: `Bearer ${rig.platform.token}` },
      });
    const refused = socketAt();
    refused.on("error", () => {});
    const [, { statusCode, headers }] = (await once(refused, "unexpected-response")) as [unknown, IncomingMessage];
    assert.deepEqual([statusCode, headers["x-program"]], [426, undefined]);
    refused.terminate();

    const sockets = new WebSocketServer({ server: rig.backend.server as never });
    sockets.on("connection", (socket) =>
      socket.on("message", (data: Buffer) => socket.send(`you said ${data.toString()}`)),
    );
    t.after(() => sockets.close());
    const socket = socketAt();
    await once(socket, "open");
    socket.send("hello");
    const [data] = (await once(socket, "message")) as [Buffer];
    assert.equal(String(data), "you said hello");
    socket.close(1000);
    await once(socket, "close");
  });

  test("HTTP/2 and TLS reach the program, with long answers as they come", async (t) => {
    const proceed = Promise.withResolvers<void>();
    const rig = await open(
      t,
      (_asked, answer) => {
        answer.writeHead(200, { "content-type": "text/event-stream" }).write("data: 1\n\n");
        void proceed.promise.then(() => answer.end("data: 2\n\n"));
      },
      { HANGAR_DOMAIN: "hangar.test" },
    );
    const { url = "" } = await rig.client.createSprite("one");
    assert.match(url, /^https:\/\/one-[a-z2-7]{10}\.sprites\.hangar\.test:\d+$/);
    const { hostname } = new URL(url);
    const reach = async () => {
      const session = connectHttp2(`https://127.0.0.1:${rig.port}`, {
        servername: hostname,
        rejectUnauthorized: false,
      });
      await once(session, "connect");
      return session;
    };
    let session: Awaited<ReturnType<typeof reach>> | undefined;
    await until("the port is open", async () => {
      session ??= await reach().catch(() => undefined);
      return session !== undefined;
    });
    t.after(() => session?.destroy());
    const stream = session?.request({
      ":authority": new URL(url).host,
      ":path": "/events",
      authorization: `Bearer ${rig.platform.token}`,
    });
    assert.ok(stream);
    const [headers] = (await once(stream, "response")) as [Record<string, unknown>];
    assert.equal(headers[":status"], 200);
    const [first] = (await once(stream, "data")) as [Buffer];
    assert.equal(String(first), "data: 1\n\n");
    proceed.resolve();
    assert.equal(await text(stream), "data: 2\n\n");
  });

  test("a client that leaves ends the request, and a program that breaks off the answer", async (t) => {
    const closed = Promise.withResolvers<void>();
    const begun = Promise.withResolvers<void>();
    const rig = await open(t, (asked, answer) => {
      if (asked.url === "/") return void answer.end();
      answer.writeHead(200, { "content-length": "100" }).write("some");
      if (asked.url === "/cut") void begun.promise.then(() => answer.destroy());
      answer.once("close", () => asked.url === "/wait" && closed.resolve());
    });
    const url = await made(rig, "one", "public");
    const asked = request({ host: "127.0.0.1", port: rig.port, path: "/wait", headers: { host: new URL(url).host } });
    asked.end();
    await once(asked, "response");
    asked.destroy();
    await closed.promise;
    const broken = request({ host: "127.0.0.1", port: rig.port, path: "/cut", headers: { host: new URL(url).host } });
    broken.end();
    const [answer] = (await once(broken, "response")) as [IncomingMessage];
    assert.equal(answer.statusCode, 200);
    begun.resolve();
    await assert.rejects(text(answer));
  });
});
