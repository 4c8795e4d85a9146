/** Timeouts of machines and of clients in the middle of a request, over HTTP/1.1 and HTTP/2. */
import assert from "node:assert/strict";
import { once } from "node:events";
import type { RequestListener } from "node:http";
import { type ClientHttp2Session, type ClientHttp2Stream, connect as connectHttp2, constants } from "node:http2";
import { suite, type TestContext, test } from "node:test";
import { promisify } from "node:util";
import { until } from "../../../../test/support.ts";
import { aBackend, aPlaneInTime, aTarget, type TestPlane } from "../../fixtures.ts";
import { PROXY_LIMITS } from "../../limits.ts";
import type { PortOptions } from "../../table.ts";

const MINUTE = 60_000;
const REQUEST = "GET / HTTP/1.1\r\nhost: web.localhost\r\nconnection: close\r\n\r\n";

/** A machine that answers as the test says, behind a listener with a virtual clock. */
async function house(t: TestContext, listener: RequestListener, options: Partial<PortOptions> = {}) {
  const received = Promise.withResolvers<void>();
  const backend = await aBackend(t, (request, response) => {
    listener(request, response);
    received.resolve();
  });
  const proxy = await aPlaneInTime(t);
  await proxy.serve({ targets: [aTarget(backend.port)], options });
  return { proxy, received: received.promise };
}

function http2(t: TestContext, { port }: TestPlane, settings = {}): ClientHttp2Session {
  const to = { servername: "web.localhost", rejectUnauthorized: false, settings };
  const session = connectHttp2(`https://127.0.0.1:${port}`, to);
  session.on("error", () => {});
  t.after(() => session.destroy());
  return session;
}

const post = (session: ClientHttp2Session): ClientHttp2Stream =>
  session.request({ ":method": "POST", ":path": "/", ":authority": "web.localhost" }, { endStream: false });

const statusOf = async (stream: ClientHttp2Stream): Promise<number> =>
  Number((await once(stream, "response"))[0][":status"]);

/** The code that a stream was closed with. */
async function closed(stream: ClientHttp2Stream): Promise<number> {
  stream.on("error", () => {});
  if (!stream.closed) await once(stream, "close");
  return stream.rstCode;
}

const counted = ({ reports }: TestPlane): number => reports.filter(({ type }) => type === "counts").length;

const silent: RequestListener = () => {};
const begun: RequestListener = (_request, response) => void response.write("so far");

suite("timeouts over HTTP/1.1", () => {
  test("a machine that does not respond is 504 after the default or the service's own timeout", async (t) => {
    for (const idle_ms of [0, MINUTE]) {
      const { proxy, received } = await house(t, silent, { idle_ms });
      const answer = proxy.raw(REQUEST);
      await received;
      proxy.later((idle_ms || PROXY_LIMITS.answer_idle_ms) + 1);
      assert.match(await answer, /^HTTP\/1\.1 504 .*"status":"answer_timeout"/s);
    }
  });

  test("a response that stalls in the middle is cut off without a final chunk", async (t) => {
    const { proxy } = await house(t, begun);
    let last = "";
    const answer = proxy.raw(REQUEST, (so_far) => {
      last = so_far;
      if (so_far.includes("so far")) proxy.later(PROXY_LIMITS.answer_idle_ms + 1);
      return false;
    });
    assert.equal(await answer, last);
    assert.doesNotMatch(last, /\r\n0\r\n\r\n$/);
  });

  test("a client that stops in the middle of its body gets 408", async (t) => {
    const { proxy, received } = await house(t, silent);
    const answer = proxy.raw("POST / HTTP/1.1\r\nhost: web.localhost\r\ncontent-length: 10\r\n\r\nhalf");
    await received;
    proxy.later(PROXY_LIMITS.stall_ms + 1);
    assert.match(await answer, /^HTTP\/1\.1 408 .*"status":"slow_body"/s);
  });
});

suite("timeouts over HTTP/2", () => {
  test("a machine that does not respond is 504, and the HTTP/2 connection stays open", async (t) => {
    const { proxy, received } = await house(t, silent, { tls: true, idle_ms: MINUTE });
    const session = http2(t, proxy);
    const stream = session.request({ ":path": "/", ":authority": "web.localhost" });
    await received;
    proxy.later(MINUTE + 1);
    assert.equal(await statusOf(stream), 504);
    stream.resume();
    assert.equal(await closed(stream), constants.NGHTTP2_NO_ERROR);
    assert.equal(session.closed, false);
  });

  test("a silent body is allowed while its response flows; when both stall the stream is reset", async (t) => {
    const { proxy } = await house(t, begun, { tls: true });
    const session = http2(t, proxy);
    const stream = post(session);
    await once(stream, "data");
    proxy.later(PROXY_LIMITS.stall_ms + 1);
    const reports = counted(proxy);
    // Its bytes are reported at the next sweep.
    await promisify(session.ping.bind(session))();
    await until("all deadlines are checked", () => counted(proxy) > reports);
    assert.equal(stream.closed, false);
    proxy.later(PROXY_LIMITS.answer_idle_ms);
    assert.equal(await closed(stream), constants.NGHTTP2_CANCEL);
  });

  test("a client that does not read its response, or sends a body that is not read, loses its stream", async (t) => {
    const large: RequestListener = (_request, response) => void response.end(Buffer.alloc(1 << 20));
    for (const listener of [large, ((_request, response) => void response.end("done")) as RequestListener]) {
      const { proxy } = await house(t, listener, { tls: true });
      const stream = post(http2(t, proxy, { initialWindowSize: 1000 }));
      assert.equal(await statusOf(stream), 200);
      stream.pause();
      proxy.later(PROXY_LIMITS.stall_ms + 1);
      assert.equal(await closed(stream), constants.NGHTTP2_CANCEL);
    }
  });
});
