/** Runs every store suite against every database. */
import assert from "node:assert/strict";
import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { after, test } from "node:test";
import { notificationStoreSuite } from "#alerts/notify/store.suite.ts";
import { alertStoreSuite } from "#alerts/store.suite.ts";
import { anApp, aRelease } from "#apps/fixtures.ts";
import { releaseStoreSuite } from "#apps/release-store.suite.ts";
import { appStoreSuite } from "#apps/store.suite.ts";
import { anOrg, aToken } from "#auth/fixtures.ts";
import { authStoreSuite } from "#auth/store.suite.ts";
import { buildStoreSuite } from "#builds/store.suite.ts";
import { connectorStoreSuite } from "#connectors/store.suite.ts";
import { systemClock } from "#core/clock.ts";
import { secretKeyStoreSuite } from "#fly/secret-keys/store.suite.ts";
import { previewStoreSuite } from "#git/preview-store.suite.ts";
import { gitStoreSuite } from "#git/store.suite.ts";
import { gitWebhookStoreSuite } from "#git/webhook-store.suite.ts";
import { hostStoreSuite } from "#hosts/store.suite.ts";
import { idempotencyStoreSuite } from "#http/idempotency.suite.ts";
import { keyStoreSuite } from "#identity/store.suite.ts";
import { webhookStoreSuite } from "#machines/events/webhook-store.suite.ts";
import { aMachine } from "#machines/fixtures.ts";
import { drainStoreSuite } from "#machines/logs/drains/store.suite.ts";
import { networkStoreSuite } from "#machines/private-networks.suite.ts";
import { runStoreSuite } from "#machines/runs/store.suite.ts";
import { importedImagesSuite } from "#machines/runtime/imported-images.suite.ts";
import { machineSearchSuite } from "#machines/search.suite.ts";
import { statusReadsSuite } from "#machines/status-reads.suite.ts";
import { machineStoreSuite } from "#machines/store.suite.ts";
import { peerStoreSuite } from "#network/peer-store.suite.ts";
import { addressStoreSuite } from "#network/store.suite.ts";
import { proxyStoreSuite } from "#proxy/store.suite.ts";
import { registryStoreSuite } from "#registry/store.suite.ts";
import { leaseStoreSuite } from "#replication/election/lease-store.suite.ts";
import { RowLeases } from "#replication/election/row-leases.ts";
import { spriteStoreSuite } from "#sprites/store.suite.ts";
import { volumeStoreSuite } from "#volumes/store.suite.ts";
import { postgresMissing, startPostgres } from "../../test/postgres.ts";
import { databaseSuite, type OpenDatabase } from "./database.suite.ts";
import type { Database, Value } from "./database.ts";
import { migrate } from "./migrate.ts";
import { MIGRATIONS } from "./migrations.ts";
import { openPostgres } from "./postgres/database.ts";
import { sqlAddressStore } from "./sql/addresses.ts";
import { sqlAlertStore } from "./sql/alerts.ts";
import { sqlAppStore } from "./sql/apps.ts";
import { sqlAuthStore } from "./sql/auth.ts";
import { sqlBuildStore } from "./sql/builds.ts";
import { sqlConnectorStore } from "./sql/connectors.ts";
import { sqlLeaseRows } from "./sql/db-leases.ts";
import { sqlGitStore } from "./sql/git.ts";
import { sqlGitWebhookStore } from "./sql/git-webhooks.ts";
import { sqlHostStore } from "./sql/hosts.ts";
import { sqlIdempotencyStore } from "./sql/idempotency.ts";
import { sqlKeyStore } from "./sql/identity.ts";
import { sqlImportedImages } from "./sql/imported-images.ts";
import { sqlDrainStore } from "./sql/log-drains.ts";
import { INSERT_MACHINE, insertArgs } from "./sql/machine-rows.ts";
import { sqlMachineStore } from "./sql/machines.ts";
import { sqlNotificationStore } from "./sql/notifications.ts";
import { sqlPeerStore } from "./sql/peers.ts";
import { sqlPreviewStore } from "./sql/previews.ts";
import { sqlNetworkStore } from "./sql/private-networks.ts";
import { sqlProxyStore } from "./sql/proxy.ts";
import { sqlRegistryStore } from "./sql/registry.ts";
import { sqlReleaseStore } from "./sql/releases.ts";
import { sqlSecretKeyStore } from "./sql/secret-keys.ts";
import { sqlSpriteStore } from "./sql/sprites.ts";
import { sqlVolumeStore } from "./sql/volumes.ts";
import { sqlWebhookStore } from "./sql/webhooks.ts";
import { openSqlite } from "./sqlite/database.ts";
import { inlineSqlite } from "./sqlite/inline.ts";

