import assert from "node:assert/strict";
import { once } from "node:events";
import { createServer, type RequestListener } from "node:http";
import { type AddressInfo, createServer as createSocketServer, type Server } from "node:net";
import { text } from "node:stream/consumers";
import { suite, type TestContext, test } from "node:test";
import { sendOverHttp } from "./http-transport.ts";
import { isPlain, sendPlain } from "./plain-http.ts";

const get = (url: string) => ({ method: "GET", url, headers: {}, body: undefined });

async function listening(t: TestContext, server: Server): Promise<string> {
  server.listen(0, "127.0.0.1");
  await once(server, "listening");
  t.after(() => server.close());
  return `http://127.0.0.1:${(server.address() as AddressInfo).port}`;
}

const serving = (t: TestContext, listener: RequestListener): Promise<string> => listening(t, createServer(listener));

/** A server that sends these bytes to each client, and then closes the connection or leaves it open. */
async function sending(t: TestContext, bytes: string, then: "close" | "stay" = "close"): Promise<string> {
  const server = createSocketServer((socket) => {
    socket.on("error", () => {}).write(bytes);
    if (then === "close") socket.end();
    t.after(() => socket.destroy());
  });
  return await listening(t, server);
}

suite("plain HTTP client", () => {
  test("a request carries method, path, headers and body, and the response is read whole", async (t) => {
    const url = await serving(t, (request, response) => {
      const { method, url: path, headers } = request;
      response.setHeader("content-type", "application/json");
      response.statusCode = 201;
      void text(request).then((body) => response.end(JSON.stringify({ method, path, headers, body })));
    });
    const body = '{"name":"größe"}';
    const headers = { authorization: "Bearer secret", "content-type": "application/json" };
    const response = await sendPlain({ method: "POST", url: `${url}/v1/a%20b?c=d`, headers, body }, undefined);
    assert.deepEqual([response.status, response.ok], [201, true]);
    assert.equal(response.headers.get("content-type"), "application/json");
    assert.equal(response.headers.get("x-none"), null);
    const seen = JSON.parse(await response.text()) as { headers: Record<string, string> };
    assert.partialDeepStrictEqual(seen, { method: "POST", path: "/v1/a%20b?c=d", body });
    assert.equal(seen.headers["authorization"], "Bearer secret");
    assert.equal(seen.headers["host"], new URL(url).host);
  });

  test("a chunked body of any size is read", async (t) => {
    const long = "ä0123456789".repeat(200_000);
    const url = await serving(t, (_, response) => {
      for (let at = 0; at < long.length; at += 70_000) response.write(long.slice(at, at + 70_000));
      response.end();
    });
    assert.equal(await (await sendPlain(get(url), undefined)).text(), long);
  });

  test("HEAD, 204 and 304 have no body, and interim responses are skipped", async (t) => {
    for (const [method, head] of [
      ["HEAD", "HTTP/1.1 200 OK\r\nContent-Length: 5\r\n\r\n"],
      ["GET", "HTTP/1.1 204 No Content\r\n\r\n"],
      ["GET", "HTTP/1.1 103 Early Hints\r\nLink: </a>\r\n\r\nHTTP/1.1 304 Not Modified\r\nContent-Length: 9\r\n\r\n"],
    ] as const) {
      const url = await sending(t, head);
      const response = await sendPlain({ ...get(url), method }, undefined);
      assert.equal(await response.text(), "", head);
    }
  });

  test("a response is complete with its last body byte, without waiting for the connection to close", async (t) => {
    const url = await sending(t, "HTTP/1.1 200 OK\r\ncontent-length: 2\r\nA: 1\r\na: 2\r\n\r\nok", "stay");
    const response = await sendPlain(get(url), undefined);
    assert.deepEqual([await response.text(), response.headers.get("a")], ["ok", "1, 2"]);
  });

  test("a truncated or invalid response is refused", async (t) => {
    for (const [bytes, message] of [
      ["", /connection was closed/],
      ["SSH-2.0-OpenSSH_9.2\r\n", /not HTTP/],
      ["HTTP/2.0 200 OK\r\n\r\n", /not HTTP/],
      ["HTTP/1.1 200 OK\r\nContent-Le", /not HTTP/],
      ["HTTP/1.1 200 OK\r\nContent-Length: 9\r\n\r\nhalf", /before the response was complete/],
      ["HTTP/1.1 200 OK\r\nContent-Length: -1\r\n\r\n", /the length -1/],
      ["HTTP/1.1 200 OK\r\nno name\r\n\r\n", /header without a name/],
      ["HTTP/1.1 200 OK\r\nTransfer-Encoding: gzip\r\n\r\n", /transfer coding gzip/],
      ["HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n5\r\nhal", /before the response was complete/],
      ["HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n4\r\nhalf\r\n", /before the response was complete/],
      ["HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\nxyz\r\n", /chunk without a size/],
    ] as const) {
      const url = await sending(t, bytes);
      await assert.rejects(sendPlain(get(url), undefined), { message }, bytes);
    }
  });

  test("a refused connection is reported with its code", async () => {
    await assert.rejects(sendPlain(get("http://127.0.0.1:9/"), undefined), { code: "ECONNREFUSED" });
  });

  test("an abort ends the request, before and while it waits", async (t) => {
    const aborted = AbortSignal.abort(new Error("no longer wanted"));
    await assert.rejects(sendPlain(get("http://127.0.0.1:9/"), aborted), { message: "no longer wanted" });
    const abort = new AbortController();
    const url = await serving(t, () => abort.abort(new Error("seen by the server")));
    await assert.rejects(sendPlain(get(url), abort.signal), { message: "seen by the server" });
  });

  test("redirects are left to fetch, and other URLs to Node's client", async (t) => {
    const url = await serving(t, (_, response) => void response.writeHead(302, { location: "/" }).end());
    assert.equal(await sendOverHttp(get(url), undefined), undefined);
    assert.ok(isPlain(new URL(url), { authorization: "Bearer a.b-c_d=" }));
    for (const [address, headers] of [
      ["https://127.0.0.1/", {}],
      ["http://me:secret@127.0.0.1/", {}],
      [url, { authorization: "Bearer a\r\nx-more: b" }],
      [url, { authorization: "Bearer ä" }],
      [url, { "x y": "1" }],
    ] as const)
      assert.equal(isPlain(new URL(address), headers as Record<string, string>), false, address);
    const split = { ...get(url), headers: { authorization: "Bearer a\r\nx-more: b" } };
    await assert.rejects(sendOverHttp(split, undefined), { code: "ERR_INVALID_CHAR" });
  });
});
