import assert from "node:assert/strict";
import { createHash } from "node:crypto";
import { once } from "node:events";
import { createServer, get, type IncomingMessage, type ServerResponse } from "node:http";
import type { AddressInfo } from "node:net";
import { suite, type TestContext, test } from "node:test";
import { random, seed } from "../../../test/support.ts";
import { REPLICATION_LIMITS } from "../limits.ts";
import { Batches, type Source } from "./batches.ts";
import { transactionHead } from "./wire.ts";

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

/** A log whose memory is reused when it grows, except that of large transactions, which are not copied. */
function aSource(
  sizeOf: (txid: number) => number,
): Source & { log: { durable: number; reads: number; grow(): number } } {
  let lent: Buffer[] = [];
  const log = {
    durable: 0,
    reads: 0,
    read(txid: number): Buffer | undefined {
      log.reads++;
      const ltx = Buffer.alloc(sizeOf(txid), txid);
      if (ltx.length < 256 * 1024) lent.push(ltx);
      return ltx;
    },
    grow(): number {
      for (const memory of lent) memory.fill(0);
      lent = [];
      return ++log.durable;
    },
  };
  return { name: "db", log };
}

/** What a replica has received when it has received all of them. */
function digestOf(sizes: readonly number[]): string {
  const sent = createHash("sha256");
  for (const [i, bytes] of sizes.entries())
    sent.update(transactionHead("db", bytes)).update(Buffer.alloc(bytes, i + 1));
  return sent.digest("hex");
}

async function digest(answer: IncomingMessage): Promise<string> {
  const received = createHash("sha256");
  for await (const bytes of answer as AsyncIterable<Buffer>) received.update(bytes);
  return received.digest("hex");
}

class Replica {
  readonly response: ServerResponse;
  readonly answer: IncomingMessage;
  #place = 1;
  most_waiting = 0;

  constructor([response, answer]: [ServerResponse, IncomingMessage]) {
    this.response = response;
    this.answer = answer;
  }

  /** All there is after its place. */
  send(batches: Batches, source: Source): void {
    for (let batch = batches.from(source, this.#place); batch; batch = batches.from(source, this.#place)) {
      batches.send(batch, this.response);
      this.#place = batch.next;
    }
    this.most_waiting = Math.max(this.most_waiting, this.response.writableLength);
  }
}

const TRANSACTIONS = 1000;

/** Now and then one that is too large to be copied. */
const aSize = (next: () => number): number => Math.ceil(next() < 0.02 ? 260_000 + next() * 100_000 : next() * 50_000);

suite("batches for replicas", () => {
  test("lagging replicas get every byte in order, although memory is reused", async (t) => {
    const next = random(seed(t));
    const replicas = (await Promise.all([1, 2, 3].map(() => connection(t)))).map((ends) => new Replica(ends));
    const sizes = Array.from({ length: TRANSACTIONS }, () => aSize(next));
    const source = aSource((txid) => sizes[txid - 1] ?? 0);
    const batches = new Batches();
    while (source.log.grow() < TRANSACTIONS) {
      // Not all of them are at the same place all the time.
      for (const replica of replicas.filter(() => next() < 0.3)) replica.send(batches, source);
      batches.forget();
      if (next() < 0.1) await new Promise((turn) => setImmediate(turn));
    }
    for (const replica of replicas) replica.send(batches, source);
    batches.forget();
    for (const { response, answer, most_waiting } of replicas) {
      response.end();
      assert.equal(await digest(answer), digestOf(sizes));
      assert.ok(most_waiting > 1_000_000, "much data waits while no replica reads");
    }
  });

  test("a batch for several replicas is read from the log once", () => {
    const source = aSource(() => 1000);
    source.log.durable = 10;
    const batches = new Batches();
    const batch = batches.from(source, 1);
    assert.deepEqual([batch?.next, source.log.reads], [11, 10]);
    assert.equal(batches.from(source, 1), batch);
    assert.equal(source.log.reads, 10);
    assert.notEqual(batches.from({ ...source }, 1), batch, "another database is another matter");
    batches.forget();
    assert.notEqual(batches.from(source, 1), batch);
  });

  test("only durable transactions that the log has are sent", () => {
    const source = aSource(() => 1000);
    source.log.durable = 3;
    const batches = new Batches();
    assert.equal(batches.from(source, 2)?.next, 4);
    assert.equal(batches.from(source, 4), undefined);
    assert.equal(batches.from({ name: "db", log: { durable: 3, read: () => undefined } }, 1), undefined);
  });

  test("a full connection signals when it can take more", async (t) => {
    const [response, answer] = await connection(t);
    const batches = new Batches();
    const source = aSource(() => 18_000);
    while (response.writableLength <= REPLICATION_LIMITS.stream_waiting_bytes) {
      const batch = batches.from(source, source.log.grow());
      assert.ok(batch);
      batches.send(batch, response);
      batches.forget();
    }
    const room = once(response, "drain");
    answer.resume();
    await room;
    assert.equal(response.writableLength, 0);
  });
});
