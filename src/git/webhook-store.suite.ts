import assert from "node:assert/strict";
import { suite, test } from "node:test";
import type { Delivery, GitWebhook, GitWebhookStore } from "./webhook-store.ts";

const aWebhook = (id: string, change: Partial<GitWebhook> = {}): GitWebhook => ({
  id,
  app_id: "a1",
  repository: "https://git.example.com/acme/shop.git",
  username: "",
  password: null,
  secret: Uint8Array.of(1, 2),
  token: Uint8Array.of(3),
  token_id: "t1",
  created_by: "first start",
  created_at: 5,
  ...change,
});

const aDelivery = (id: string, change: Partial<Delivery> = {}): Delivery => ({
  id,
  webhook_id: "w1",
  node_id: "n1",
  delivery: "d",
  digest: `digest of ${id}`,
  event: "push",
  branch: "main",
  action: "push",
  state: "queued",
  result: "",
  git_commit: null,
  received_at: 1,
  ended_at: null,
  ...change,
});

const MOST = { open: 10, keep: 10 };
const plain = ({ password, secret, token, ...rest }: GitWebhook) => ({
  ...rest,
  bytes: [password, secret, token].map((bytes) => bytes && [...bytes]),
});

/** What every GitWebhookStore must do. `open` gives an empty one in which the apps a1 and a2 exist. */
export function gitWebhookStoreSuite(
  name: string,
  open: () => Promise<{ store: GitWebhookStore; close(): Promise<void> }>,
  skip?: string,
): void {
  suite(`Git webhook store: ${name}`, { skip }, () => {
    test("webhooks are kept per app, up to a limit, and go with their deliveries", async () => {
      const { store, close } = await open();
      const first = aWebhook("w1", { password: Uint8Array.of(9) });
      assert.equal(await store.insert(first, 2), true);
      assert.equal(await store.insert(aWebhook("w0"), 2), true);
      assert.equal(await store.insert(aWebhook("w2"), 2), false);
      assert.equal(await store.insert(aWebhook("w2", { app_id: "gone" }), 2), false);
      const found = await store.find("w1");
      assert.deepEqual(found && plain(found), plain(first));
      assert.deepEqual(
        (await store.list("a1")).map(({ id }) => id),
        ["w0", "w1"],
      );
      assert.deepEqual(await store.list("a2"), []);
      await store.receive(aDelivery("d1"), MOST);
      assert.equal(await store.delete("a2", "w1"), false);
      assert.equal(await store.delete("a1", "w1"), true);
      assert.equal(await store.find("w1"), undefined);
      assert.deepEqual(await store.unfinished("n1"), []);
      await close();
    });

    test("an event is taken once, again after a failure, and not when too many wait", async () => {
      const { store, close } = await open();
      await store.insert(aWebhook("w1"), 2);
      const first = aDelivery("d1");
      assert.equal(await store.receive(first, MOST), "new");
      assert.equal(await store.receive({ ...first, id: "d9", received_at: 9 }, MOST), "repeated");
      assert.equal(await store.receive(aDelivery("d2", { received_at: 2 }), { open: 1, keep: 10 }), "full");
      assert.equal(await store.receive(aDelivery("d2", { received_at: 2, node_id: "n2" }), MOST), "new");
      assert.deepEqual(
        (await store.unfinished("n1")).map((one) => ({ ...one })),
        [first],
      );
      await store.change("d1", { state: "done", result: "deployed", git_commit: "c", ended_at: 7 });
      assert.equal(await store.receive(first, MOST), "repeated");
      await store.change("d1", { state: "failed" });
      assert.equal(await store.receive({ ...first, id: "d9", received_at: 9 }, MOST), "new");
      const [newest, other] = await store.deliveries("w1", 10);
      assert.deepEqual([newest?.id, newest?.state, newest?.ended_at, other?.id], ["d1", "queued", null, "d2"]);
      assert.equal((await store.deliveries("w1", 1)).length, 1);
      for (const id of ["d1", "d2"]) await store.change(id, { state: "done", ended_at: 9 });
      await store.receive(aDelivery("d3", { received_at: 10 }), { open: 10, keep: 2 });
      assert.deepEqual(
        (await store.deliveries("w1", 10)).map(({ id }) => id),
        ["d3", "d1"],
      );
      await close();
    });
  });
}
