import assert from "node:assert/strict";
import { createHash } from "node:crypto";
import { once } from "node:events";
import { createServer, get, type IncomingMessage, type ServerResponse } from "node:http";
import type { AddressInfo } from "node:net";
import { suite, type TestContext, test } from "node:test";
import { random, seed } from "../../../test/support.ts";
import { REPLICATION_LIMITS } from "../limits.ts";
import { Outbox } from "./outbox.ts";

/** Both ends of an answer. */
async function connection(t: TestContext): Promise<[ServerResponse, IncomingMessage]> {
  const server = createServer().listen(0, "127.0.0.1");
  t.after(() => {
    server.closeAllConnections();
    server.close();
  });
  await once(server, "listening");
  const request = get({ port: (server.address() as AddressInfo).port, host: "127.0.0.1", agent: false });
  const [, response] = (await once(server, "request")) as [IncomingMessage, ServerResponse];
  response.flushHeaders();
  const [answer] = (await once(request, "response")) as [IncomingMessage];
  return [response, answer];
}

suite("outbox", () => {
  test("a reader that lags gets every byte in order, though what it was given is overwritten at once", async (t) => {
    const next = random(seed(t));
    const [response, answer] = await connection(t);
    const outbox = new Outbox(response);
    const sent = createHash("sha256");
    const small = Buffer.alloc(100_000);
    let most_waiting = 0;
    for (let round = 0; round < 300; round++) {
      // The large ones are not copied, so each is memory of its own.
      const large = next() < 0.05;
      const part = large
        ? Buffer.alloc(300_000 + Math.floor(next() * 100_000))
        : small.subarray(0, 1 + next() * 99_999);
      part.fill(round);
      sent.update(part);
      outbox.put(part);
      if (next() < 0.3) outbox.flush();
      if (next() < 0.3) await new Promise((turn) => setImmediate(turn));
      most_waiting = Math.max(most_waiting, outbox.waiting);
    }
    outbox.flush();
    response.end();
    const received = createHash("sha256");
    for await (const bytes of answer as AsyncIterable<Buffer>) received.update(bytes);
    assert.equal(received.digest("hex"), sent.digest("hex"));
    assert.ok(most_waiting > 1_000_000, "nobody read meanwhile, so much did wait");
  });

  test("what was put and not yet flushed waits, and is not sent", async (t) => {
    const [response, answer] = await connection(t);
    const outbox = new Outbox(response);
    outbox.put(Buffer.from("one"), Buffer.from("two"));
    assert.equal(outbox.waiting, 6);
    outbox.flush();
    outbox.flush();
    const [bytes] = (await once(answer, "data")) as [Buffer];
    assert.equal(bytes.toString(), "onetwo");
    assert.equal(outbox.waiting, 0);
  });

  test("a connection that was full says when there is room again, so nobody needs to look", async (t) => {
    const [response, answer] = await connection(t);
    const outbox = new Outbox(response);
    while (outbox.waiting <= REPLICATION_LIMITS.stream_waiting_bytes) {
      outbox.put(Buffer.alloc(10), Buffer.alloc(18_000));
      outbox.flush();
    }
    const room = once(response, "drain");
    answer.resume();
    await room;
    assert.equal(outbox.waiting, 0);
  });
});
