import assert from "node:assert/strict";
import { once } from "node:events";
import { type AddressInfo, createServer, type Socket } from "node:net";
import { suite, test } from "node:test";
import { silentLog } from "#core/log.ts";
import { PostgresReader } from "./postgres.ts";
import type { MeasuredMachine } from "./sources.ts";

/** A message of the protocol: its type, its length and its body. */
function message(letter: string, body: string): Buffer {
  const length = Buffer.alloc(4);
  length.writeUInt32BE(4 + body.length);
  return Buffer.concat([Buffer.from(letter), length, Buffer.from(body, "latin1")]);
}

const READY = message("Z", "I");
const WELCOME = Buffer.concat([message("R", "\0\0\0\0"), READY]);
const REFUSAL = Buffer.concat([message("E", "SERROR\0CXX000\0Mno\0\0"), READY]);

suite("metrics of hosted PostgreSQL", () => {
  test("a server that accepts the login and then fails the version query is disconnected", async (t) => {
    const sockets: Socket[] = [];
    const server = createServer((socket) => {
      sockets.push(socket);
      socket.on("error", () => undefined);
      socket.once("data", () => {
        socket.write(WELCOME);
        socket.on("data", (bytes) => {
          if (bytes.toString("latin1", 0, 1) === "X") socket.end();
          else socket.write(REFUSAL);
        });
      });
    });
    server.listen(0, "127.0.0.1");
    await once(server, "listening");
    t.after(() => {
      for (const socket of sockets) socket.destroy();
      server.close();
    });
    const { port } = server.address() as AddressInfo;
    const machine = { id: "m1", boot: "b1", postgres_port: port } as MeasuredMachine;
    // It listens on IPv4 alone.
    const login = { host: "::1", ipv4: "127.0.0.1", port, user: "postgres", password: "x" };
    const reader = new PostgresReader({ machines: async () => [machine], log: silentLog, login: async () => login });
    assert.deepEqual(await reader.read(), []);
    assert.equal(sockets.length, 1);
    assert.equal(sockets[0]?.writableEnded, true, "the connection has ended");
    await reader.close();
  });
});
