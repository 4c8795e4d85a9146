/** Idle connections do not block new ones. */
import assert from "node:assert/strict";
import { once } from "node:events";
import { createServer, type ServerResponse } from "node:http";
import { type AddressInfo, connect, type Socket } from "node:net";
import { suite, type TestContext, test } from "node:test";
import { trackConnections } from "./connections.ts";

async function serve(t: TestContext, most: number) {
  const waiting: ServerResponse[] = [];
  const server = createServer(
    ({ url }, response) => void (url === "/wait" ? waiting.push(response) : response.end("ok")),
  );
  trackConnections(server, most);
  server.listen(0, "127.0.0.1");
  await once(server, "listening");
  const open = async (): Promise<Socket> => {
    const socket = connect((server.address() as AddressInfo).port, "127.0.0.1");
    t.after(() => socket.destroy());
    await Promise.all([once(socket, "connect"), once(server, "connection")]);
    return socket;
  };
  t.after(() => {
    server.closeAllConnections();
    server.close();
  });
  const ask = async (socket: Socket, path = "/"): Promise<string> => {
    socket.write(`GET ${path} HTTP/1.1\r\nhost: h\r\n\r\n`);
    if (path === "/wait") return String(await once(server, "request"));
    return String(await once(socket, "data"));
  };
  return { open, ask, waiting };
}

suite("HTTP connections at their limit", () => {
  test("the connection that was idle longest is closed to make room for a new one", async (t) => {
    const { open, ask } = await serve(t, 3);
    const [first, second, third] = [await open(), await open(), await open()];
    assert.match(await ask(first), /200 OK/);
    const closed = once(second, "close");
    const fourth = await open();
    await closed;
    for (const socket of [first, third, fourth]) assert.match(await ask(socket), /200 OK/);
  });

  test("when all connections are busy the new one is closed and no request is interrupted", async (t) => {
    const { open, ask, waiting } = await serve(t, 2);
    const busy = [await open(), await open()];
    for (const socket of busy) await ask(socket, "/wait");
    await once(await open(), "close");
    for (const response of waiting) response.end("ok");
    for (const socket of busy) assert.match(String(await once(socket, "data")), /200 OK/);
    assert.match(await ask(await open()), /200 OK/, "new connections are accepted again");
  });
});
