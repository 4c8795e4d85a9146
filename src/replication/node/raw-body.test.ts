import assert from "node:assert/strict";
import { once } from "node:events";
import { existsSync, readFileSync, writeFileSync } from "node:fs";
import { createServer, type Socket } from "node:net";
import { join } from "node:path";
import { finished } from "node:stream/promises";
import { suite, type TestContext, test } from "node:test";
import { systemClock } from "#core/clock.ts";
import { tempDir } from "../../../test/support.ts";
import { Peer, PeerRefused } from "./peer.ts";

const HEAD = "HTTP/1.1 200 OK\r\nhangar-term: 7\r\nconnection: close\r\n\r\n";

/** A server for one request: a peer for its address, and the connection to respond on. */
async function serveOnce(t: TestContext): Promise<{ peer: Peer; answering: Promise<Socket> }> {
  const server = createServer().listen(0, "127.0.0.1");
  t.after(() => server.close());
  await once(server, "listening");
  const { promise, resolve } = Promise.withResolvers<Socket>();
  server.once("connection", (socket) => socket.once("data", () => resolve(socket)));
  const { port } = server.address() as { port: number };
  return { peer: new Peer(`http://127.0.0.1:${port}`, systemClock, undefined), answering: promise };
}

/** Sends a request and collects the response until its end; `soon` runs before anything is read. */
async function send(peer: Peer, soon: () => Promise<void> = async () => undefined) {
  const { response, term, body } = await peer.openStream("/stream", {}, new AbortController().signal);
  await soon();
  const parts: Buffer[] = [];
  const ended = finished(response);
  body.read(response, (bytes) => parts.push(Buffer.from(bytes)));
  const error = await ended.then(
    () => undefined,
    (thrown: unknown) => thrown,
  );
  return { term, error, bytes: Buffer.concat(parts) };
}

const numbered = (bytes: number): Buffer => Buffer.from(Uint32Array.from({ length: bytes / 4 }, (_, i) => i).buffer);

suite("responses of a peer", () => {
  test("the whole body arrives in order, whatever came with the headers or before it was read", async (t) => {
    const { peer, answering } = await serveOnce(t);
    const sent = numbered(8 * 1024 * 1024);
    const [early, later] = [300_000, 1_000_000];
    const answered = send(peer, async () => {
      const socket = await answering;
      socket.write(sent.subarray(early, later));
      // A turn of the loop on this side for what the other side's kernel has taken.
      while (socket.writableLength > 0) await new Promise((next) => setImmediate(next));
      socket.end(sent.subarray(later));
    });
    const socket = await answering;
    socket.write(Buffer.concat([Buffer.from(HEAD), sent.subarray(0, early)]));
    const { term, error, bytes } = await answered;
    assert.equal(error, undefined);
    assert.equal(term, 7);
    assert.ok(bytes.equals(sent), `${bytes.length} of ${sent.length} bytes`);
  });

  test("headers in several packets are read as one", async (t) => {
    const { peer, answering } = await serveOnce(t);
    const answered = send(peer);
    const socket = await answering;
    socket.setNoDelay(true);
    for (const letter of HEAD) {
      socket.write(letter);
      await new Promise((next) => setImmediate(next));
    }
    socket.end("the body");
    assert.equal((await answered).bytes.toString(), "the body");
  });

  test("a broken connection ends the response", async (t) => {
    const { peer, answering } = await serveOnce(t);
    const answered = send(peer, async () => {
      (await answering).resetAndDestroy();
    });
    (await answering).write(`${HEAD}some of it`);
    assert.equal((await answered).bytes.toString(), "some of it");
  });

  test("an incomplete download leaves no file, and an existing file is untouched", async (t) => {
    const file = join(tempDir(), "copy.db");
    const fetched = async (): Promise<void> => {
      const { peer, answering } = await serveOnce(t);
      const fetching = peer.fetchFile("/export?name=db", file, new AbortController().signal);
      const refused = assert.rejects(fetching);
      const socket = await answering;
      socket.end(`${HEAD.replace("close", "close\r\ncontent-length: 100")}half of it`);
      await refused;
    };
    await fetched();
    assert.ok(!existsSync(file));
    writeFileSync(file, "somebody's");
    await fetched();
    assert.equal(readFileSync(file, "utf8"), "somebody's");
  });

  test("an error response is read to its end and reported", async (t) => {
    const { peer, answering } = await serveOnce(t);
    const answered = send(peer);
    const socket = await answering;
    socket.end("HTTP/1.1 409 Conflict\r\ncontent-length: 3\r\nconnection: close\r\n\r\nno!");
    await assert.rejects(answered, (error: unknown) => {
      assert.ok(error instanceof PeerRefused);
      assert.equal(error.status, 409);
      assert.match(error.message, /no!/);
      return true;
    });
  });
});
