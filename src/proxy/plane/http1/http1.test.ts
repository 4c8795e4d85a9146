import assert from "node:assert/strict";
import { once } from "node:events";
import { Agent, get, type IncomingMessage } from "node:http";
import { text as read } from "node:stream/consumers";
import { suite, test } from "node:test";
import { random, seed } from "../../../../test/support.ts";
import { aBackend, aPlane, aTarget } from "../../fixtures.ts";
import { PROXY_LIMITS } from "../../limits.ts";
import { ReadBuffers } from "./read-buffers.ts";

/** So many rounds of the event loop. */
async function turns(count: number): Promise<void> {
  for (let n = 0; n < count; n++) await new Promise((resolve) => setImmediate(resolve));
}

suite("the edge proxy, HTTP/1", () => {
  test("a request reaches the machine and its response returns; forwarding headers are not trusted (P7)", async (t) => {
    const backend = await aBackend(t, (request, response) => {
      response.setHeader("content-type", "text/plain");
      response.end(`${request.method} ${request.url} ${JSON.stringify(request.headers)}`);
    });
    const listener = await aPlane(t);
    await listener.serve({ targets: [aTarget(backend.port)] });
    const response = await fetch(`http://127.0.0.1:${listener.port}/a?b=c`, {
      headers: { "x-forwarded-for": "6.6.6.6", "svc-client-ip": "6.6.6.6", "fly-client-ip": "6.6.6.6", via: "1.1 me" },
    });
    const text = await response.text();
    assert.equal(response.status, 200);
    assert.match(text, /^GET \/a\?b=c /);
    const seen = JSON.parse(text.slice(text.indexOf("{"))) as Record<string, string>;
    assert.equal(seen["x-forwarded-for"], "127.0.0.1");
    assert.equal(seen["svc-client-ip"], "127.0.0.1");
    assert.equal(seen["fly-client-ip"], undefined);
    assert.equal(seen["via"], "1.1 svc");
    assert.equal(seen["svc-request-id"], response.headers.get("svc-request-id"));
    assert.equal(response.headers.get("server"), "svc");
  });

  test("bodies of every framing pass in both directions, trailers included", async (t) => {
    const backend = await aBackend(t, (request, response) => {
      void read(request).then((body) => {
        response.writeHead(200, { trailer: "x-sum" });
        response.write(`${body.length} `);
        response.addTrailers({ "x-sum": request.trailers["x-sent"] ?? "none" });
        response.end(body.slice(-5));
      });
    });
    const listener = await aPlane(t);
    await listener.serve({ targets: [aTarget(backend.port)] });
    const sized = await fetch(`http://127.0.0.1:${listener.port}/`, { method: "POST", body: "x".repeat(300_000) });
    assert.equal(await sized.text(), "300000 xxxxx");
    const chunked = await listener.raw(
      "POST / HTTP/1.1\r\nhost: web.localhost\r\ntransfer-encoding: chunked\r\nconnection: close\r\n\r\n" +
        "5;ext=1\r\nhello\r\n6\r\n world\r\n0\r\nx-sent: 7\r\ncontent-length: 3\r\n\r\n",
    );
    assert.match(chunked, /11 /);
    assert.match(chunked, /\r\n0\r\nx-sum: 7\r\n\r\n$/);
  });

  test("pipelined requests on one connection are answered in order", async (t) => {
    const backend = await aBackend(t, (request, response) => response.end(request.url));
    const listener = await aPlane(t);
    await listener.serve({ targets: [aTarget(backend.port)] });
    const paths = Array.from({ length: 50 }, (_, i) => `/${i}-`);
    const sent = paths.map((path) => `GET ${path} HTTP/1.1\r\nhost: web.localhost\r\n\r\n`).join("");
    const got = await listener.raw(sent, (so_far) => so_far.includes("/49-"));
    assert.deepEqual(got.match(/\/\d+-/g), paths);
  });

  test("an upgraded connection is passed through both ways", async (t) => {
    const backend = await aBackend(t, () => {});
    backend.server.on("upgrade", (_request, socket) => {
      socket.write("HTTP/1.1 101 Switching Protocols\r\nconnection: upgrade\r\nupgrade: echo\r\n\r\n");
      socket.pipe(socket);
    });
    const listener = await aPlane(t);
    const target = aTarget(backend.port, { mode: "connections" });
    await listener.serve({ targets: [target] });
    const got = await listener.raw(
      "GET / HTTP/1.1\r\nhost: web.localhost\r\nconnection: upgrade\r\nupgrade: echo\r\n\r\nping",
      (so_far) => so_far.endsWith("ping"),
    );
    assert.match(got, /^HTTP\/1\.1 101 [\s\S]*upgrade: echo/);
    while (listener.slots.load(target.slot) > 0) await new Promise((resolve) => setImmediate(resolve));
  });

  test("an idle connection closed by the machine causes no error for the client", async (t) => {
    let answered = 0;
    const backend = await aBackend(t, (_request, response) => {
      answered++;
      response.end("ok");
      // The response said keep-alive, and the machine closes the connection all the same.
      setImmediate(() => backend.server.closeAllConnections());
    });
    const listener = await aPlane(t);
    await listener.serve({ targets: [aTarget(backend.port)] });
    for (let i = 0; i < 20; i++) assert.equal(await (await fetch(`http://127.0.0.1:${listener.port}/`)).text(), "ok");
    assert.equal(answered, 20);
  });

  test("when the client disconnects the machine's connection is closed", async (t) => {
    const disconnected = Promise.withResolvers<void>();
    const backend = await aBackend(t, (_request, response) => {
      response.write("begin");
      response.on("close", () => disconnected.resolve());
    });
    const listener = await aPlane(t);
    const target = aTarget(backend.port);
    await listener.serve({ targets: [target] });
    await listener.raw("GET / HTTP/1.1\r\nhost: web.localhost\r\n\r\n", (so_far) => so_far.includes("begin"));
    await disconnected.promise;
    while (listener.slots.load(target.slot) > 0) await new Promise((resolve) => setImmediate(resolve));
  });

  test("responses arrive unchanged, however slowly they are read", async (t) => {
    const SIZE = 6_000_000;
    const PIECE = 10_000;
    const choose = random(seed(t));
    const whole = Buffer.from(Array.from({ length: SIZE }, () => Math.floor(choose() * 256)));
    // In chunks that a proxy forwards without waiting for the one before.
    const backend = await aBackend(t, (_request, response) => {
      response.setHeader("content-length", SIZE);
      const more = (at: number): void => {
        if (at === SIZE) response.end();
        else response.write(whole.subarray(at, at + PIECE), () => more(at + PIECE));
      };
      more(0);
    });
    const listener = await aPlane(t);
    await listener.serve({ targets: [aTarget(backend.port)] });
    const agent = new Agent({ keepAlive: true });
    t.after(() => agent.destroy());
    const client = async (): Promise<void> => {
      const [answer] = (await once(get({ port: listener.port, host: "127.0.0.1", agent }), "response")) as [
        IncomingMessage,
      ];
      let bytes = 0;
      for await (const chunk of answer) {
        const { length } = chunk as Buffer;
        assert.ok((chunk as Buffer).equals(whole.subarray(bytes, bytes + length)), `after ${bytes} bytes`);
        bytes += length;
        // The client pauses, so that sent bytes wait in the proxy: at first until the kernel takes no more.
        await turns(bytes === length ? 1500 : choose() < 0.05 ? 50 : 0);
      }
      assert.equal(bytes, SIZE);
    };
    for (let i = 0; i < 2; i++) await Promise.all([client(), client(), client()]);
  });

  test("a read buffer that was lent is not reused before it is returned", () => {
    const buffers = new ReadBuffers();
    const first = buffers.current;
    buffers.lend();
    const second = buffers.current;
    assert.notEqual(second, first);
    buffers.returned();
    buffers.lend();
    assert.equal(buffers.current, first);
    // What another exchange still has to send never comes back.
    buffers.forget();
    buffers.returned();
    buffers.lend();
    assert.ok(![first, second].includes(buffers.current));
  });

  test("an unknown host is 404, an app without machines 503", async (t) => {
    const listener = await aPlane(t);
    await listener.serve({});
    await listener.serve({ app: { app_name: "other" } });
    const answers = await Promise.all(
      ["web.localhost", "nobody.localhost"].map(
        (host) =>
          new Promise<string>((resolve) => {
            get({ port: listener.port, host: "127.0.0.1", headers: { host } }, (response) =>
              resolve(`${response.statusCode} ${String(response.headers["svc-reason"])}`),
            );
          }),
      ),
    );
    assert.deepEqual(answers, ["503 no_machine", "404 unknown_host"]);
  });

  test("a path of 9,000 characters reaches the machine, and one over the header limit is 431", async (t) => {
    const backend = await aBackend(t, (request, response) => response.end(`${request.url?.length} characters`));
    const listener = await aPlane(t);
    await listener.serve({ targets: [aTarget(backend.port)] });
    const send = (length: number): Promise<string> =>
      listener.raw(`GET /${"a".repeat(length - 1)} HTTP/1.1\r\nhost: web.localhost\r\nconnection: close\r\n\r\n`);
    assert.match(await send(9_000), /^HTTP\/1\.1 200 .*9000 characters/s);
    assert.match(await send(PROXY_LIMITS.head_bytes), /^HTTP\/1\.1 431 /);
  });

  test("ACME challenges are answered by the proxy; other paths below theirs reach the machine", async (t) => {
    const backend = await aBackend(t, (request, response) => response.end(request.url));
    const listener = await aPlane(t);
    await listener.serve({ targets: [aTarget(backend.port)] });
    listener.plane.apply({ type: "challenges", answers: { token: "the answer" } });
    const at = "/.well-known/acme-challenge/";
    const send = async (token: string): Promise<string> =>
      await (await fetch(`http://127.0.0.1:${listener.port}${at}${token}`)).text();
    assert.equal(await send("token"), "the answer");
    for (const token of ["constructor", "__proto__", "other"]) assert.equal(await send(token), `${at}${token}`);
  });

  test("a client slower than the header timeout of its app gets 408", async (t) => {
    const listener = await aPlane(t);
    const { port } = await aBackend(t, (_, response) => response.end("here"));
    await listener.serve({ options: { head_ms: 1 }, targets: [aTarget(port)] });
    const started = performance.now();
    const half = "GET / HTTP/1.1\r\nhost: web.localhost\r\n";
    assert.match(await listener.raw(half), /^HTTP\/1\.1 408 .*svc-reason: request_timeout/s);
    // The second head of a connection, too: by then it is known whose it is.
    assert.match(await listener.raw(`${half}\r\n${half}`), /^HTTP\/1\.1 200 .*here.*HTTP\/1\.1 408 /s);
    assert.ok(performance.now() - started < PROXY_LIMITS.head_ms, "sooner than everywhere");
  });
});
