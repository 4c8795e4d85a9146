/** Addresses that apps have for themselves, with real connections to each. */
import assert from "node:assert/strict";
import { createSocket } from "node:dgram";
import { once } from "node:events";
import { request } from "node:http";
import { type AddressInfo, connect, createServer } from "node:net";
import { text } from "node:stream/consumers";
import { suite, type TestContext, test } from "node:test";
import { aBackend, freePort } from "#proxy/fixtures.ts";
import { type TestPlatform, testPlatform } from "./platform.ts";
import { until } from "./support.ts";

interface House {
  platform: TestPlatform;
  /** Makes an app with a machine, whose port 8080 is at `backend`, and answers its own address. */
  app(name: string, backend: number, service: object, type?: string): Promise<string>;
}

async function house(t: TestContext, env: Record<string, string> = {}): Promise<House> {
  const backends = new Map<string, number>();
  const reach = ({ id }: { id: string }): { host: string; port: number } | undefined => {
    const port = backends.get(id);
    return port === undefined ? undefined : { host: "127.0.0.1", port };
  };
  const platform = await testPlatform(t, { HANGAR_PROXY_WORKERS: "2", ...env }, { reach });
  return {
    platform,
    async app(name, backend, service, type = "v4") {
      await platform.ask("POST /v1/apps", { body: { app_name: name, org_slug: "personal" } });
      const config = { image: "web:1", services: [{ protocol: "tcp", internal_port: 8080, ...service }] };
      const { status, body, text: said } = await platform.ask(`POST /v1/apps/${name}/machines`, { body: { config } });
      assert.equal(status, 200, said);
      backends.set(body.id as string, backend);
      await platform.ask(`GET /v1/apps/${name}/machines/${body.id}/wait?state=started`);
      const given = await platform.ask(`POST /v1/apps/${name}/ip_assignments`, { body: { type } });
      assert.equal(given.status, 200, given.text);
      return given.body.ip as string;
    },
  };
}

/** An answer to GET under a name that no app has, unless given. */
async function get(address: string, port: number, host = "nobody.example.com"): Promise<string> {
  const asked = request({ host: address, port, headers: { host }, agent: false });
  asked.end();
  const [answer] = (await once(asked, "response")) as [NodeJS.ReadableStream];
  return await text(answer);
}

/** A server that says its name and what it was sent, and hangs up. */
async function sayer(t: TestContext, name: string): Promise<number> {
  const server = createServer((socket) => {
    socket.once("data", (chunk) => socket.end(`${name} got ${chunk.toString("latin1")}`));
    socket.on("error", () => {});
  }).listen(0, "127.0.0.1");
  await once(server, "listening");
  t.after(() => server.close());
  return (server.address() as AddressInfo).port;
}

async function say(address: string, port: number, words: string): Promise<string> {
  const socket = connect({ host: address, port });
  socket.write(words);
  return await text(socket);
}

const refused = { code: "ECONNREFUSED" };

