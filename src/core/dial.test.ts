import assert from "node:assert/strict";
import { once } from "node:events";
import { type AddressInfo, connect, createServer, type Server, type Socket } from "node:net";
import { suite, type TestContext, test } from "node:test";
import { Worker } from "node:worker_threads";
import { dialed, Endpoint } from "./dial.ts";

async function aServer(t: TestContext, host: string, port = 0): Promise<{ port: number; server: Server }> {
  const sockets = new Set<Socket>();
  const server = createServer((socket) => void sockets.add(socket.on("error", () => {})));
  server.listen(port, host);
  await once(server, "listening");
  t.after(() => {
    for (const socket of sockets) socket.destroy();
    server.close();
  });
  return { server, port: (server.address() as AddressInfo).port };
}

/** A port whose accept queue is full: the kernel drops connection requests. */
async function aSilentPort(t: TestContext, host: string, port: number): Promise<void> {
  const listen = `
    const { parentPort } = require("node:worker_threads");
    const server = require("node:net").createServer();
    server.listen({ host: ${JSON.stringify(host)}, port: ${port}, backlog: 1 }, () => {
      parentPort.postMessage("listening");
      setImmediate(() => Atomics.wait(new Int32Array(new SharedArrayBuffer(4)), 0, 0));
    });`;
  const worker = new Worker(listen, { eval: true });
  await once(worker, "message");
  const fillers = [connect({ host, port }), connect({ host, port })];
  t.after(async () => {
    for (const socket of fillers) socket.destroy();
    await worker.terminate();
  });
  await Promise.all(fillers.map((socket) => once(socket, "connect")));
}

suite("dialling one of two addresses", () => {
  const reached = async (t: TestContext, endpoint: Endpoint, timeout_ms = 60_000): Promise<string> => {
    const socket = await dialed(endpoint, { timeout_ms });
    t.after(() => socket.destroy());
    return socket.remoteAddress ?? "";
  };

  test("the second address is tried when the first refuses, and is preferred from then on", async (t) => {
    const { port, server } = await aServer(t, "127.0.0.1");
    const endpoint = new Endpoint({ host: "::1", ipv4: "127.0.0.1", port });
    assert.equal(await reached(t, endpoint), "127.0.0.1");
    assert.deepEqual(endpoint.hosts, ["127.0.0.1", "::1"]);
    // The program moves to the other family: the next connection finds it.
    server.close();
    await aServer(t, "::1", port);
    assert.equal(await reached(t, endpoint), "::1");
    assert.equal(endpoint.host, "::1");
  });

  test("an address that does not respond is overtaken by the other one", async (t) => {
    const { port } = await aServer(t, "127.0.0.1");
    await aSilentPort(t, "::1", port);
    const endpoint = new Endpoint({ host: "::1", ipv4: "127.0.0.1", port });
    assert.equal(await reached(t, endpoint), "127.0.0.1");
    assert.equal(endpoint.host, "127.0.0.1");
  });

  test("when both addresses fail the first error is reported, at once on refusal, else at the timeout", async (t) => {
    const { port, server } = await aServer(t, "127.0.0.1");
    server.close();
    const both = new Endpoint({ host: "::1", ipv4: "127.0.0.1", port });
    await assert.rejects(reached(t, both), /ECONNREFUSED ::1/);
    await assert.rejects(reached(t, new Endpoint({ host: "127.0.0.1", port })), /ECONNREFUSED 127/);
    await aSilentPort(t, "::1", port);
    await assert.rejects(reached(t, both, 300), /does not answer/);
    await assert.rejects(reached(t, new Endpoint({ host: "::1", port }), 100), /does not answer/);
  });

  test("an abort signal ends the dial with its reason", async (t) => {
    const { port } = await aServer(t, "127.0.0.1");
    await aSilentPort(t, "::1", port);
    const abort = new AbortController();
    const waiting = dialed(new Endpoint({ host: "::1", port }), { signal: abort.signal });
    abort.abort(new Error("no longer wanted"));
    await assert.rejects(waiting, /no longer wanted/);
  });
});
