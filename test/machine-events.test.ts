/** Events pushed: server-sent streams with a cursor, and signed webhooks. */
import assert from "node:assert/strict";
import { createServer, type IncomingMessage, request } from "node:http";
import type { AddressInfo } from "node:net";
import { suite, test } from "node:test";
import { type Clock, systemClock } from "#core/clock.ts";
import { signature } from "#machines/events/webhooks.ts";
import { bench } from "./machine-bench.ts";
import { until, within } from "./support.ts";

interface Stream {
  /** The next message that is not a comment. */
  next(): Promise<{ id: string; event: string; data: Record<string, unknown> }>;
  response: IncomingMessage;
  close(): void;
}

/** A reader over a real socket. */
async function open(
  base_url: string,
  token: string,
  path: string,
  headers: Record<string, string> = {},
): Promise<Stream> {
  const asked = request(`${base_url}${path}`, { headers: { authorization: `Bearer ${token}`, ...headers } });
  const response = await new Promise<IncomingMessage>((resolve, reject) => {
    asked.on("response", resolve).on("error", reject).end();
  });
  let buffer = "";
  const reader = response[Symbol.asyncIterator]() as AsyncIterator<Buffer>;
  const message = (): string | undefined => {
    const end = buffer.indexOf("\n\n");
    if (end < 0) return undefined;
    const text = buffer.slice(0, end);
    buffer = buffer.slice(end + 2);
    return text;
  };
  return {
    response,
    close: () => asked.destroy(),
    async next() {
      for (;;) {
        const text = message();
        if (text !== undefined && !text.startsWith(":")) {
          const field = (name: string): string => new RegExp(`^${name}: (.*)$`, "m").exec(text)?.[1] ?? "";
          return { id: field("id"), event: field("event"), data: JSON.parse(field("data")) as Record<string, unknown> };
        }
        if (text === undefined) {
          const { value, done } = await reader.next();
          if (done) throw new Error("the stream ended");
          buffer += String(value);
        }
      }
    },
  };
}

suite("machine event streams", () => {
  test("an app's events arrive in order as they happen, and resume after a reconnect", async (t) => {
    const { create, wait, ask, base_url, token } = await bench(t);
    await ask("POST /v1/apps", { body: { app_name: "other" } });
    const stream = await open(base_url, token, "/v1/apps/web/events");
    assert.match(String(stream.response.headers["content-type"]), /^text\/event-stream/);
    const { id } = (await create()).body;
    await ask("POST /v1/apps/other/machines", { body: { config: { image: "x" } } });
    const seen = [await stream.next(), await stream.next(), await stream.next()];
    assert.deepEqual(
      seen.map(({ event, data }) => `${event} ${String(data["status"])}`),
      ["machine.launch created", "machine.start starting", "machine.start started"],
    );
    assert.ok(seen.every(({ data }) => data["machine_id"] === id && data["app_name"] === "web"));
    stream.close();
    const later = (await create()).body;
    await wait(later.id, "started");
    const back = await open(base_url, token, "/v1/apps/web/events", { "last-event-id": seen[1]?.id ?? "" });
    assert.equal((await back.next()).id, seen[2]?.id);
    assert.equal((await back.next()).data["machine_id"], later.id);
    back.close();
  });

  test("an organization's event log is read in pages without a gap", async (t) => {
    const { create, wait, ask } = await bench(t);
    for (let i = 0; i < 4; i++) await wait((await create()).body.id, "started");
    const cursors: number[] = [];
    for (let cursor = 0; ; ) {
      const { body } = await ask(`GET /v1/orgs/personal/events?cursor=${cursor}&limit=5`);
      if (body.events.length === 0) break;
      cursors.push(...body.events.map((event: { cursor: number }) => event.cursor));
      cursor = body.cursor;
    }
    assert.deepEqual(
      cursors,
      Array.from({ length: 12 }, (_, i) => i + 1),
    );
  });

  test("a stopping platform ends its streams and waits at once", async (t) => {
    // A waiter that has set its alarm is there; nothing else sleeps for just so long.
    const waits = Promise.withResolvers<void>();
    const sleep: Clock["sleep"] = (ms, signal) => {
      if (ms === 47_000) waits.resolve();
      return systemClock.sleep(ms, signal);
    };
    const { create, close, base_url, token } = await bench(t, {}, { clock: { ...systemClock, sleep } });
    const { id } = (await create({ skip_launch: true })).body;
    const stream = await open(base_url, token, "/v1/orgs/personal/events");
    const waiting = fetch(`${base_url}/v1/apps/web/machines/${id}/wait?timeout=47`, {
      headers: { authorization: `Bearer ${token}` },
    });
    await waits.promise;
    const began = performance.now();
    await close();
    assert.ok(performance.now() - began < within(3000));
    assert.equal((await waiting).status, 503);
    await assert.rejects(stream.next());
  });
});