test("a page of a list reads its index in order, from any cursor", async () => {
  const database = inlineSqlite();
  await migrate(database);
  const plans: string[] = [];
  const explained: Database = {
    ...database,
    read: async <Row>(sql: string, args?: readonly Value[]) => {
      const plan = await database.read<{ detail: string }>(`EXPLAIN QUERY PLAN ${sql}`, args);
      plans.push(plan.map(({ detail }) => detail).join("; "));
      return [] as Row[];
    },
  };
  const after = [1, "m1"] as const;
  await sqlMachineStore(explained).list("a1", { page: { after, limit: 9 } });
  await sqlMachineStore(explained).listOrg("o1", { page: { after, limit: 9 } });
  await sqlVolumeStore(explained).list("a1", { page: { after, limit: 9 } });
  await sqlAppStore(explained).apps("o1", { after: ["a"], limit: 9 });
  await sqlAuthStore(explained).tokens("o1", { after: ["a"], limit: 9 });
  await sqlMachineStore(explained).log({ org_id: "o1", after: 5, limit: 9 });
  await sqlMachineStore(explained).log({ org_id: "o1", app_id: "a1", after: 5, limit: 9 });
  await sqlMachineStore(explained).events("m1", { before: 5, limit: 9 });
  assert.equal(plans.length, 8);
  const shares = plans.length;
  await sqlMachineStore(explained).oldestOfEach({ org_id: "o1", page: { limit: 9 } }, { limit: 9 });
  await sqlRegistryStore(explained).tagsOfEach("o1", { last: "a", limit: 9 }, 9);
  for (const plan of plans.splice(shares))
    assert.match(plan, /SEARCH (m|t) USING (COVERING )?INDEX \w+ \([^)]*=\?[^)]*<\?\)/, plan);
  for (const plan of plans) {
    assert.match(plan, /^SEARCH \w+ USING (COVERING )?INDEX \w+ \(.*[<>]/, plan);
    assert.doesNotMatch(plan, /TEMP B-TREE/);
  }
  await sqlMachineStore(explained).listOrg("o1", { order: "created", search: ["web"], page: { after, limit: 9 } });
  const keys = /SEARCH s USING INDEX machine_search_list \(org_id=\? AND \(created_at,machine_id\)>\(\?,\?\)\)/;
  assert.match(plans.at(-1) ?? "", keys);
  assert.match(plans.at(-1) ?? "", /SCAN found; SEARCH m USING .*; SEARCH v USING/);
  await database.close();
});

const dir = mkdtempSync(join(tmpdir(), "hangar-stores-"));
let files = 0;
let server: ReturnType<typeof startPostgres> | undefined;

after(async () => {
  await (await server)?.stop();
  rmSync(dir, { recursive: true, force: true });
});

const DATABASES: { name: string; open: OpenDatabase; skip?: string | undefined }[] = [
  { name: "sqlite", open: () => openSqlite(join(dir, `${++files}.db`)) },
  { name: "inline", open: async () => inlineSqlite() },
  {
    name: "postgres",
    skip: postgresMissing(),
    open: async () => {
      server ??= startPostgres();
      return openPostgres(await (await server).database());
    },
  },
];

