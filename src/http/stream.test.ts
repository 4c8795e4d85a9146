/** A slow reader of a stream does not affect the others, and gets the reason for its disconnect (E1). */
import assert from "node:assert/strict";
import { once } from "node:events";
import { createServer } from "node:http";
import { type AddressInfo, connect, type Socket } from "node:net";
import { text } from "node:stream/consumers";
import { suite, type TestContext, test } from "node:test";
import type { FastifyReply } from "fastify";
import { type Clock, systemClock } from "#core/clock.ts";
import { LIMITS } from "#core/limits.ts";
import { dropped, type StreamItem, sendStream, together } from "./stream.ts";

const PAGES = 64;
const PAGE = { data: "x".repeat(256 * 1024) };

/** The stall limit passes at once; heartbeats never come. */
const hasty: Clock = {
  ...systemClock,
  sleep: async (ms, signal) => {
    if (ms === LIMITS.stream_stall_ms) return;
    await systemClock.sleep(ms, signal);
  },
};

async function* pages(): AsyncIterable<readonly StreamItem[]> {
  for (let i = 0; i < PAGES; i++) yield [{ id: String(i), ...PAGE }];
}

/** A server that responds to each connection with the stream. */
async function serve(t: TestContext, clock: Clock): Promise<() => Socket> {
  const server = createServer((_, raw) => {
    // The part of a Fastify reply that a stream uses.
    const reply = { hijack() {}, raw, getHeaders: () => ({}) } as unknown as FastifyReply;
    const closed = new AbortController();
    raw.once("close", () => closed.abort());
    void sendStream(reply, pages(), { clock, signal: closed.signal });
  });
  server.listen(0, "127.0.0.1");
  await once(server, "listening");
  t.after(() => {
    server.closeAllConnections();
    server.close();
  });
  return () => {
    const socket = connect((server.address() as AddressInfo).port, "127.0.0.1");
    socket.write("GET / HTTP/1.1\r\nHost: h\r\nConnection: close\r\n\r\n");
    return socket;
  };
}

suite("server-sent event streams", () => {
  test("a client that does not read is dropped once its buffer is full, with an error event", async (t) => {
    const open = await serve(t, hasty);
    const before = dropped.slow_readers;
    const stalled = Array.from({ length: 5 }, () => open().pause());
    // Whether the buffer of the kernel takes it all decides the reader's speed, so the stalled ones come first.
    while (dropped.slow_readers < before + stalled.length) await new Promise((resolve) => setImmediate(resolve));
    const responses = await Promise.all(stalled.map((socket) => text(socket)));
    for (const answer of responses) {
      assert.match(answer.slice(-200), /event: error\ndata: \{"type":"error","reason":"too slow"\}/);
      assert.ok(answer.length < PAGES * PAGE.data.length, "not all of it was kept for them");
    }
  });

  test("a client that reads gets every message once, in order", async (t) => {
    const open = await serve(t, systemClock);
    const answer = await text(open());
    const ids = [...answer.matchAll(/^id: (\d+)$/gm)].map(([, id]) => Number(id));
    assert.deepEqual(
      ids,
      Array.from({ length: PAGES }, (_, i) => i),
    );
  });
});

suite("several sources as one stream", () => {
  test("items come as soon as one source has them, and the others end with the reader", async () => {
    const ends: string[] = [];
    const source = (name: string, count: number) =>
      async function* (signal: AbortSignal): AsyncGenerator<string> {
        try {
          for (let i = 1; i <= count; i++) yield `${name}${i}`;
          await new Promise<void>((resolve) => signal.addEventListener("abort", () => resolve(), { once: true }));
        } finally {
          ends.push(name);
        }
      };
    const both = together([source("quiet", 0), source("busy", 3)], new AbortController().signal);
    const found: string[] = [];
    for await (const item of both) if (found.push(item) === 3) break;
    assert.deepEqual(found, ["busy1", "busy2", "busy3"]);
    assert.deepEqual(ends.sort(), ["busy", "quiet"]);
  });

  test("the failure of one source ends the stream with its error", async () => {
    const broken = async function* (): AsyncGenerator<string> {
      yield "first";
      throw new Error("no database");
    };
    const endless = async function* (signal: AbortSignal): AsyncGenerator<string> {
      await new Promise<void>((resolve) => signal.addEventListener("abort", () => resolve(), { once: true }));
      yield "never read";
    };
    const both = together([broken, endless], new AbortController().signal);
    assert.equal((await both.next()).value, "first");
    await assert.rejects(both.next(), /no database/);
  });
});
