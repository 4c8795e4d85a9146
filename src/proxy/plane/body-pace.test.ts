/** Bodies that arrive a little at a time: a client below the minimum rate is cut off, a slow one above it is not. */
import assert from "node:assert/strict";
import { once } from "node:events";
import type { RequestListener } from "node:http";
import { connect as connectHttp2, createServer as createHttp2, type ServerHttp2Stream } from "node:http2";
import { type AddressInfo, connect } from "node:net";
import type { Duplex } from "node:stream";
import { suite, type TestContext, test } from "node:test";
import { until } from "../../../test/support.ts";
import { aBackend, aPlaneInTime, aTarget, type TestPlane } from "../fixtures.ts";
import { PROXY_LIMITS } from "../limits.ts";

type Plane = TestPlane & { later(ms: number): void };

/** A request with a body that is still open, and what came back for it. */
interface Upload {
  body: Duplex;
  status(): number | undefined;
  over(): boolean;
}

type Send = (t: TestContext, plane: Plane, fields?: Record<string, string>) => Upload;

const CLIENTS: Record<string, Send> = {
  "HTTP/1.1": (t, { port }) => {
    const body = connect(port, "127.0.0.1");
    t.after(() => body.destroy());
    let answer = "";
    body
      .on("error", () => {})
      .on("data", (bytes: Buffer) => {
        answer += bytes.toString("latin1");
      });
    body.write("POST / HTTP/1.1\r\nhost: web.localhost\r\ncontent-length: 100000\r\n\r\n");
    return {
      body,
      status: () => Number(answer.split(" ")[1]) || undefined,
      over: () => body.readableEnded || body.closed,
    };
  },
  "HTTP/2": (t, { port }, fields) => {
    const session = connectHttp2(`https://127.0.0.1:${port}`, {
      servername: "web.localhost",
      rejectUnauthorized: false,
    });
    session.on("error", () => {});
    t.after(() => session.destroy());
    const body = session.request({ ":method": "POST", ":authority": "web.localhost", ...fields }, { endStream: false });
    let status: number | undefined;
    body
      .on("error", () => {})
      .on("response", (headers) => {
        status = headers[":status"];
      });
    body.resume();
    return { body, status: () => status, over: () => body.closed };
  },
};

/** A machine that counts the bytes it receives; `listener` answers. */
async function house(t: TestContext, tls: boolean, listener: RequestListener = () => {}) {
  const seen = { bytes: 0 };
  const backend = await aBackend(t, (request, response) => {
    request.on("data", (bytes: Buffer) => {
      seen.bytes += bytes.length;
    });
    listener(request, response);
  });
  const plane = await aPlaneInTime(t);
  await plane.serve({ targets: [aTarget(backend.port)], options: { tls } });
  return { plane, seen };
}

const PIECES = 3;

/** Advances the clock by `windows`, with `bytes` in each; every chunk arrives before the clock moves. */
async function pass(plane: Plane, { body, over }: Upload, seen: { bytes: number }, [windows, bytes]: [number, number]) {
  const piece = Buffer.alloc(Math.ceil(bytes / PIECES));
  const counted = (): number => plane.reports.filter(({ type }) => type === "counts").length;
  for (let n = 0; n < windows * PIECES && !over(); n++) {
    const before = seen.bytes;
    body.write(piece);
    await until("it arrived", () => seen.bytes >= before + piece.length || over());
    plane.later(PROXY_LIMITS.slow_body_ms / PIECES + 1);
    const reports = counted();
    await until("all deadlines are checked", () => counted() > reports || over());
  }
}

for (const [name, send] of Object.entries(CLIENTS))
  suite(`the body of a request, over ${name}`, () => {
    const tls = name === "HTTP/2";

    test("is refused with 408 below the minimum rate, though it is never silent", async (t) => {
      const { plane, seen } = await house(t, tls);
      const upload = send(t, plane);
      await pass(plane, upload, seen, [2, 30]);
      await until("it is refused", () => upload.status() === 408);
      assert.ok(seen.bytes < 100, `${seen.bytes} bytes`);
    });

    test("may take any time at the minimum rate", async (t) => {
      const { plane, seen } = await house(t, tls, (request, response) => {
        request.on("end", () => response.end("taken"));
      });
      const upload = send(t, plane);
      await pass(plane, upload, seen, [4, PROXY_LIMITS.slow_body_bytes + PIECES]);
      assert.equal(upload.status(), undefined);
      upload.body.write(Buffer.alloc(100_000 - seen.bytes));
      if (tls) upload.body.end();
      await until("it is answered", () => upload.status() === 200);
    });

    test("may be below the minimum rate once the machine responds", async (t) => {
      const { plane, seen } = await house(t, tls, (_request, response) => void response.write("so far"));
      const upload = send(t, plane);
      await until("it answers", () => upload.status() === 200);
      await pass(plane, upload, seen, [3, 3]);
      assert.equal(upload.over(), false);
    });
  });

suite("the body of a request, over HTTP/2", () => {
  const send = CLIENTS["HTTP/2"] as Send;

  test("is cut off when it stays below the minimum rate after its response", async (t) => {
    const { plane } = await house(t, true, (_request, response) => void response.end("done"));
    const upload = send(t, plane);
    await until("it is answered", () => upload.status() === 200);
    const endless = { bytes: Number.POSITIVE_INFINITY };
    await pass(plane, upload, endless, [3, 3]);
    await until("it is cut", () => upload.over());
  });

  test("may be below the minimum rate when it is gRPC, for a machine that speaks HTTP/2", async (t) => {
    const seen = { bytes: 0 };
    const server = createHttp2().on("stream", (stream: ServerHttp2Stream) => {
      stream
        .on("error", () => {})
        .on("data", (bytes: Buffer) => {
          seen.bytes += bytes.length;
        });
    });
    await once(server.listen(0, "127.0.0.1"), "listening");
    t.after(() => server.close());
    const plane = await aPlaneInTime(t);
    const target = aTarget((server.address() as AddressInfo).port, { h2: true });
    await plane.serve({ targets: [target], options: { tls: true, h2_backend: true } });
    const calls = ["application/grpc+proto", "application/json"].map((type) =>
      send(t, plane, { "content-type": type }),
    );
    await Promise.all(calls.map((call) => pass(plane, call, { bytes: Number.POSITIVE_INFINITY }, [2, 3])));
    const [rpc, other] = calls;
    await until("the other is refused", () => other?.status() === 408);
    assert.equal(rpc?.over(), false);
  });
});