suite("webhooks", () => {
  test("an organization's webhook to a private address is 403, and nothing is sent", async (t) => {
    let asked = 0;
    const server = createServer((_incoming, answer) => {
      asked++;
      answer.end("ok");
    });
    await new Promise<void>((resolve) => server.listen(0, "127.0.0.1", resolve));
    t.after(() => server.close());
    const { port } = server.address() as AddressInfo;
    const { create, ask, wait } = await bench(t);
    const { token } = (await ask("POST /v1/orgs/personal/tokens", { body: { kind: "org" } })).body;
    const hook = (host: string, as?: string) =>
      ask("POST /v1/orgs/personal/webhooks", {
        ...(as && { token: as }),
        body: { url: `http://${host}/`, app_name: "web" },
      });
    for (const host of [`127.0.0.1:${port}`, `localhost:${port}`]) assert.equal((await hook(host, token)).status, 403);
    await wait((await create()).body.id, "started");
    assert.equal(asked, 0);
    // The same by whoever runs the platform arrives, so nothing else kept it away.
    assert.equal((await hook(`127.0.0.1:${port}`)).status, 201);
    await wait((await create()).body.id, "started");
    await until("it was asked", () => asked > 0);
  });

  test("events are signed, sent in order and retried, and not sent after the webhook is deleted", async (t) => {
    const received: { status: string; signed: boolean }[] = [];
    let refuse = 2;
    let secret = "";
    let heard_elsewhere = 0;
    const server = createServer((incoming, answer) => {
      let body = "";
      incoming.on("data", (chunk: Buffer) => {
        body += chunk.toString();
      });
      incoming.on("end", () => {
        if (refuse-- > 0) {
          answer.writeHead(500).end();
          return;
        }
        const { "svc-timestamp": at, "svc-signature": given } = incoming.headers;
        const signed = given === signature(secret, Number(at), body);
        const { events } = JSON.parse(body) as { events: { status: string }[] };
        if (incoming.url === "/hook") received.push(...events.map(({ status }) => ({ status, signed })));
        else heard_elsewhere += events.length;
        answer.end("ok");
      });
    });
    await new Promise<void>((resolve) => server.listen(0, "127.0.0.1", resolve));
    t.after(() => server.close());
    const { create, ask, wait } = await bench(t);
    const base_url = `http://127.0.0.1:${(server.address() as AddressInfo).port}`;
    const url = `${base_url}/hook`;
    const made = await ask("POST /v1/orgs/personal/webhooks", { body: { url, app_name: "web" } });
    assert.equal(made.status, 201);
    secret = made.body.secret;
    const { id } = (await create()).body;
    await wait(id, "started");
    await until("all have arrived", () => received.length >= 3);
    assert.deepEqual(
      received.map(({ status }) => status),
      ["created", "starting", "started"],
    );
    assert.ok(received.every(({ signed }) => signed));
    const [hook] = (await ask("GET /v1/orgs/personal/webhooks")).body.webhooks;
    assert.deepEqual([hook.url, hook.app_name, hook.secret], [url, "web", undefined]);
    assert.equal((await ask(`DELETE /v1/orgs/personal/webhooks/${made.body.id}`)).status, 204);
    assert.equal((await ask(`DELETE /v1/orgs/personal/webhooks/${made.body.id}`)).status, 404);
    // When a later webhook has heard of a second machine, the one that is gone would have, too.
    await ask("POST /v1/orgs/personal/webhooks", { body: { url: `${base_url}/later`, app_name: "web" } });
    await wait((await create()).body.id, "started");
    await until("the later one has heard of it", () => heard_elsewhere >= 3);
    assert.equal(received.length, 3);
    for (const bad of ["ftp://x", "x", "http://user:pw@x/"]) {
      assert.equal((await ask("POST /v1/orgs/personal/webhooks", { body: { url: bad } })).status, 400, bad);
    }
  });
});
