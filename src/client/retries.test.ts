import assert from "node:assert/strict";
import type { IncomingMessage, RequestListener } from "node:http";
import { suite, test } from "node:test";
import { ClientError } from "./client.ts";
import { clientOf } from "./fixtures.ts";

const app = { body: { app_name: "web" } };
const BUSY = { error: "busy", status: "overloaded", retryable: true };

/** Answers with the errors one after the other, then with an empty object; keeps the requests. */
function failing(errors: readonly [http: number, body: object, headers?: Record<string, string>][]) {
  const requests: IncomingMessage[] = [];
  const answer: RequestListener = (request, response) => {
    const [http, body, headers] = errors[requests.push(request) - 1] ?? [200, {}];
    response.writeHead(http, { "content-type": "application/json", ...headers }).end(JSON.stringify(body));
  };
  const keys = () => requests.map(({ headers }) => headers["idempotency-key"]);
  return { answer, requests, keys };
}

suite("retries of the client", () => {
  test("a POST is retried with one Idempotency-Key, another call has another key, and a GET has none", async (t) => {
    const { answer, keys } = failing([
      [503, BUSY],
      [502, {}],
    ]);
    const client = await clientOf(t, answer, 3);
    await client.call("POST /v1/apps", app);
    await client.call("POST /v1/apps", app);
    await client.call("GET /v1/apps", {});
    const [first, second, third, other, none] = keys();
    assert.match(String(first), /^[0-9a-f-]{36}$/);
    assert.deepEqual([second, third, none, keys().length], [first, first, undefined, 5]);
    assert.notEqual(other, first);
    await client.call("POST /v1/apps", { ...app, idempotency_key: "mine" });
    assert.equal(keys().at(-1), "mine");
  });

  test("without retries a request is sent once, without a key", async (t) => {
    const { answer, keys } = failing([[503, BUSY]]);
    await assert.rejects((await clientOf(t, answer)).call("POST /v1/apps", app), { http: 503, message: "busy" });
    assert.deepEqual(keys(), [undefined]);
  });

  test("an error that a retry cannot help is thrown at once", async (t) => {
    const { answer, requests } = failing([
      [422, { error: "taken", status: "name_taken", retryable: false }],
      [503, { error: "full", status: "storage_full", retryable: false }],
    ]);
    const client = await clientOf(t, answer, 5);
    await assert.rejects(client.call("POST /v1/apps", app), { http: 422 });
    await assert.rejects(client.call("POST /v1/apps", app), { http: 503 });
    assert.equal(requests.length, 2);
  });

  test("the last error is thrown when the retries are used up", async (t) => {
    const { answer, requests } = failing([
      [503, BUSY],
      [503, BUSY],
      [429, { ...BUSY, error: "slower" }],
    ]);
    await assert.rejects((await clientOf(t, answer, 2)).call("GET /v1/apps", {}), { http: 429, message: "slower" });
    assert.equal(requests.length, 3);
  });

  test("a retry waits as long as Retry-After says, and an abort ends the wait", { timeout: 20_000 }, async (t) => {
    const { answer, requests } = failing([
      [429, BUSY, { "retry-after": "1" }],
      [200, {}],
      [503, BUSY, { "retry-after": "10" }],
    ]);
    const client = await clientOf(t, answer, 1);
    const before = performance.now();
    await client.call("GET /v1/apps", {});
    assert.ok(performance.now() - before >= 990, `${performance.now() - before} ms`);
    const ended = client.call("GET /v1/apps", { signal: AbortSignal.timeout(50) });
    await assert.rejects(ended, (thrown) => thrown instanceof ClientError && thrown.retry_after_s === 10);
    assert.equal(requests.length, 3);
  });
});
