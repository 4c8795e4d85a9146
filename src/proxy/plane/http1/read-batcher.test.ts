import assert from "node:assert/strict";
import { once } from "node:events";
import { connect as connectHttp2 } from "node:http2";
import { Agent, get } from "node:https";
import { buffer } from "node:stream/consumers";
import { suite, test } from "node:test";
import { random, seed } from "../../../../test/support.ts";
import { aBackend, aPlane, aTarget } from "../../fixtures.ts";
import { ReadBatcher } from "./read-batcher.ts";

suite("read batching", () => {
  test("chunks are handled in order, and earlier on demand", async () => {
    const taken: string[] = [];
    const [one, two] = [1, 2].map((n) => new ReadBatcher((chunk) => taken.push(`${n}${chunk.toString()}`)));
    one?.put(Buffer.from("a"));
    two?.put(Buffer.from("a"));
    assert.deepEqual(taken, []);
    one?.put(Buffer.from("b"));
    assert.deepEqual(taken, ["1a"]);
    one?.settle();
    one?.settle();
    assert.deepEqual(taken, ["1a", "1b"]);
    two?.put(Buffer.from("b"));
    await new Promise((resolve) => setImmediate(resolve));
    assert.deepEqual(taken, ["1a", "1b", "2a", "2b"]);
  });

  test("responses of all sizes reach HTTP/1 and HTTP/2 clients over shared connections unchanged", async (t) => {
    const REQUESTS = 400;
    const choose = random(seed(t));
    const whole = Buffer.from(Array.from({ length: 200_000 }, () => Math.floor(choose() * 256)));
    const backend = await aBackend(t, (request, response) => {
      const [, size = 0, note = 0] = (request.url ?? "").split("/").map(Number);
      response.writeHead(200, { "content-length": size, "x-note": "n".repeat(note) });
      // Sometimes the head and the body come together, sometimes apart.
      if (note % 2 === 0) response.flushHeaders();
      response.end(whole.subarray(0, size));
    });
    const listener = await aPlane(t);
    await listener.serve({ targets: [aTarget(backend.port)], options: { tls: true } });
    const to = { servername: "web.localhost", rejectUnauthorized: false };
    const agent = new Agent({ ...to, keepAlive: true, maxSockets: 6 });
    const session = connectHttp2(`https://127.0.0.1:${listener.port}`, to);
    t.after(() => {
      agent.destroy();
      session.destroy();
    });
    const host = "web.localhost";
    const fetchFrom = async (path: string): Promise<{ note: string; body: Buffer }> => {
      if (choose() < 0.5) {
        const request = get({ port: listener.port, host: "127.0.0.1", path, agent, headers: { host } });
        const [answer] = await once(request, "response");
        return { note: answer.headers["x-note"], body: await buffer(answer) };
      }
      const stream = session.request({ ":path": path, ":authority": host });
      const [headers] = await once(stream, "response");
      return { note: headers["x-note"], body: await buffer(stream) };
    };
    await Promise.all(
      Array.from({ length: REQUESTS }, async () => {
        const size = Math.floor(choose() ** 3 * whole.length);
        const note = Math.floor(choose() * 1200);
        const got = await fetchFrom(`/${size}/${note}`);
        assert.equal(got.note.length, note);
        assert.ok(got.body.equals(whole.subarray(0, size)), `${size} bytes`);
      }),
    );
  });
});
