import assert from "node:assert/strict";
import { suite, test } from "node:test";
import type { Webhook, WebhookStore } from "./webhook-store.ts";

/** What every WebhookStore must do. `open` gives an empty one in which organization o1 has the app a1. */
export function webhookStoreSuite(
  name: string,
  open: () => Promise<{ store: WebhookStore; close(): Promise<void> }>,
  skip?: string,
): void {
  suite(`webhook store: ${name}`, { skip }, () => {
    test("webhooks are stored up to the limit, keep their delivery position, and are deleted", async () => {
      const { store, close } = await open();
      const one: Webhook = {
        id: "w1",
        org_id: "o1",
        app_id: "a1",
        url: "http://127.0.0.1:1/",
        secret: Uint8Array.of(1, 2),
        created_at: 5,
        token_id: "t1",
        position: 0,
        failures: 0,
        retry_at: null,
        last_error: null,
      };
      assert.equal(await store.insertWebhook(one, 2), true);
      assert.equal(await store.insertWebhook({ ...one, id: "w2", app_id: null }, 2), true);
      assert.equal(await store.insertWebhook({ ...one, id: "w3" }, 2), false);
      const progress = { id: "w1", position: 7, failures: 2, retry_at: 99, last_error: "refused" };
      assert.equal(await store.putProgress(progress), true);
      const [first] = await store.webhooks("o1");
      assert.deepEqual({ ...first, secret: [...(first?.secret ?? [])] }, { ...one, ...progress, secret: [1, 2] });
      assert.equal((await store.webhooks()).length, 2);
      const claim = (runner: string, now: number) => store.claim("w1", { runner, now, until: now + 10 });
      assert.equal((await claim("a", 100))?.position, 7, "who claims it knows how far it got");
      assert.equal(await claim("b", 109), undefined, "it is another's");
      assert.ok(await claim("a", 105), "and stays so while it is renewed");
      assert.equal(await claim("b", 114), undefined);
      assert.equal((await claim("b", 115))?.id, "w1", "one that ran out is anybody's");
      assert.deepEqual(await store.webhooks("o2"), []);
      assert.equal(await store.deleteWebhook("o2", "w1"), false);
      assert.equal(await store.deleteWebhook("o1", "w1"), true);
      assert.equal(await store.putProgress(progress), false);
      await close();
    });
  });
}