for (const { name, open, skip } of DATABASES) {
  databaseSuite(name, open, skip);

  test(`host names from an older version stay verified: ${name}`, { skip }, async () => {
    const database = await open();
    const at = MIGRATIONS.findIndex((one) => /proof of host names/.test(one.name));
    await migrate(database, MIGRATIONS.slice(0, at));
    await sqlAuthStore(database).insertOrg(anOrg({ id: "o1", slug: "o1" }), 10);
    const rows = [
      {
        sql: "INSERT INTO apps (id, name, org_id, numeric_id, network, secrets_version, created_at) VALUES ('a1', 'a1', 'o1', 1, '', 0, 1)",
      },
      {
        sql: `INSERT INTO certificates (hostname, app_id, kind, state, chain, key, created_at, updated_at)
              VALUES ('www.example.com', 'a1', 'custom', 'ready', 'chain', ?, 5, 6)`,
        args: [Uint8Array.of(1, 2)],
      },
    ];
    assert.ok((await database.write(rows)).ok);
    await migrate(database);
    const [kept] = await sqlProxyStore(database).certificates();
    const { hostname, chain, org_id, proved_at, updated_at } = kept ?? assert.fail("the row is missing");
    assert.deepEqual([hostname, chain, org_id, proved_at, updated_at], ["www.example.com", "chain", "o1", 5, 6]);
    assert.deepEqual([...(kept?.key ?? [])], [1, 2]);
    await database.close();
  });

  test(`machines of an older version are found after the migration, by their images too: ${name}`, {
    skip,
  }, async () => {
    const database = await open();
    const at = MIGRATIONS.findIndex((one) => /text of machines/.test(one.name));
    await migrate(database, MIGRATIONS.slice(0, at));
    await sqlAuthStore(database).insertOrg(anOrg({ id: "o1", slug: "o1" }), 10);
    await sqlHostStore(database).declare([{ id: "0001", region: "local", zone: "0001", cpus: 0, memory_mb: 0 }]);
    const app =
      "INSERT INTO apps (id, name, org_id, numeric_id, network, secrets_version, created_at) VALUES ('a1', 'a1', 'o1', 1, '', 0, 1)";
    const machine = aMachine({ name: "Blue-River" });
    assert.ok((await database.write([{ sql: app }, { sql: INSERT_MACHINE, args: insertArgs(machine) }])).ok);
    await migrate(database);
    const [row] = await database.read<{ text: string }>("SELECT text FROM machine_search");
    const begin = "blue-river 1781949c61e789 web local fdaa:0:1::2 registry.example/web:1";
    assert.ok(row?.text.startsWith(begin), row?.text);
    await database.close();
  });

  const empty = async (): Promise<Database> => {
    const database = await open();
    await migrate(database);
    return database;
  };
  const withOrgs =
    (...ids: string[]) =>
    async (): Promise<Database> => {
      const database = await empty();
      for (const id of ids) await sqlAuthStore(database).insertOrg(anOrg({ id, slug: id }), 10);
      return database;
    };
  const withApps = async (): Promise<Database> => {
    const database = await withOrgs("o1")();
    for (const id of ["a1", "a2"]) await sqlAppStore(database).insertApp(anApp({ id, name: id, org_id: "o1" }), 10);
    return database;
  };
  const withHosts = async (): Promise<Database> => {
    const database = await withApps();
    await sqlHostStore(database).declare([
      { id: "0001", region: "local", zone: "0001", cpus: 0, memory_mb: 0 },
      { id: "0002", region: "local", zone: "0002", cpus: 2, memory_mb: 512 },
    ]);
    return database;
  };
  /** Opens the store for a suite. */
  const over =
    <Store>(begin: () => Promise<Database>, make: (database: Database) => Store) =>
    async () => {
      const database = await begin();
      return { store: make(database), close: () => database.close() };
    };

  authStoreSuite(name, over(empty, sqlAuthStore), skip);
  idempotencyStoreSuite(name, over(empty, sqlIdempotencyStore), skip);
  peerStoreSuite(name, over(empty, sqlPeerStore), skip);
  hostStoreSuite(name, over(empty, sqlHostStore), skip);
  appStoreSuite(name, over(withOrgs("o1", "o2"), sqlAppStore), skip);
  connectorStoreSuite(name, over(withOrgs("o1"), sqlConnectorStore), skip);
  keyStoreSuite(name, over(withOrgs("o1"), sqlKeyStore), skip);
  addressStoreSuite(name, over(withApps, sqlAddressStore), skip);
  proxyStoreSuite(name, over(withApps, sqlProxyStore), skip);
  drainStoreSuite(name, over(withApps, sqlDrainStore), skip);
  webhookStoreSuite(name, over(withApps, sqlWebhookStore), skip);
  alertStoreSuite(name, over(withApps, sqlAlertStore), skip);
  const notifications = (database: Database) => ({ ...sqlNotificationStore(database), ...sqlAlertStore(database) });
  notificationStoreSuite(name, over(withApps, notifications), skip);
  buildStoreSuite(name, over(withApps, sqlBuildStore), skip);
  secretKeyStoreSuite(name, over(withApps, sqlSecretKeyStore), skip);
  gitStoreSuite(name, over(withApps, sqlGitStore), skip);
  gitWebhookStoreSuite(name, over(withApps, sqlGitWebhookStore), skip);
  spriteStoreSuite(
    name,
    async () => {
      const database = await withHosts();
      return {
        store: sqlSpriteStore(database),
        async putMachine(id) {
          const machine = aMachine({ id, name: id, app_id: "a1", org_id: "o1", host_id: "0001", state: "started" });
          assert.ok((await database.write([{ sql: INSERT_MACHINE, args: insertArgs(machine) }])).ok);
        },
        async deleteApp(id) {
          await sqlAppStore(database).deleteApp(id);
        },
        close: () => database.close(),
      };
    },
    skip,
  );
  previewStoreSuite(
    name,
    async () => {
      const database = await withApps();
      return {
        store: sqlPreviewStore(database),
        async putApp(id) {
          await sqlAppStore(database).insertApp(anApp({ id, name: id, org_id: "o1" }), 10);
        },
        async deleteApp(id) {
          await sqlAppStore(database).deleteApp(id);
        },
        async putRelease(app_id, status) {
          const release = await sqlReleaseStore(database).insertRelease(aRelease({ app_id, status }), 10);
          assert.ok(release);
        },
        async putToken(id, expires_at) {
          await sqlAuthStore(database).insertToken(aToken({ id, org_id: "o1", expires_at }), 10);
        },
        hasToken: async (id) => (await sqlAuthStore(database).findToken(id)) !== undefined,
        close: () => database.close(),
      };
    },
    skip,
  );
  releaseStoreSuite(name, over(withApps, sqlReleaseStore), skip);
  registryStoreSuite(name, over(withOrgs("o1", "o2"), sqlRegistryStore), skip);
  volumeStoreSuite(name, over(withApps, sqlVolumeStore), skip);
  machineStoreSuite(name, over(withHosts, sqlMachineStore), skip);
  machineSearchSuite(name, over(withHosts, sqlMachineStore), skip);
  statusReadsSuite(name, over(withHosts, sqlMachineStore), skip);
  runStoreSuite(name, over(withHosts, sqlMachineStore), skip);
  networkStoreSuite(
    name,
    async () => {
      const database = await withOrgs("o1", "o2")();
      return {
        store: sqlNetworkStore(database),
        async addOld(org_id, network) {
          const sql = "INSERT INTO private_networks (org_id, name) VALUES (?, ?)";
          await database.write([{ sql, args: [org_id, network] }]);
        },
        close: () => database.close(),
      };
    },
    skip,
  );
  test(`${name}: after the migration networks with machines have a prefix, others have none`, {
    skip,
  }, async () => {
    const database = await withHosts();
    const nothing = { events: [], add_operations: [], put_operations: [], remove_operations: [] };
    const machine = aMachine({ org_id: "o1", app_id: "a1", host_id: "0001" });
    const change = { ...nothing, machine, new_version: true, new_metadata: false };
    assert.equal(await sqlMachineStore(database).insert(change, 10), "inserted");
    await sqlAppStore(database).insertApp(anApp({ id: "a3", name: "a3", org_id: "o1", network: "empty" }), 10);
    const kept = MIGRATIONS.find(({ statements }) => statements.some((sql) => sql.includes("TABLE private_networks")));
    const again = [{ sql: "DROP TABLE private_networks" }, ...(kept?.statements ?? []).map((sql) => ({ sql }))];
    await database.write(again);
    const store = sqlNetworkStore(database);
    assert.equal((await store.findNetwork("o1", "default"))?.prefix, null);
    assert.equal(await store.findNetwork("o1", "empty"), undefined);
    // The last app of a network deletes its prefix.
    await sqlAppStore(database).deleteApp("a3");
    await sqlAppStore(database).deleteApp("a2");
    assert.equal((await store.findNetwork("o1", "default"))?.prefix, null);
    await store.keepPrefix("o1", "other", "12345678");
    await sqlAppStore(database).insertApp(anApp({ id: "a4", name: "a4", org_id: "o1", network: "other" }), 10);
    await sqlAppStore(database).deleteApp("a4");
    assert.equal(await store.findNetwork("o1", "other"), undefined);
    await database.close();
  });
  leaseStoreSuite(
    `a row in ${name}`,
    10_000,
    async () => {
      const database = await withApps();
      let ahead_ms = 0;
      const clock = { ...systemClock, monotonic: () => performance.now() + ahead_ms };
      const view = (): RowLeases => new RowLeases(sqlLeaseRows(database)("a1", "main"), clock);
      const pass = (ms: number): Promise<void> => {
        ahead_ms += ms;
        return Promise.resolve();
      };
      return { a: view(), b: view(), pass, close: () => database.close() };
    },
    skip,
  );
  importedImagesSuite(
    name,
    async () => {
      const database = await withHosts();
      const machines = sqlMachineStore(database);
      return {
        store: sqlImportedImages(database),
        addMachine: async (machine) => {
          const nothing = { events: [], add_operations: [], put_operations: [], remove_operations: [] };
          const inserted = await machines.insert({ ...nothing, machine, new_version: true, new_metadata: false }, 10);
          assert.equal(inserted, "inserted");
        },
        close: () => database.close(),
      };
    },
    skip,
  );
}
