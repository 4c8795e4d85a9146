/** Hand-written HTTP/2 frames: a flood ends only its own connection, and other clients are served. */
import assert from "node:assert/strict";
import { once } from "node:events";
import { connect as connectHttp2, createSecureServer } from "node:http2";
import type { AddressInfo, Server } from "node:net";
import { text } from "node:stream/consumers";
import { suite, type TestContext, test } from "node:test";
import { connect as connectTls, type TLSSocket } from "node:tls";
import { systemClock } from "#core/clock.ts";
import { PATIENCE_MS } from "../../../test/support.ts";
import { aBackend, aPlaneInTime, aTarget } from "../fixtures.ts";
import {
  FLAG,
  frame,
  indexed,
  NEWEST,
  PREFACE,
  plain,
  REQUEST,
  request,
  reset,
  streamId,
  TYPE,
} from "../h2-frames.fixtures.ts";
import { PROXY_LIMITS } from "../limits.ts";
import { selfSigned } from "../x509.ts";

const turn = (): Promise<void> => new Promise((resolve) => setImmediate(resolve));

interface Client {
  socket: TLSSocket;
  /** Sends, as far as the other side takes it. */
  send(bytes: Uint8Array): Promise<void>;
  /** Frames that came, as `type flags stream`. */
  frames: { type: number; flags: number; stream: number; payload: Buffer }[];
  /** Resolves when the connection is over. */
  closed: Promise<void>;
  isClosed(): boolean;
}

/** A connection past its handshake. With `reads` false, nothing that comes is taken. */
async function client(t: TestContext, port: number, { reads = true } = {}): Promise<Client> {
  const socket = connectTls({
    port,
    host: "127.0.0.1",
    servername: "web.localhost",
    rejectUnauthorized: false,
    ALPNProtocols: ["h2"],
  });
  t.after(() => socket.destroy());
  await once(socket, "secureConnect");
  const frames: Client["frames"] = [];
  let [rest, over] = [Buffer.alloc(0), false];
  const closed = new Promise<void>((resolve) => {
    const end = (): void => {
      over = true;
      resolve();
    };
    socket.on("error", end).on("end", end).on("close", end);
  });
  if (reads)
    socket.on("data", (bytes) => {
      rest = Buffer.concat([rest, bytes]);
      while (rest.length >= 9 && rest.length >= 9 + rest.readUIntBE(0, 3)) {
        const size = rest.readUIntBE(0, 3);
        const [type = 0, flags = 0] = rest.subarray(3, 5);
        frames.push({ type, flags, stream: rest.readUInt32BE(5) & 0x7fffffff, payload: rest.subarray(9, 9 + size) });
        rest = rest.subarray(9 + size);
      }
    });
  const send = async (bytes: Uint8Array): Promise<void> => {
    if (over || !socket.writable) return;
    await Promise.race([new Promise<void>((resolve) => socket.write(bytes, () => resolve())), closed]);
  };
  await send(Buffer.concat([PREFACE, frame(TYPE.settings, 0, 0), frame(TYPE.settings, FLAG.ack, 0)]));
  return { socket, send, frames, closed, isClosed: () => over };
}

const connections = (server: Server): Promise<number> =>
  new Promise((resolve) => server.getConnections((_error, count) => resolve(count)));

/** The error code of the proxy's GOAWAY. */
const goodbye = ({ frames }: Client): number | undefined =>
  frames.find(({ type }) => type === TYPE.goaway)?.payload.readUInt32BE(4);

/** A machine that counts, behind the proxy. */
async function house(t: TestContext) {
  const seen = { requests: 0, header_bytes: 0 };
  const backend = await aBackend(t, (incoming, response) => {
    seen.requests++;
    seen.header_bytes = Math.max(seen.header_bytes, incoming.rawHeaders.join("").length);
    response.end("ok");
  });
  const plane = await aPlaneInTime(t);
  await plane.serve({ targets: [aTarget(backend.port)], options: { tls: true } });
  const honest = async (): Promise<void> => {
    const session = connectHttp2(`https://127.0.0.1:${plane.port}`, {
      servername: "web.localhost",
      rejectUnauthorized: false,
    });
    const stream = session.request({ ":path": "/", ":authority": "web.localhost" });
    assert.equal(await text(stream), "ok");
    session.close();
  };
  return { port: plane.port, later: plane.later, seen, honest };
}

