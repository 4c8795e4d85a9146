import assert from "node:assert/strict";
import { createSocket } from "node:dgram";
import { once } from "node:events";
import { connect as connectHttp2, createServer as createHttp2, type IncomingHttpHeaders } from "node:http2";
import { request } from "node:https";
import { type AddressInfo, connect, createServer as createTcp, type Socket } from "node:net";
import { text as read } from "node:stream/consumers";
import { suite, type TestContext, test } from "node:test";
import { connect as connectTls } from "node:tls";
import { gunzipSync } from "node:zlib";
import { Endpoint } from "#core/dial.ts";
import { aBackend, aPlane, aTarget } from "../../fixtures.ts";
import { TargetCounters } from "../counters.ts";
import { Http2Backend } from "./backend.ts";

/** A TCP server that answers with everything it received, once the client half-closes. */
async function echoTcp(t: TestContext): Promise<number> {
  const server = createTcp({ allowHalfOpen: true }, (socket) => {
    socket.on("error", () => {});
    void read(socket).then((all) => socket.end(`[${all}]`));
  });
  await new Promise<void>((resolve) => server.listen(0, "127.0.0.1", resolve));
  t.after(() => server.close());
  return (server.address() as AddressInfo).port;
}

const get = (
  port: number,
  options: object = {},
): Promise<{ status: number; headers: Record<string, unknown>; body: Buffer }> =>
  new Promise((resolve, reject) => {
    const sent = request(
      {
        port,
        host: "127.0.0.1",
        servername: "web.localhost",
        rejectUnauthorized: false,
        agent: false,
        headers: { host: "web.localhost" },
        ...options,
      },
      (response) => {
        const parts: Buffer[] = [];
        response.on("data", (part: Buffer) => parts.push(part));
        response.on("end", () =>
          resolve({ status: response.statusCode ?? 0, headers: response.headers, body: Buffer.concat(parts) }),
        );
      },
    );
    sent.on("error", reject);
    sent.end();
  });

