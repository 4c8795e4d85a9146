import assert from "node:assert/strict";
import { suite, test } from "node:test";
import type { AlertStore } from "../store.ts";
import type { NotificationStore } from "./store.ts";
import type { Notification, Silence } from "./types.ts";

/** What every NotificationStore must do. `open` gives an empty one in which there is the organization o1. */
export function notificationStoreSuite(
  name: string,
  open: () => Promise<{ store: NotificationStore & Pick<AlertStore, "claim">; close(): Promise<void> }>,
  skip?: string,
): void {
  suite(`notification store: ${name}`, { skip }, () => {
    test("routes and receivers are stored, replaced and deleted", async () => {
      const { store, close } = await open();
      const config = { org_id: "o1", content: Uint8Array.of(1, 2), token_id: "t1", updated_at: 1 };
      assert.equal(await store.config("o1"), undefined);
      assert.equal(await store.putConfig(config), true);
      assert.equal(
        await store.putConfig({ ...config, content: Uint8Array.of(3), token_id: null, updated_at: 2 }),
        true,
      );
      assert.equal(await store.putConfig({ ...config, org_id: "o9" }), false, "there is no such organization");
      const found = await store.config("o1");
      assert.deepEqual([...(found?.content ?? [])], [3]);
      assert.deepEqual([found?.token_id, found?.updated_at], [null, 2]);
      assert.equal(await store.deleteConfig("o1"), true);
      assert.equal(await store.deleteConfig("o1"), false);
      await close();
    });

    test("silences are stored up to the limit, end once, and are forgotten", async () => {
      const { store, close } = await open();
      const one: Silence = {
        id: "s1",
        org_id: "o1",
        matchers: ['a="b"'],
        starts_at: 5,
        ends_at: 100,
        created_by: "me",
        comment: "why",
        updated_at: 5,
      };
      assert.equal(await store.putSilence(one, 1, 10), true);
      assert.equal(await store.putSilence(one, 1, 10), true, "the same again is the same");
      assert.equal(await store.putSilence({ ...one, id: "s2" }, 1, 10), false);
      assert.deepEqual(await store.silences("o1", 10), [one]);
      assert.deepEqual(await store.silences("o2", 10), []);
      assert.equal(await store.expireSilence("o2", "s1", 20), false);
      assert.equal(await store.expireSilence("o1", "s1", 20), true);
      assert.equal(await store.expireSilence("o1", "s1", 21), false);
      assert.deepEqual(await store.silences("o1", 20), []);
      assert.equal(await store.putSilence({ ...one, id: "s2" }, 1, 30), true, "one that ended does not count");
      await store.forget(50);
      assert.deepEqual(
        (await store.silences("o1", 0)).map(({ id }) => id),
        ["s2"],
      );
      await close();
    });

    test("groups and notifications are stored together under the claim, and delivered once", async () => {
      const { store, close } = await open();
      const claim = { runner: "r", now: 0, until: 10 };
      const group = { key: "g", next_ms: 1, sent_ms: 0, firing: ["f"], resolved: [] };
      const fields = { org_id: "o1", receiver: "all", integration: 0, group_key: "g", body: "{}", attempts: 0 };
      const waiting = (id: string, at: number): Notification => ({
        ...fields,
        id,
        created_at: at,
        retry_at: at,
        last_error: null,
        delivered_at: null,
      });
      const changes = { groups: [group], removed: [], notifications: [waiting("n1", 5), waiting("n2", 6)] };
      assert.equal(await store.putGroups("o1", changes, claim), false, "no process has the claim");
      assert.deepEqual(await store.groups("o1"), []);
      assert.deepEqual(await store.notifications("o1", 10), []);
      assert.equal(await store.claim("o1", claim), true);
      assert.equal(await store.putGroups("o1", changes, claim), true);
      assert.deepEqual(await store.groups("o1"), [group]);
      const first = (await store.pending("o1", 1)).map((row) => ({ ...row }));
      assert.deepEqual(first, [waiting("n1", 5)]);
      await store.putDelivery({ id: "n1", attempts: 1, retry_at: null, last_error: null, delivered_at: 7 });
      await store.putDelivery({ id: "n2", attempts: 2, retry_at: 9, last_error: "refused", delivered_at: null });
      assert.deepEqual(
        (await store.pending("o1", 10)).map(({ id, attempts }) => [id, attempts]),
        [["n2", 2]],
      );
      assert.deepEqual(
        (await store.notifications("o1", 10)).map(({ id, delivered_at }) => [id, delivered_at]),
        [
          ["n2", null],
          ["n1", 7],
        ],
      );
      assert.equal(await store.putGroups("o1", { groups: [], removed: ["g"], notifications: [] }, claim), true);
      assert.deepEqual(await store.groups("o1"), []);
      await store.forget(6);
      assert.deepEqual(
        (await store.notifications("o1", 10)).map(({ id }) => id),
        ["n2"],
      );
      await close();
    });
  });
}