const endless = (piece: Uint8Array) =>
  function* (): Iterable<Uint8Array> {
    for (;;) yield piece;
  };

/** Sends until the other side closes the connection; returns how much it took. */
async function flood(attacker: Client, pieces: () => Iterable<Uint8Array>, most: number): Promise<number> {
  let sent = 0;
  const end = performance.now() + PATIENCE_MS;
  for (const piece of pieces()) {
    if (attacker.isClosed() || sent >= most) break;
    assert.ok(performance.now() < end, "the flood was taken slowly, and went on");
    await attacker.send(piece);
    sent++;
  }
  return sent;
}

suite("hostile HTTP/2 clients of the edge proxy", () => {
  const ROUNDS = 400;
  const AT_ONCE = 100;
  /** Requests that are cancelled at once, a hundred in one write. */
  function* resets(): Generator<Buffer> {
    for (let round = 0; round < ROUNDS; round++)
      yield Buffer.concat(
        Array.from({ length: AT_ONCE }, (_, i) => round * AT_ONCE + i).flatMap((n) => [
          request(streamId(n)),
          reset(streamId(n)),
        ]),
      );
  }

  test("rapid reset: an unbounded server takes every request; the proxy ends the connection", async (t) => {
    let begun = 0;
    const { key, chain: cert } = selfSigned(["localhost"], systemClock.now());
    const unbounded = createSecureServer({ key, cert, streamResetBurst: 1e9, streamResetRate: 1e9 });
    unbounded.on("stream", (stream) => {
      begun++;
      stream.on("error", () => {});
    });
    await once(unbounded.listen(0, "127.0.0.1"), "listening");
    t.after(() => unbounded.close());
    const control = await client(t, (unbounded.address() as AddressInfo).port);
    await flood(control, resets, 30);
    while (begun < 30 * AT_ONCE) await turn();
    control.socket.destroy();
    const { port, seen, honest } = await house(t);
    const attacker = await client(t, port);
    const rounds = await flood(attacker, resets, ROUNDS);
    await attacker.closed;
    t.diagnostic(`ended after ${rounds} writes of ${AT_ONCE} requests; the machine saw ${seen.requests}`);
    assert.ok(seen.requests < (ROUNDS * AT_ONCE) / 4, `${seen.requests} requests reached the machine`);
    await honest();
  });

  test("CONTINUATION flood: endless headers are cut off at the limit, finite ones are served", async (t) => {
    const { port, seen, honest } = await house(t);
    const good = await client(t, port);
    await good.send(
      Buffer.concat([
        frame(TYPE.headers, FLAG.end_stream, 1, REQUEST),
        frame(TYPE.continuation, 0, 1, plain("x-a", "1")),
        frame(TYPE.continuation, FLAG.end_headers, 1, plain("x-b", "2")),
      ]),
    );
    while (seen.requests === 0) await turn();
    const attacker = await client(t, port);
    await attacker.send(frame(TYPE.headers, FLAG.end_stream, 1, REQUEST));
    const piece = frame(TYPE.continuation, 0, 1, plain("x-flood", "a".repeat(4000)));
    const most = 10_000;
    const sent = await flood(attacker, endless(piece), most);
    await attacker.closed;
    t.diagnostic(`cut after ${sent} frames of 4 KB, with code ${goodbye(attacker)}`);
    assert.ok(sent < most);
    const empty = await client(t, port);
    await empty.send(frame(TYPE.headers, FLAG.end_stream, 1, REQUEST));
    const nothing = Buffer.concat(Array.from({ length: 100 }, () => frame(TYPE.continuation, 0, 1)));
    assert.ok((await flood(empty, endless(nothing), most)) < most, "nor one of empty frames");
    assert.equal(seen.requests, 1);
    await honest();
  });

  test("HPACK bomb: a header block that expands a thousandfold is refused and reaches no machine", async (t) => {
    const { port, seen, honest } = await house(t);
    const attacker = await client(t, port);
    const bomb = indexed("x-bomb", "a".repeat(3900));
    await attacker.send(request(1, Buffer.concat([REQUEST, bomb, Buffer.alloc(2, NEWEST)])));
    while (seen.requests === 0 && !attacker.isClosed()) await turn();
    assert.ok(seen.header_bytes > 3 * 3900, "three of them are a head like any other");
    const before = process.memoryUsage().rss;
    for (let n = 1; n < 200 && !attacker.isClosed(); n++)
      await attacker.send(request(streamId(n), Buffer.concat([REQUEST, Buffer.alloc(16_000, NEWEST)])));
    // 200 × 16,000 × 3.9 KB would be 12 GB.
    const grown = (process.memoryUsage().rss - before) / 2 ** 20;
    t.diagnostic(`memory grew by ${grown.toFixed(0)} MiB`);
    assert.ok(grown < 512, `${grown} MiB`);
    assert.ok(seen.header_bytes < PROXY_LIMITS.head_bytes + 1024, `${seen.header_bytes} bytes`);
    assert.equal(seen.requests, 1);
    await honest();
  });

  for (const [name, one] of Object.entries({
    PING: frame(TYPE.ping, 0, 0, Buffer.alloc(8)),
    SETTINGS: frame(TYPE.settings, 0, 0),
  })) {
    test(`${name} flood: a client that does not read is cut off, one that reads gets its acknowledgements`, async (t) => {
      const { port, later, honest } = await house(t);
      const good = await client(t, port);
      await good.send(Buffer.concat(Array.from({ length: 10 }, () => one)));
      const type = name === "PING" ? TYPE.ping : TYPE.settings;
      const answers = (): number => good.frames.filter((got) => got.type === type && got.flags === FLAG.ack).length;
      while (answers() < 10) await turn();
      const attacker = await client(t, port, { reads: false });
      const many = Buffer.concat(Array.from({ length: 1000 }, () => one));
      const before = process.memoryUsage().rss;
      // A connection without requests is idle, whatever it sends. Endless, because a client that does not read notices
      // the end of its connection only by writing, and a fast box discards much between GOAWAY and the disconnection.
      const flooding = flood(attacker, endless(many), Number.POSITIVE_INFINITY);
      await honest();
      later(PROXY_LIMITS.client_idle_ms + 1);
      await attacker.closed;
      const grown = (process.memoryUsage().rss - before) / 2 ** 20;
      t.diagnostic(`ended after ${await flooding} thousand frames; memory grew by ${grown.toFixed(0)} MiB`);
      assert.ok(grown < 256, `${grown} MiB`);
      await honest();
    });
  }

  test("slow read: a client that does not read its responses is cut off", async (t) => {
    const large = Buffer.alloc(2 ** 20);
    let closed = 0;
    const backend = await aBackend(t, (_asked, response) => {
      response.once("close", () => closed++);
      const more = (): void => void (response.destroyed || response.write(large, more));
      more();
    });
    const plane = await aPlaneInTime(t);
    await plane.serve({ targets: [aTarget(backend.port)], options: { tls: true } });
    const attacker = await client(t, plane.port, { reads: false });
    const window = frame(8, 0, 0, Buffer.from([0x7f, 0xff, 0, 0]));
    const wide = frame(TYPE.settings, 0, 0, Buffer.from([0, 4, 0x7f, 0xff, 0xff, 0xff]));
    const streams = 20;
    const requests = Array.from({ length: streams }, (_, n) => request(streamId(n)));
    await attacker.send(Buffer.concat([wide, window, ...requests]));
    while (backend.server.listening && (await connections(backend.server)) < streams) await turn();
    const settle = setInterval(() => plane.later(PROXY_LIMITS.stall_ms + 1), 200);
    t.after(() => clearInterval(settle));
    // A byte now and then makes the client notice it.
    const nudge = setInterval(() => void attacker.send(frame(TYPE.ping, 0, 0, Buffer.alloc(8))), 50);
    t.after(() => clearInterval(nudge));
    await attacker.closed;
    while (closed < streams) await turn();
  });
});
