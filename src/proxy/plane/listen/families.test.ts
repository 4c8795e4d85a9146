/** Programs that listen on one address family only: the target has both addresses, the backend one. */
import assert from "node:assert/strict";
import { createSocket, type Socket as UdpSocket } from "node:dgram";
import { once } from "node:events";
import { createServer as createHttp } from "node:http";
import { createServer as createHttp2 } from "node:http2";
import { type AddressInfo, connect, createServer as createTcp, type Server } from "node:net";
import { text as read } from "node:stream/consumers";
import { suite, type TestContext, test } from "node:test";
import { aPlane, aTarget, type TestPlane } from "../../fixtures.ts";
import type { Target } from "../../table.ts";

const BOTH = { host: "::1", ipv4: "127.0.0.1" };
const FAMILIES = [BOTH.host, BOTH.ipv4];

async function listening(t: TestContext, server: Server, host: string, port = 0): Promise<number> {
  server.listen(port, host);
  await once(server, "listening");
  t.after(() => server.close());
  return (server.address() as AddressInfo).port;
}

const web = (): Server => createHttp((_, response) => response.end("here"));

/** The status and the body of one request on a connection of its own. */
async function get(listener: TestPlane): Promise<string> {
  const text = await listener.raw("GET / HTTP/1.1\r\nhost: web.localhost\r\nconnection: close\r\n\r\n");
  return `${/^HTTP\/1\.1 (\d+)/.exec(text)?.[1]} ${text.slice(text.indexOf("\r\n\r\n") + 4)}`;
}

const both = (port: number, change: Partial<Target> = {}): Target => aTarget(port, { ...BOTH, ...change });

suite("programs on one address family", () => {
  for (const host of FAMILIES) {
    test(`the proxy reaches HTTP/1 on ${host}`, async (t) => {
      const listener = await aPlane(t);
      await listener.serve({ targets: [both(await listening(t, web(), host))] });
      for (let n = 0; n < 2; n++) assert.match(await get(listener), /^200 [\s\S]*here/);
    });

    test(`the proxy reaches an HTTP/2 backend on ${host}`, async (t) => {
      const server = createHttp2((_, response) => response.end("here"));
      const sessions = new Set<{ destroy(): void }>();
      server.on("session", (session) => sessions.add(session));
      t.after(() => {
        for (const session of sessions) session.destroy();
      });
      const listener = await aPlane(t);
      const target = both(await listening(t, server, host), { h2: true });
      await listener.serve({ targets: [target], options: { h2_backend: true } });
      for (let n = 0; n < 2; n++) assert.match(await get(listener), /^200 [\s\S]*here/);
      assert.equal(sessions.size, 1);
    });

    test(`the proxy reaches TCP on ${host}`, async (t) => {
      const server = createTcp({ allowHalfOpen: true }, (socket) => {
        void read(socket).then((all) => socket.end(`[${all}]`));
      });
      const listener = await aPlane(t);
      const target = both(await listening(t, server, host), { mode: "connections" });
      await listener.serve({ targets: [target], options: { http: false } });
      const socket = connect({ port: listener.port, host: "127.0.0.1", allowHalfOpen: true });
      socket.end("hi");
      assert.equal(await read(socket), "[hi]");
    });

    test(`the proxy reaches UDP on ${host}, from the first datagram on`, async (t) => {
      const server = createSocket(host === BOTH.host ? "udp6" : "udp4", (data, from) =>
        server.send(`echo ${data.toString()}`, from.port, from.address),
      );
      server.bind(0, host);
      await once(server, "listening");
      t.after(() => server.close());
      const listener = await aPlane(t);
      await listener.serve({ targets: [both(server.address().port)], port: { protocol: "udp" } });
      for (const texts of [["one", "two"], ["three"]]) {
        const client = createSocket("udp4");
        const heard = hears(client, texts.length);
        for (const text of texts) client.send(text, listener.port, "127.0.0.1");
        assert.deepEqual(
          await heard,
          texts.map((text) => `echo ${text}`),
        );
        client.close();
      }
    });
  }

  test("a program that moves to the other address family is found at the next connection", async (t) => {
    const first = web();
    const port = await listening(t, first, BOTH.ipv4);
    const listener = await aPlane(t);
    await listener.serve({ targets: [both(port)] });
    assert.match(await get(listener), /^200/);
    await new Promise((resolve) => first.close(resolve));
    await listening(t, web(), BOTH.host, port);
    assert.match(await get(listener), /^200/);
  });

  test("the address that answered last is dialled first, without trying the other", async (t) => {
    let refused = 0;
    const other = createTcp((socket) => {
      refused++;
      socket.destroy();
    });
    const server = web();
    const port = await listening(t, server, BOTH.ipv4);
    const listener = await aPlane(t);
    await listener.serve({ targets: [both(port)] });
    assert.match(await get(listener), /^200/);
    await listening(t, other, BOTH.host, port);
    for (let n = 0; n < 5; n++) assert.match(await get(listener), /^200/);
    assert.equal(refused, 0);
  });
});

async function hears(client: UdpSocket, count: number): Promise<string[]> {
  const heard: string[] = [];
  await new Promise<void>((resolve) => {
    client.on("message", (data) => {
      heard.push(data.toString());
      if (heard.length === count) resolve();
    });
  });
  return heard.sort();
}
