import assert from "node:assert/strict";
import type { RequestListener } from "node:http";
import { suite, test } from "node:test";
import { ClientError } from "./client.ts";
import { clientOf } from "./fixtures.ts";

suite("API client", () => {
  test("leaving a stream early closes its connection", { timeout: 10_000 }, async (t) => {
    const closed = Promise.withResolvers<string | undefined>();
    const client = await clientOf(t, (request, response) => {
      response.writeHead(200, { "content-type": "text/event-stream" }).write('data: {"n":1}\n\n');
      response.on("close", () => closed.resolve(request.headers["x-mine"] as string));
    });
    const input = { params: { org_slug: "personal" }, query: {}, headers: { "x-mine": "kept" } };
    for await (const message of client.stream("GET /v1/orgs/:org_slug/events", input)) {
      assert.deepEqual(message, { n: 1 });
      break;
    }
    assert.equal(await closed.promise, "kept");
  });

  test("a stream message may contain U+2028 and other line separators", async (t) => {
    const messages = ["\u2028<b>", "\u2029", "\u0085", "data: {}", "\r\n\n"].map((message) => ({ message }));
    const client = await clientOf(t, (_request, response) => {
      response.writeHead(200, { "content-type": "text/event-stream" });
      response.end(messages.map((one) => `event: line\ndata: ${JSON.stringify(one)}\n\n`).join(""));
    });
    const input = { params: { app_name: "web" }, query: { follow: true } };
    const seen: unknown[] = [];
    for await (const message of client.stream("GET /v1/apps/:app_name/logs", input)) seen.push(message);
    assert.deepEqual(seen, messages);
  });

  test("a stream that is cut off is an error of the client, and one that is aborted is not", async (t) => {
    const answer: RequestListener = (request, response) => {
      response.writeHead(200, { "content-type": "text/event-stream" }).write('data: {"n":1}\n\ndata: {"n');
      if (request.headers["x-cut"]) setTimeout(() => response.destroy(), 20);
    };
    const client = await clientOf(t, answer);
    const input = { params: { org_slug: "personal" }, query: {} };
    const read = async (more: { headers?: Record<string, string>; signal?: AbortSignal }, seen: () => void) => {
      for await (const message of client.stream("GET /v1/orgs/:org_slug/events", { ...input, ...more })) {
        assert.deepEqual(message, { n: 1 });
        seen();
      }
    };
    let messages = 0;
    await assert.rejects(
      read({ headers: { "x-cut": "1" } }, () => messages++),
      (thrown) => {
        assert(thrown instanceof ClientError, String(thrown));
        assert.match(thrown.message, /^the answer from http:\/\/127\.0\.0\.1:\d+ broke off$/);
        return thrown.http === 0 && messages === 1;
      },
    );
    const stop = new AbortController();
    await assert.rejects(
      read({ signal: stop.signal }, () => stop.abort()),
      { name: "AbortError" },
    );
  });

  test("a response cut off in the middle is retried, then reported with a clear error", async (t) => {
    let requests = 0;
    const answer: RequestListener = (_, response) => {
      response.writeHead(200, { "content-type": "application/json", "content-length": 11 }).write('{"ok"');
      if (++requests === 2) response.end(":true}");
      else setTimeout(() => response.destroy(), 20);
    };
    assert.deepEqual(await (await clientOf(t, answer, 1)).call("GET /healthz", {}), { ok: true });
    const hasty = await clientOf(t, answer);
    await assert.rejects(hasty.call("GET /healthz", {}), (thrown) => {
      assert(thrown instanceof ClientError);
      assert.match(thrown.message, /^the answer from http:\/\/127\.0\.0\.1:\d+ broke off$/);
      return thrown.http === 0;
    });
  });

  test("a list is fetched page by page, and only as far as it is consumed", async (t) => {
    const requested: string[] = [];
    const client = await clientOf(t, (request, response) => {
      requested.push(request.url ?? "");
      const cursor = new URL(request.url ?? "/", "http://x").searchParams.get("cursor");
      const page = Number(cursor ?? 0);
      const next = page < 2 ? { "svc-next-cursor": String(page + 1) } : {};
      response.writeHead(200, { "content-type": "application/json", ...next });
      response.end(JSON.stringify({ apps: [{ name: `a${page}` }, { name: `b${page}` }], total_apps: 6 }));
    });
    const names: string[] = [];
    for await (const { name } of client.list("GET /v1/apps", { query: { org_slug: "acme", limit: 2 } }))
      names.push(name);
    assert.deepEqual(names, ["a0", "b0", "a1", "b1", "a2", "b2"]);
    assert.deepEqual(requested, [
      "/v1/apps?limit=2&org_slug=acme",
      "/v1/apps?limit=2&org_slug=acme&cursor=1",
      "/v1/apps?limit=2&org_slug=acme&cursor=2",
    ]);
    for await (const page of client.pages("GET /v1/apps", {})) {
      assert.equal(page.length, 2);
      break;
    }
    assert.deepEqual(requested.slice(3), ["/v1/apps?limit=500"]);
  });

  test("an upload ends when its signal aborts", { timeout: 10_000 }, async (t) => {
    const client = await clientOf(t, () => {});
    const upload = new ReadableStream<Uint8Array>();
    const ended = client.upload("POST /v1/images/import", {
      query: { name: "web:1" },
      upload,
      signal: AbortSignal.timeout(100),
    });
    await assert.rejects(ended, ClientError);
  });
});
