import assert from "node:assert/strict";
import { once } from "node:events";
import { createServer } from "node:http";
import type { AddressInfo } from "node:net";
import { test } from "node:test";
import { gzipSync } from "node:zlib";
import { systemClock } from "#core/clock.ts";
import { ApiError } from "#core/errors.ts";
import { PUSH_LIMITS } from "./limits.ts";
import { PushReceiver } from "./receiver.ts";

const DONE = { samples: 1, dropped: 0, problems: [], problem_count: 0 };

test("what compressed bodies unpack to counts as long as it is held, for each organization (org_push_bytes)", async (t) => {
  const held: (() => void)[] = [];
  const receiver = new PushReceiver({
    engine: () => ({
      append: async () => DONE,
      importRemoteWrite: async () => DONE,
      importText: () =>
        new Promise((resolve) => {
          held.push(() => resolve(DONE));
        }),
    }),
    guard: { admit: async (_, __, { org_slug = "" }) => ({ org: { id: org_slug, slug: org_slug } }) },
    clock: systemClock,
  });
  const server = createServer((request, response) => {
    receiver
      .importPrometheus({
        request,
        response,
        caller: { token_id: "t", name: "t" },
        request_id: "r",
        takeOver: () => {},
        whileAllowed: () => new AbortController().signal,
      })
      .catch((thrown: unknown) => response.writeHead(500).end(thrown instanceof ApiError ? thrown.code : "internal"));
  }).listen(0, "127.0.0.1");
  await once(server, "listening");
  t.after(() => server.close().closeAllConnections());
  const { port } = server.address() as AddressInfo;
  const body = gzipSync(Buffer.alloc(PUSH_LIMITS.push_bytes, "#"));
  assert.ok(body.length < PUSH_LIMITS.push_bytes / 100);
  const push = async (org: string): Promise<string> => {
    const url = `http://127.0.0.1:${port}/prometheus/${org}/api/v1/import/prometheus`;
    const response = await fetch(url, { method: "POST", headers: { "content-encoding": "gzip" }, body });
    return `${response.status} ${await response.text()}`;
  };
  const answers = Array.from({ length: 8 }, () => push("acme"));
  const fits = Math.floor(PUSH_LIMITS.org_push_bytes / PUSH_LIMITS.push_bytes) - 1;
  // Every body is either refused or stored, and those that are stored are not answered yet.
  const refused: string[] = [];
  for (const answer of answers) answer.then((text) => refused.push(text)).catch(() => {});
  while (held.length + refused.length < answers.length) await new Promise((resolve) => setImmediate(resolve));
  assert.equal(held.length, fits);
  assert.deepEqual([...new Set(refused)], ["500 rate_limited"]);
  const other = push("globex");
  while (held.length === fits) await new Promise((resolve) => setImmediate(resolve));
  for (const done of held) done();
  assert.equal(await other, "204 ");
  assert.equal((await Promise.all(answers)).filter((text) => text === "204 ").length, fits);
});
