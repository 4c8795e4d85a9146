import assert from "node:assert/strict";
import { spawnSync } from "node:child_process";
import { once } from "node:events";
import { readFileSync } from "node:fs";
import { createServer as createTlsServer } from "node:https";
import { type AddressInfo, createServer, type Server, type Socket } from "node:net";
import { join } from "node:path";
import { suite, type TestContext, test } from "node:test";
import { gzipSync } from "node:zlib";
import { tempDir } from "../../../test/support.ts";
import { Budget } from "./budget.ts";
import { KeepAliveConnection } from "./fetch.ts";

const TEXT = "jobs 1\n";
const ANSWER = `HTTP/1.1 200 OK\r\ncontent-length: ${TEXT.length}\r\n\r\n${TEXT}`;

/** A scriptable target that records its connections and requests. */
class Target {
  readonly connections: Socket[] = [];
  readonly requests: string[] = [];
  port = 0;

  async listen(t: TestContext, answer: (socket: Socket, target: Target) => void): Promise<this> {
    const server = createServer((socket) => {
      this.connections.push(socket);
      socket.on("error", () => undefined);
      socket.on("data", (bytes) => {
        this.requests.push(bytes.toString());
        answer(socket, this);
      });
    });
    this.port = await listening(t, server);
    t.after(() => {
      for (const socket of this.connections) socket.destroy();
    });
    return this;
  }
}

async function listening(t: TestContext, server: Server): Promise<number> {
  server.listen(0, "127.0.0.1");
  await once(server, "listening");
  t.after(() => server.close());
  return (server.address() as AddressInfo).port;
}

function lineTo(t: TestContext, port: number, path = "/metrics", https = false): KeepAliveConnection {
  const connection = new KeepAliveConnection({ host: "127.0.0.1", port }, { path, https });
  t.after(() => connection.close(new Error("the test is over")));
  return connection;
}

async function fetched(connection: KeepAliveConnection): Promise<string> {
  const { bytes, release } = await connection.fetch(new Budget().open("org"));
  const text = Buffer.from(bytes).toString();
  release();
  return text;
}

suite("connection to a scrape target", () => {
  test("the connection is reused for the next scrape", async (t) => {
    const target = await new Target().listen(t, (socket) => socket.write(ANSWER));
    const connection = lineTo(t, target.port);
    for (let n = 0; n < 3; n++) assert.equal(await fetched(connection), TEXT);
    assert.deepEqual([target.connections.length, target.requests.length], [1, 3]);
    assert.match(target.requests[0] ?? "", /^GET \/metrics HTTP\/1\.1\r\nhost: 127\.0\.0\.1:\d+\r\n/);
  });

  test("the connection is reopened when the target closed it, before or during a request", async (t) => {
    const target = await new Target().listen(t, (socket, { requests }) => {
      // The third request finds a connection that was used, and no answer on it.
      if (requests.length === 3) socket.destroy();
      else socket.write(ANSWER);
    });
    const connection = lineTo(t, target.port);
    assert.equal(await fetched(connection), TEXT);
    target.connections[0]?.end();
    await once(target.connections[0] as Socket, "close");
    assert.equal(await fetched(connection), TEXT);
    assert.equal(await fetched(connection), TEXT);
    assert.deepEqual([target.connections.length, target.requests.length], [3, 4]);
  });

  test("the connection is not reopened for a target that closes without responding", async (t) => {
    const target = await new Target().listen(t, (socket) => socket.end());
    const connection = lineTo(t, target.port);
    await assert.rejects(fetched(connection), { name: "ScrapeFailure", message: /aborted halfway/ });
    assert.equal(target.requests.length, 1);
  });

  test("surplus bytes after a response close the connection and are not the next response", async (t) => {
    const target = await new Target().listen(t, (socket) => socket.write(`${ANSWER}HTTP/1.1 200 OK\r\n\r\nforged 1\n`));
    const connection = lineTo(t, target.port);
    assert.deepEqual([await fetched(connection), await fetched(connection)], [TEXT, TEXT]);
    assert.equal(target.connections.length, 2);
  });

  test("a path cannot inject header lines", async (t) => {
    const target = await new Target().listen(t, (socket) => socket.write(ANSWER));
    await fetched(lineTo(t, target.port, "a b\r\nx: y\r\n\r\nGET /ü\ud800"));
    assert.match(
      target.requests[0] ?? "",
      /^GET \/a%20b%0D%0Ax:%20y%0D%0A%0D%0AGET%20\/%C3%BC%EF%BF%BD HTTP\/1\.1\r\n/,
    );
  });

  test("an abort gives its reason, and the connection can be used again", async (t) => {
    let silent = true;
    const target = await new Target().listen(t, (socket) => {
      if (!silent) socket.write(ANSWER);
    });
    const connection = lineTo(t, target.port);
    const response = fetched(connection);
    connection.close(new Error("late"));
    await assert.rejects(response, { message: "late" });
    silent = false;
    assert.equal(await fetched(connection), TEXT);
  });

  test("gzip responses are decoded, over TLS with any certificate too", async (t) => {
    const dir = tempDir();
    const files = { key: join(dir, "key.pem"), cert: join(dir, "cert.pem") };
    const args = ["req", "-x509", "-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:P-256", "-nodes", "-subj", "/CN=me"];
    const made = spawnSync("openssl", [...args, "-keyout", files.key, "-out", files.cert]);
    if (made.status !== 0) return t.skip("openssl is not installed");
    const server = createTlsServer({ key: readFileSync(files.key), cert: readFileSync(files.cert) }, (_, response) => {
      response.writeHead(200, { "content-encoding": "gzip", "content-type": "text/plain" });
      response.end(gzipSync(TEXT));
    });
    const connection = lineTo(t, await listening(t, server), "/metrics", true);
    assert.deepEqual([await fetched(connection), await fetched(connection)], [TEXT, TEXT]);
    connection.close(new Error("done"));
  });
});