suite("dedicated addresses of apps", () => {
  test("two apps have the same port, each on its own address and under any name", async (t) => {
    const { platform, app } = await house(t);
    const port = await freePort();
    const service = { ports: [{ port, handlers: ["http"] }] };
    const one = await aBackend(t, (_request, response) => response.end("one"));
    const two = await aBackend(t, (_request, response) => response.end("two"));
    const first = await app("first", one.port, service);
    const second = await app("second", two.port, service);
    for (const address of [first, second]) assert.match(address, /^127\.(6[4-9]|[7-9]\d|1[01]\d|12[0-7])\./);
    assert.notEqual(first, second);
    assert.deepEqual([await get(first, port), await get(second, port)], ["one", "two"]);
    await assert.rejects(get("127.0.0.1", port), refused);
    const { body } = await platform.ask("GET /v1/apps/second/services");
    assert.equal(body.services[0].urls[0], `http://${second}:${port}`);
    assert.deepEqual(body.services[0].problems, []);

    assert.equal((await platform.ask(`DELETE /v1/apps/first/ip_assignments/${first}`)).status, 204);
    await assert.rejects(get(first, port), refused);
    assert.equal(await get(second, port), "two");
  });

  test("an app with another protocol leaves the shared address to the others, though it came first", async (t) => {
    const { app, platform } = await house(t);
    const port = await freePort();
    const web = await aBackend(t, (_request, response) => response.end("web"));
    const raw = await app("raw", await sayer(t, "raw"), { ports: [{ port, handlers: ["tcp"] }] });
    const shared = await app("web", web.port, { ports: [{ port, handlers: ["http"] }] }, "shared_v4");
    assert.equal(await say(raw, port, "hello"), "raw got hello");
    assert.equal(await get(shared, port, "web.localhost"), "web");
    // With the shared one besides, its claim to the port is the older one.
    await platform.ask("POST /v1/apps/raw/ip_assignments", { body: { type: "shared_v4" } });
    assert.equal(await say(shared, port, "hello"), "raw got hello");
    assert.equal(await say(raw, port, "again"), "raw got again");
  });

  test("the machine learns which address the client connected to", async (t) => {
    const { app } = await house(t);
    const port = await freePort();
    const own = await app("raw", await sayer(t, "raw"), { ports: [{ port, handlers: ["tcp", "proxy_proto"] }] });
    const told = await say(own, port, "hello");
    assert.match(told, new RegExp(`^raw got PROXY TCP4 127\\.\\S+ ${own.replaceAll(".", "\\.")} \\d+ ${port}\r\n`));
  });

  test("UDP responses come from the address that the datagram was sent to", async (t) => {
    const { app } = await house(t);
    const port = await freePort();
    const echo = createSocket("udp4");
    echo.on("message", (data, from) => echo.send(`echo ${data.toString()}`, from.port, from.address));
    echo.bind(0, "127.0.0.1");
    await once(echo, "listening");
    t.after(() => echo.close());
    const own = await app("echo", echo.address().port, { protocol: "udp", ports: [{ port }] });
    const client = createSocket("udp4");
    t.after(() => client.close());
    client.bind(0, "127.0.0.1");
    await once(client, "listening");
    let heard: [string, string, number] | undefined;
    client.on("message", (data, from) => {
      heard = [data.toString(), from.address, from.port];
    });
    // Datagrams may be lost, also here.
    await until("a datagram comes back", () => {
      client.send("hello", port, own);
      return heard !== undefined;
    });
    assert.deepEqual(heard, ["echo hello", own, port]);
  });
});

suite("URLs of an app's services", () => {
  test("the URL has the proxy's address when names under localhost do not resolve to it", async (t) => {
    const { platform, app } = await house(t, { HANGAR_PROXY_LISTEN_HOST: "127.0.0.3" });
    const port = await freePort();
    const web = await aBackend(t, (_request, response) => response.end("web"));
    await app("web", web.port, { ports: [{ port, handlers: ["http"] }] }, "shared_v4");
    const { body } = await platform.ask("GET /v1/apps/web/services");
    assert.deepEqual(body.services[0].urls, [`http://127.0.0.3:${port}`]);
    assert.equal(await (await fetch(body.services[0].urls[0])).text(), "web");
  });

  test("the URL has the app's name when the proxy listens on every address", async (t) => {
    const { platform, app } = await house(t, { HANGAR_PROXY_LISTEN_HOST: "0.0.0.0" });
    const [port, raw] = [await freePort(), await freePort()];
    const web = await aBackend(t, (_request, response) => response.end("web"));
    await app("web", web.port, { ports: [{ port, handlers: ["http"] }] }, "shared_v4");
    await app("raw", await sayer(t, "raw"), { ports: [{ port: raw, handlers: ["tcp"] }] }, "shared_v4");
    const urls = async (name: string) => (await platform.ask(`GET /v1/apps/${name}/services`)).body.services[0].urls;
    assert.deepEqual(await urls("web"), [`http://web.localhost:${port}`]);
    assert.deepEqual(await urls("raw"), [`tcp://raw.localhost:${raw}`]);
  });
});
