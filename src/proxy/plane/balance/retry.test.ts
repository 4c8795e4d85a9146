/** Machines that close an idle connection at the moment in which it is reused. */
import assert from "node:assert/strict";
import { once } from "node:events";
import { connect as connectHttp2, createServer as createHttp2, type ServerHttp2Stream } from "node:http2";
import { type AddressInfo, createServer, type Server } from "node:net";
import { suite, type TestContext, test } from "node:test";
import { aPlane, aTarget, type TestPlane } from "../../fixtures.ts";

/** Answers the first request of each connection, and ends the connection at the second. */
async function hasty(t: TestContext, { h2 }: { h2: boolean }): Promise<{ port: number; received: string[] }> {
  const received: string[] = [];
  const server: Server = h2 ? (createHttp2() as unknown as Server) : createServer();
  if (h2)
    server.on("session", (session) => {
      let requests = 0;
      session.on("error", () => {});
      session.on("stream", (stream: ServerHttp2Stream, headers: Record<string, string>) => {
        received.push(String(headers[":method"]));
        stream.on("error", () => {});
        if (++requests > 1) session.destroy();
        else stream.end("well");
      });
    });
  else
    server.on("connection", (socket) => {
      let requests = 0;
      socket.on("error", () => {});
      socket.on("data", (bytes: Buffer) => {
        received.push(bytes.toString("latin1").split(" ")[0] ?? "");
        if (++requests > 1) socket.destroy();
        else socket.write("HTTP/1.1 200 OK\r\ncontent-length: 4\r\n\r\nwell");
      });
    });
  await once(server.listen(0, "127.0.0.1"), "listening");
  t.after(() => server.close());
  return { port: (server.address() as AddressInfo).port, received };
}

type Send = (method: string) => Promise<number>;

/** Requests without a body, over HTTP/2 or HTTP/1.1. */
function client(t: TestContext, { port, raw }: TestPlane, { h2 }: { h2: boolean }): Send {
  if (!h2)
    return async (method) => {
      const text = await raw(`${method} / HTTP/1.1\r\nhost: web.localhost\r\ncontent-length: 0\r\n\r\n`, (so_far) =>
        /\r\n\r\n./s.test(so_far),
      );
      return Number(text.split(" ")[1]);
    };
  const session = connectHttp2(`https://127.0.0.1:${port}`, { servername: "web.localhost", rejectUnauthorized: false });
  t.after(() => session.destroy());
  return async (method) => {
    const stream = session.request({ ":method": method, ":authority": "web.localhost" }, { endStream: true });
    const [headers] = await once(stream, "response");
    await once(stream.resume(), "close");
    return Number(headers[":status"]);
  };
}

suite("a machine that closes an idle connection as it is reused", () => {
  const ways = [false, true].flatMap((h2) => [false, true].map((machine) => ({ h2, machine })));
  for (const { h2, machine } of ways)
    test(`gets the request once more, over ${machine ? "HTTP/2" : "HTTP/1.1"} for a client of ${h2 ? "HTTP/2" : "HTTP/1.1"}`, async (t) => {
      const { port, received } = await hasty(t, { h2: machine });
      const plane = await aPlane(t);
      await plane.serve({ targets: [aTarget(port, { h2: machine })], options: { tls: h2, h2_backend: machine } });
      const send = client(t, plane, { h2 });
      for (const method of ["GET", "GET", "DELETE"])
        assert.equal(await send(method), 200, `${method} ${received.join(" ")}`);
      assert.deepEqual(received, ["GET", "GET", "GET", "DELETE", "DELETE"]);
      assert.equal(await send("POST"), 502, "the machine may have carried it out");
      assert.deepEqual(received.slice(5), ["POST"]);
    });
});
