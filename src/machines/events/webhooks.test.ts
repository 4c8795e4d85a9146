import assert from "node:assert/strict";
import { createServer } from "node:http";
import type { AddressInfo } from "node:net";
import { suite, test } from "node:test";
import { silentLog } from "#core/log.ts";
import { Sealer } from "#core/sealer.ts";
import { MachineHarness } from "../machine-harness.fixtures.ts";
import type { Webhook, WebhookStore } from "./webhook-store.ts";
import { Webhooks } from "./webhooks.ts";

const RETRY_MS = 60_000;

/** Keeps one webhook, which is always ours to send. */
function keeping(hook: Webhook): WebhookStore {
  let stored = hook;
  return {
    webhooks: async () => [stored],
    insertWebhook: async () => false,
    deleteWebhook: async () => false,
    claim: async () => stored,
    async putProgress(progress) {
      stored = { ...stored, ...progress };
      return true;
    },
  };
}

suite("webhooks", () => {
  test("a webhook that was backing off at shutdown is retried after the next start, when it is due", async (t) => {
    const harness = await MachineHarness.open();
    await harness.create({}, { skip_launch: true });
    const arrived = Promise.withResolvers<string>();
    let requests = 0;
    const server = createServer((request, response) => {
      requests++;
      arrived.resolve(String(request.headers["svc-webhook-id"]));
      response.end();
    });
    await new Promise<void>((resolve) => {
      server.listen(0, "127.0.0.1", resolve);
    });
    t.after(() => server.close());
    const sealer = new Sealer(Buffer.alloc(32, 7));
    const store = keeping({
      id: "w1",
      org_id: "o1",
      app_id: null,
      url: `http://127.0.0.1:${(server.address() as AddressInfo).port}/`,
      secret: sealer.seal("webhook:w1", "whsec_1"),
      created_at: harness.clock.now(),
      token_id: null,
      position: 0,
      failures: 3,
      retry_at: harness.clock.now() + RETRY_MS,
      last_error: "refused",
    });
    const { events, bus } = harness.module;
    const allow_private = [`127.0.0.1:${(server.address() as AddressInfo).port}`];
    const shared = {
      clock: harness.clock,
      log: silentLog,
      allow_private,
      tokens: { fallen: async () => undefined, isFullAccess: async () => false },
    };
    const webhooks = new Webhooks({ store, events, bus, sealer, ...shared, runner: "a" });
    await webhooks.start();
    t.after(() => webhooks.close());
    await harness.clock.advance(RETRY_MS - 1000);
    assert.equal(requests, 0, "it backs off");
    await harness.clock.advance(1000);
    const late = AbortSignal.timeout(5000);
    late.addEventListener("abort", () => arrived.reject(new Error("nothing arrived")));
    assert.equal(await arrived.promise, "w1");
    await harness.close();
  });
});
