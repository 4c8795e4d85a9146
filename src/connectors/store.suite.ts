import assert from "node:assert/strict";
import { suite, test } from "node:test";
import type { ConnectorStore, PendingAuthorization } from "./store.ts";
import type { AuditEntry, Connection, Usage } from "./types.ts";

const aConnection = (more: Partial<Connection> = {}): Connection => ({
  id: "c1",
  org_id: "o1",
  provider: "github",
  connection_type: "api_key",
  provider_account_id: "key-1",
  provider_account_name: "GitHub",
  provider_info: { base_url: "https://x.example" },
  scopes: "",
  token_expires_at: null,
  inserted_at: 1,
  updated_at: 1,
  user_id: "u",
  maker_expires_at: null,
  access_policy: { allow_all: true },
  credential: Uint8Array.of(1, 2),
  revision: 1,
  ...more,
});

const line = (id: string, more: Partial<AuditEntry> = {}): AuditEntry => ({
  id,
  org_id: "o1",
  at: 10,
  connection_id: "c1",
  action: "call",
  actor: "machine web-1",
  method: "GET",
  path: "/user",
  status: 200,
  rule: null,
  ...more,
});

const plain = (connection: Connection | undefined) =>
  connection && { ...connection, credential: [...connection.credential] };

/** What every ConnectorStore must do. `open` gives an empty one with the organization o1. */
export function connectorStoreSuite(
  name: string,
  open: () => Promise<{ store: ConnectorStore; close(): Promise<void> }>,
  skip?: string,
): void {
  suite(`connector store: ${name}`, { skip }, () => {
    test("connectors are stored up to the limit, updated by revision and deleted, each with an audit entry", async () => {
      const { store, close } = await open();
      const one = aConnection();
      assert.equal(await store.insertConnection(one, line("1", { action: "created" }), 2), "inserted");
      assert.equal(await store.insertConnection(one, line("2"), 2), "exists");
      const other = aConnection({ id: "c2", provider: "slack", inserted_at: 2 });
      assert.equal(await store.insertConnection(other, line("3", { connection_id: "c2" }), 2), "inserted");
      assert.equal(await store.insertConnection(aConnection({ id: "c3" }), line("4"), 2), "limit");
      assert.equal(await store.insertConnection(aConnection({ id: "c3", org_id: "o9" }), line("4"), 2), "no_org");
      assert.deepEqual(plain(await store.findConnection("c1")), plain(one));
      assert.deepEqual(
        (await store.connections("o1")).map(({ id }) => id),
        ["c2", "c1"],
      );
      assert.deepEqual(
        (await store.connections("o1", "slack")).map(({ id }) => id),
        ["c2"],
      );
      assert.deepEqual(await store.connections("o2"), []);

      const changed = { ...one, access_policy: {}, token_expires_at: 9, credential: Uint8Array.of(3), revision: 2 };
      assert.equal(await store.putConnection(changed, line("5", { action: "policy" })), true);
      assert.equal(await store.putConnection(changed, line("6", { action: "policy" })), false);
      assert.deepEqual(plain(await store.findConnection("c1")), plain(changed));
      assert.equal(await store.deleteConnection("c1", line("7", { action: "deleted" })), true);
      assert.equal(await store.deleteConnection("c1", line("8", { action: "deleted" })), false);
      const lines = await store.audit({ org_id: "o1", limit: 10 });
      assert.deepEqual(
        lines.map(({ id }) => id),
        ["7", "5", "3", "1"],
      );
      await close();
    });

    test("audit entries are filtered and expire by age; usage counters add up", async () => {
      const { store, close } = await open();
      await store.insertConnection(aConnection(), line("0", { at: 1 }), 2);
      const counted: Usage = {
        connection_id: "c1",
        calls: 2,
        denials: 1,
        failures: 0,
        bytes_sent: 5,
        bytes_received: 7,
        last_used_at: 50,
      };
      await store.record([line("a"), line("b", { action: "denied", rule: "default" })], [counted]);
      await store.record(
        [line("c")],
        [
          { ...counted, last_used_at: null },
          { ...counted, connection_id: "gone" },
        ],
      );
      assert.deepEqual(
        { ...(await store.usage("c1")) },
        {
          connection_id: "c1",
          calls: 4,
          denials: 2,
          failures: 0,
          bytes_sent: 10,
          bytes_received: 14,
          last_used_at: 50,
        },
      );
      assert.equal(await store.usage("gone"), undefined);
      const ids = async (filter: object) =>
        (await store.audit({ org_id: "o1", limit: 10, ...filter })).map(({ id }) => id);
      assert.deepEqual(await ids({}), ["c", "b", "a", "0"]);
      assert.deepEqual(await ids({ limit: 2, before: "c" }), ["b", "a"]);
      assert.deepEqual(await ids({ action: "denied" }), ["b"]);
      assert.deepEqual(await ids({ connection_id: "c2" }), []);
      await store.purgeAudit(5);
      assert.deepEqual(await ids({}), ["c", "b", "a"]);
      await close();
    });

    test("an OAuth authorization is completed once, by the organization that began it", async () => {
      const { store, close } = await open();
      const pending: PendingAuthorization = {
        state: "s1",
        org_id: "o1",
        provider: "github",
        redirect_uri: "https://x.example",
        scopes: "a,b",
        verifier: Uint8Array.of(7),
        created_at: 100,
      };
      assert.equal(await store.insertPending(pending, 50, 2), true);
      assert.equal(await store.insertPending(pending, 50, 2), false);
      assert.equal(await store.insertPending({ ...pending, state: "s2" }, 50, 2), true);
      assert.equal(await store.insertPending({ ...pending, state: "s3" }, 50, 2), false);
      assert.equal(await store.takePending("o1", "slack", "s1"), undefined);
      assert.equal(await store.takePending("o2", "github", "s1"), undefined);
      const taken = await store.takePending("o1", "github", "s1");
      assert.deepEqual({ ...taken, verifier: [...(taken?.verifier ?? [])] }, { ...pending, verifier: [7] });
      assert.equal(await store.takePending("o1", "github", "s1"), undefined);
      // Old ones make room.
      assert.equal(await store.insertPending({ ...pending, state: "s4", created_at: 300 }, 200, 1), true);
      assert.equal(await store.takePending("o1", "github", "s2"), undefined);
      await close();
    });
  });
}
