/** The gateway as its own process: streams both ways, bounded memory, callers that leave, a box full of calls. */
import assert from "node:assert/strict";
import { once } from "node:events";
import { readFileSync } from "node:fs";
import { createServer, type IncomingMessage, type RequestListener, request, type Server } from "node:http";
import type { AddressInfo } from "node:net";
import { join } from "node:path";
import { suite, type TestContext, test } from "node:test";
import { setTimeout as delay } from "node:timers/promises";
import { CONNECTOR_LIMITS } from "#connectors/limits.ts";
import { IDENTITY_LIMITS } from "#identity/limits.ts";
import { overSocket } from "../inside.ts";
import { runs, tempDir, until } from "../support.ts";
import { type Daemon, startDaemon } from "./daemon.ts";

const MIB = 1024 * 1024;

interface Rig {
  daemon: Daemon;
  socket: string;
  /** Another machine's. */
  another(): Promise<string>;
  /** `/v1/gateway/custom_api/<id>`. */
  base: string;
}

async function harness(t: TestContext, answer: RequestListener): Promise<Rig> {
  const upstream = createServer(answer);
  await once(upstream.listen(0, "127.0.0.1"), "listening");
  t.after(() => closeServer(upstream));
  const data_dir = tempDir();
  const daemon = await startDaemon(t, data_dir, ["--gateway-allow-private", "1"]);
  await daemon.call("POST", "/v1/apps", { app_name: "web" });
  const another = async (): Promise<string> => {
    const env = { SIM_LOCAL_API: "1" };
    const machine = await daemon.call("POST", "/v1/apps/web/machines", { config: { image: "web:1", env } });
    const id = String(machine.body["id"]);
    await daemon.call("GET", `/v1/apps/web/machines/${id}/wait`);
    return join(data_dir, "run/api", id, "api");
  };
  const { body } = await daemon.call("POST", "/v1/oauth/connections/custom_api", {
    name: "test",
    base_api_url: `http://127.0.0.1:${(upstream.address() as AddressInfo).port}`,
    access_token: "canary-token-1234",
    auth_method: "header",
    access_policy: { allow_all: true },
  });
  const connection = body["connection"] as { id: string };
  return { daemon, socket: await another(), another, base: `/v1/gateway/custom_api/${connection.id}` };
}

function closeServer(server: Server): void {
  server.closeAllConnections();
  server.close();
}

/** Any kind of body passes, the kinds too that other routes take for uploads or refuse. */
const begin = ({ socket, base }: Pick<Rig, "socket" | "base">, method: string, path: string) => {
  const headers = { host: "x", ...(method === "GET" ? {} : { "content-type": "application/octet-stream" }) };
  return request({ socketPath: socket, method, path: `${base}${path}`, agent: false, headers });
};

/** Reads slowly at first: unread data must stay at the sender. Returns the number of bytes. */
async function readSlowly(message: IncomingMessage): Promise<number> {
  let [bytes, pauses] = [0, 0];
  for await (const data of message as AsyncIterable<Buffer>) {
    bytes += data.length;
    if (pauses++ < 20) await delay(10);
  }
  return bytes;
}

function residentMib(daemon: Daemon): number {
  const status = readFileSync(`/proc/${daemon.child.pid}/status`, "utf8");
  return Number(/VmRSS:\s+(\d+)/.exec(status)?.[1]) / 1024;
}