suite("the edge proxy, other protocols", () => {
  test("TLS is terminated only in the versions that the port allows", async (t) => {
    const backend = await aBackend(t, (request, response) =>
      response.end(String(request.headers["x-forwarded-proto"])),
    );
    const listener = await aPlane(t);
    await listener.serve({ targets: [aTarget(backend.port)], options: { tls: true, min_version: "TLSv1.3" } });
    assert.equal((await get(listener.port)).body.toString(), "https");
    await assert.rejects(get(listener.port, { maxVersion: "TLSv1.2" }));
    await assert.rejects(
      listener
        .raw("GET / HTTP/1.1\r\nhost: web.localhost\r\n\r\n")
        .then((text) => text || Promise.reject(new Error("closed"))),
    );
  });

  test("HTTP/2 clients get concurrent streams, bodies and trailers", async (t) => {
    const backend = await aBackend(t, (request, response) => {
      void read(request).then((body) => {
        response.writeHead(200, { trailer: "x-sum" });
        response.addTrailers({ "x-sum": String(body.length) });
        response.end(`${request.method} ${request.url} ${body.length} ${String(request.headers["via"])}`);
      });
    });
    const listener = await aPlane(t);
    await listener.serve({ targets: [aTarget(backend.port)], options: { tls: true } });
    const session = connectHttp2(`https://127.0.0.1:${listener.port}`, {
      servername: "web.localhost",
      rejectUnauthorized: false,
    });
    const send = async (path: string, body: string): Promise<string> => {
      const stream = session.request({
        ":path": path,
        ":method": body ? "POST" : "GET",
        ":authority": "web.localhost",
      });
      let trailers = "";
      stream.on("trailers", (headers: Record<string, string>) => {
        trailers = `${headers["x-sum"]}`;
      });
      if (body !== "") stream.end(body);
      return `${await read(stream)} ${trailers}`;
    };
    const answers = await Promise.all([send("/a", ""), send("/b", "x".repeat(100_000))]);
    assert.deepEqual(answers, ["GET /a 0 2 svc 0", "POST /b 100000 2 svc 100000"]);
    session.close();
  });

  test("a machine that speaks HTTP/2 is reached over HTTP/2", async (t) => {
    const server = createHttp2();
    server.on("stream", (stream, headers) => {
      stream.respond({ ":status": 200, "x-path": String(headers[":path"]) }, { waitForTrailers: true });
      stream.on("wantTrailers", () => stream.sendTrailers({ "grpc-status": "0" }));
      void read(stream).then((body) => stream.end(`got ${body}`));
    });
    await new Promise<void>((resolve) => server.listen(0, "127.0.0.1", resolve));
    t.after(() => server.close());
    const listener = await aPlane(t);
    const { port } = server.address() as AddressInfo;
    await listener.serve({ targets: [aTarget(port, { h2: true })], options: { h2_backend: true } });
    const got = await listener.raw(
      "POST /x HTTP/1.1\r\nhost: web.localhost\r\ncontent-length: 4\r\nconnection: close\r\n\r\nping",
    );
    assert.match(got, /x-path: \/x/);
    assert.match(got, /got ping\r\n0\r\ngrpc-status: 0\r\n\r\n$/);
  });

  test("headers and statuses that HTTP/2 forbids do not crash the proxy, from machines or clients", async (t) => {
    const backend = await aBackend(t, (request, response) => {
      const twice = ["x-content-type-options", "nosniff"];
      response.writeHead(request.url === "/700" ? 700 : 200, [...twice, ...twice, "te", "gzip", "constructor", "1"]);
      void read(request).then(() => response.end(JSON.stringify(request.trailers)));
    });
    const listener = await aPlane(t);
    await listener.serve({ targets: [aTarget(backend.port)], options: { tls: true } });
    const to = { servername: "web.localhost", rejectUnauthorized: false };
    const session = connectHttp2(`https://127.0.0.1:${listener.port}`, to);
    t.after(() => session.destroy());
    const send = async (path: string): Promise<[IncomingHttpHeaders, string]> => {
      const head = { ":path": path, ":method": "POST", ":authority": "web.localhost" };
      const stream = session.request(head, { waitForTrailers: true });
      stream.on("wantTrailers", () => stream.sendTrailers({ "x-sum": "1", "x-forwarded-for": "6.6.6.6" }));
      stream.end("body");
      const [headers] = (await once(stream, "response")) as [IncomingHttpHeaders];
      return [headers, await read(stream)];
    };
    const [headers, trailers] = await send("/");
    assert.deepEqual([headers[":status"], headers["te"], headers["constructor"]], [200, undefined, "1"]);
    assert.equal(trailers, '{"x-sum":"1"}', "forwarding headers are removed from trailers too");
    assert.equal((await send("/700"))[0]["svc-reason"], "malformed_answer");
  });

  test("an HTTP/2 upstream that breaks causes no repeated request, and one that never opens blocks no request", async (t) => {
    const sockets = new Set<Socket>();
    let seen = 0;
    const server = createHttp2();
    server.on("connection", (socket: Socket) => sockets.add(socket.on("error", () => {})));
    server.on("session", (session) => session.on("error", () => {}));
    server.on("stream", (stream, headers) => {
      seen++;
      stream.respond({ ":status": 200 });
      stream.end(String(headers["constructor"]));
    });
    await new Promise<void>((resolve) => server.listen(0, "127.0.0.1", resolve));
    t.after(() => server.close());
    const listener = await aPlane(t);
    const target = aTarget((server.address() as AddressInfo).port, { h2: true });
    await listener.serve({ targets: [target], options: { h2_backend: true } });
    // Two at once: the second finds the connection being opened.
    const head = "GET / HTTP/1.1\r\nhost: web.localhost\r\nuser-agent: a\r\nuser-agent: b\r\nconstructor: 1\r\n\r\n";
    const clients = [0, 1].map(() => connect({ port: listener.port, host: "127.0.0.1" }));
    t.after(() => clients.forEach((client) => void client.destroy()));
    const answers = await Promise.all(
      clients.map(async (client) => {
        client.write(head);
        return String(await once(client, "data"));
      }),
    );
    for (const answer of answers) assert.match(answer, /^HTTP\/1\.1 200 /);
    for (const socket of sockets) socket.resetAndDestroy();
    for (let n = 0; n < 200; n++) await new Promise((resolve) => setImmediate(resolve));
    assert.deepEqual([seen, listener.slots.load(target.slot)], [2, 0]);
    // The machine stops while the proxy connects to it.
    for (const port of [target.port, 1]) {
      const backend = new Http2Backend(
        new Endpoint({ host: "127.0.0.1", port }),
        new TargetCounters("o1", {}),
        () => 0,
      );
      const failure = new Promise((resolve) => backend.line((_, problem) => resolve(problem?.message)));
      backend.close();
      assert.equal(await failure, "the connection was closed before it was open", `port ${port}`);
    }
  });

  test("responses are compressed and their headers set as the port's options say", async (t) => {
    const backend = await aBackend(t, (_request, response) => {
      response.writeHead(200, { "content-type": "text/plain", server: "app", "x-old": "1", etag: '"t"' });
      response.end("z".repeat(5000));
    });
    const listener = await aPlane(t);
    await listener.serve({
      targets: [aTarget(backend.port)],
      options: {
        tls: true,
        compress: true,
        headers: [
          ["x-new", ["2"]],
          ["x-old", []],
        ],
      },
    });
    const packed = await get(listener.port, { headers: { host: "web.localhost", "accept-encoding": "gzip" } });
    assert.equal(gunzipSync(packed.body).length, 5000);
    assert.deepEqual(
      [
        packed.headers["content-encoding"],
        packed.headers["etag"],
        packed.headers["x-new"],
        packed.headers["x-old"],
        packed.headers["server"],
      ],
      ["gzip", 'W/"t"', "2", undefined, "svc"],
    );
    assert.equal((await get(listener.port)).body.length, 5000);
    await listener.serve({ targets: [aTarget(backend.port)], options: { tls: true, pristine: true } });
    const plain = await get(listener.port);
    assert.deepEqual(
      [plain.headers["server"], plain.headers["via"], plain.headers["svc-request-id"]],
      ["app", undefined, undefined],
    );
  });

  test("force_https redirects to the HTTPS port", async (t) => {
    const listener = await aPlane(t);
    await listener.serve({ options: { force_https: true, https_port: 8443 } });
    const got = await listener.raw("GET /a?b HTTP/1.1\r\nhost: web.localhost:80\r\nconnection: close\r\n\r\n");
    assert.match(got, /^HTTP\/1\.1 301 [\s\S]*location: https:\/\/web\.localhost:8443\/a\?b\r\n/);
  });

  test("raw TCP passes unchanged, with the PROXY protocol if configured", async (t) => {
    const target = aTarget(await echoTcp(t), { mode: "connections" });
    const listener = await aPlane(t);
    const send = (): Promise<string> =>
      new Promise((resolve, reject) => {
        const socket = connect({ port: listener.port, host: "127.0.0.1", allowHalfOpen: true });
        socket.on("error", reject);
        socket.end("hello");
        void read(socket).then(resolve, reject);
      });
    await listener.serve({ targets: [target], options: { http: false } });
    assert.equal(await send(), "[hello]");
    await listener.serve({ targets: [target], options: { http: false, proxy_protocol: 1 } });
    assert.match(
      await send(),
      new RegExp(`^\\[PROXY TCP4 127\\.0\\.0\\.1 127\\.0\\.0\\.1 \\d+ ${listener.port}\\r\\nhello\\]$`),
    );
    await listener.serve({ targets: [target], options: { http: false, proxy_protocol: 2 } });
    assert.match(await send(), /^\[\r\n\r\n\0\r\nQUIT\n!/);
    while (listener.slots.load(target.slot) > 0) await new Promise((resolve) => setImmediate(resolve));
  });

  test("TLS is terminated for a raw TCP service", async (t) => {
    const listener = await aPlane(t);
    await listener.serve({ targets: [aTarget(await echoTcp(t))], options: { http: false, tls: true } });
    const socket = connectTls({
      port: listener.port,
      host: "127.0.0.1",
      servername: "web.localhost",
      rejectUnauthorized: false,
      allowHalfOpen: true,
    } as object);
    socket.end("secret");
    assert.equal(await read(socket), "[secret]");
  });

  test("UDP datagrams are forwarded in both directions", async (t) => {
    const server = createSocket("udp4", (data, from) =>
      server.send(`echo ${data.toString()}`, from.port, from.address),
    );
    await new Promise<void>((resolve) => server.bind(0, "127.0.0.1", resolve));
    const listener = await aPlane(t);
    await listener.serve({ targets: [aTarget(server.address().port)], port: { protocol: "udp" } });
    const client = createSocket("udp4");
    t.after(() => {
      client.close();
      server.close();
    });
    const answer = new Promise((resolve) => client.on("message", (data) => resolve(data.toString())));
    client.send("hi", listener.port, "127.0.0.1");
    assert.equal(await answer, "echo hi");
  });
});