suite("connector gateway, streaming", () => {
  test("each chunk is passed on at once, in both directions", async (t) => {
    const heard: string[] = [];
    const signs = { first: Promise.withResolvers<void>(), second: Promise.withResolvers<void>() };
    const here = await harness(t, (incoming, response) => {
      incoming.on("data", (chunk: Buffer) => {
        heard.push(chunk.toString());
        if (heard.length === 1) signs.first.resolve();
      });
      incoming.on("end", () => {
        response.writeHead(200, { "content-type": "text/event-stream" }).write("data: 1\n\n");
        void signs.second.promise.then(() => response.end("data: 2\n\n"));
      });
    });
    const call = begin(here, "POST", "/stream");
    call.write("one ");
    // The provider has the first piece while the caller has not sent the second.
    await signs.first.promise;
    call.end("two");
    const [response] = (await once(call, "response")) as [IncomingMessage];
    const [piece] = (await once(response, "data")) as [Buffer];
    // And the caller has the provider's first piece while the provider has not sent its second.
    assert.equal(piece.toString(), "data: 1\n\n");
    signs.second.resolve();
    const [rest] = (await once(response, "data")) as [Buffer];
    assert.equal(rest.toString(), "data: 2\n\n");
    assert.equal(heard.join(""), "one two");
  });

  test("200 MiB each way pass a slow reader without being buffered (P4)", async (t) => {
    const size = runs(200, 1000) * MIB;
    const chunk = Buffer.alloc(MIB, "x");
    let received = 0;
    const here = await harness(t, (incoming, response) => {
      if (incoming.method === "PUT") {
        return void readSlowly(incoming).then((bytes) => {
          received = bytes;
          response.end("ok");
        });
      }
      response.setHeader("content-length", size);
      let sent = 0;
      const more = (): void => {
        while (sent < size) {
          sent += MIB;
          if (!response.write(chunk)) return void response.once("drain", more);
        }
        response.end();
      };
      more();
    });
    // The first call loads what all further ones use.
    await overSocket(here.socket, `PUT ${here.base}/warm`);
    const before = residentMib(here.daemon);
    let peak = before;
    const watch = setInterval(() => {
      peak = Math.max(peak, residentMib(here.daemon));
    }, 20);
    t.after(() => clearInterval(watch));

    const put = begin(here, "PUT", "/up");
    for (let sent = 0; sent < size; sent += MIB) if (!put.write(chunk)) await once(put, "drain");
    put.end();
    const [stored] = (await once(put, "response")) as [IncomingMessage];
    stored.resume();
    assert.deepEqual([stored.statusCode, received], [200, size]);

    const get = begin(here, "GET", "/down").end();
    const [answer] = (await once(get, "response")) as [IncomingMessage];
    assert.equal(await readSlowly(answer), size);
    clearInterval(watch);
    t.diagnostic(`${size / MIB} MiB each way; the platform grew by at most ${Math.round(peak - before)} MiB`);
    // What is left of pieces that were passed on is given back now and then, not at once.
    assert.ok(peak - before < 130, `the platform grew by ${Math.round(peak - before)} MiB`);
  });

  test("a caller that disconnects aborts the provider's request, and a broken provider ends the call", async (t) => {
    const left = Promise.withResolvers<void>();
    const here = await harness(t, (incoming, response) => {
      if (incoming.url === "/endless") {
        response.write("…");
        response.once("close", () => left.resolve());
        return;
      }
      if (incoming.url === "/headers") {
        const many = Array.from({ length: 10_000 }, (_, i) => [`x-${i}`, "value"]);
        return void response.writeHead(200, many.flat()).end();
      }
      response.writeHead(200, { "content-length": 100 }).write("half");
      setImmediate(() => incoming.socket.destroy());
    });
    const call = begin(here, "GET", "/endless").end();
    const [response] = (await once(call, "response")) as [IncomingMessage];
    response.on("error", () => {});
    call.on("error", () => {}).destroy();
    await left.promise;

    const broken = begin(here, "GET", "/half").end();
    const [half] = (await once(broken, "response")) as [IncomingMessage];
    await assert.rejects(async () => {
      for await (const _ of half) void _;
    });
    const flood = await overSocket(here.socket, `GET ${here.base}/headers`);
    assert.equal(flood.status, 502, "more headers than anyone sends");
    const { body } = await here.daemon.call("GET", `/v1/oauth/connections/${here.base.split("/").at(-1)}/usage`);
    assert.equal(body["calls"], 3);
    assert.equal(body["failures"], 3);
  });

  test("calls over a connector's limit get 503 with Retry-After, and a machine's connections are limited", async (t) => {
    const waiting: (() => void)[] = [];
    const here = await harness(t, (_incoming, response) => void waiting.push(() => response.end()));
    const answers: IncomingMessage[] = [];
    const ask = (socket: string, count: number): void => {
      for (let n = 0; n < count; n++) {
        const call = begin({ ...here, socket }, "GET", "/wait").end();
        call.on("error", () => {}).on("response", (response) => answers.push(response.resume()));
      }
    };
    const { socket_connections } = IDENTITY_LIMITS;
    const { calls_in_flight, upstream_connections } = CONNECTOR_LIMITS;
    ask(here.socket, socket_connections);
    await until("the provider is busy", () => waiting.length >= upstream_connections);
    const refused = begin(here, "GET", "/wait").end();
    await assert.rejects(once(refused, "response"), "one connection too many is closed");

    // Of all the machines' calls, whichever comes last is the one too many.
    assert.equal(calls_in_flight, 2 * socket_connections);
    ask(await here.another(), socket_connections);
    ask(await here.another(), 1);
    await until("somebody is told to wait", () => answers.length > 0);
    assert.deepEqual([answers[0]?.statusCode, answers[0]?.headers["retry-after"]], [503, "1"]);
    assert.equal(waiting.length, upstream_connections, "the others wait for one of the provider's connections");
    await until("all the others are answered", () => {
      for (const answer of waiting.splice(0)) answer();
      return answers.length > calls_in_flight;
    });
    assert.deepEqual(new Set(answers.slice(1).map(({ statusCode }) => statusCode)), new Set([200]));
  });
});
