import type { AcmeAccount, PeerState, ProxyStore, StoredCertificate } from "#proxy/store.ts";
import { type Database, readOne } from "../database.ts";

const COLUMNS = "hostname, app_id, kind, state, chain, key, problem, created_at, updated_at, expires_at";
const READ = `SELECT ${COLUMNS.split(", ")
  .map((column) => `c.${column}`)
  .join(", ")}, c.proved_at, a.org_id FROM certificates c JOIN apps a ON a.id = c.app_id`;

export function sqlProxyStore(database: Database): ProxyStore {
  return {
    certificates: (app_id) =>
      app_id === undefined
        ? database.read<StoredCertificate>(`${READ} ORDER BY c.hostname, c.created_at, c.app_id`)
        : database.read<StoredCertificate>(`${READ} WHERE c.app_id = ? ORDER BY c.hostname`, [app_id]),
    async insertCertificate(certificate, limit) {
      const { hostname, app_id, kind, state, chain, key, problem, created_at, updated_at, expires_at } = certificate;
      const outcome = await database.write([
        // Locks the app, so that concurrent inserts respect the limit.
        { sql: "UPDATE apps SET name = name WHERE id = ?", args: [app_id], rows: 1 },
        {
          sql: "SELECT 1 AS found FROM certificates WHERE hostname = ? AND (app_id = ? OR proved_at IS NOT NULL)",
          args: [hostname, app_id],
          rows: 0,
        },
        {
          sql: `INSERT INTO certificates (${COLUMNS}) SELECT ?, ?, ?, ?, ?, ?, ?, ?, ?, ?
                WHERE (SELECT count(*) FROM certificates WHERE app_id = ?) < ?`,
          args: [hostname, app_id, kind, state, chain, key, problem, created_at, updated_at, expires_at, app_id, limit],
          rows: 1,
        },
      ]);
      return outcome.ok ? "inserted" : ((["no_app", "taken", "limit"] as const)[outcome.failed] ?? "limit");
    },
    async putCertificate({ hostname, app_id, kind, state, chain, key, problem, updated_at, expires_at }) {
      const sql = `UPDATE certificates SET kind = ?, state = ?, chain = ?, key = ?, problem = ?, updated_at = ?, expires_at = ?
                   WHERE hostname = ? AND app_id = ?`;
      const args = [kind, state, chain, key, problem, updated_at, expires_at, hostname, app_id];
      return (await database.write([{ sql, args, rows: 1 }])).ok;
    },
    async proveHostname(app_id, hostname, at) {
      const outcome = await database.write([
        // Locks all claims of the name, so that the second of two concurrent verifications sees the first.
        { sql: "UPDATE certificates SET updated_at = updated_at WHERE hostname = ?", args: [hostname] },
        {
          sql: `UPDATE certificates SET proved_at = COALESCE(proved_at, ?) WHERE hostname = ? AND app_id = ? AND NOT EXISTS
                (SELECT 1 FROM certificates other
                 WHERE other.hostname = ? AND other.app_id <> ? AND other.proved_at IS NOT NULL)`,
          args: [at, hostname, app_id, hostname, app_id],
          rows: 1,
        },
      ]);
      return outcome.ok;
    },
    async deleteCertificate(app_id, hostname) {
      const sql = "DELETE FROM certificates WHERE app_id = ? AND hostname = ?";
      return (await database.write([{ sql, args: [app_id, hostname], rows: 1 }])).ok;
    },
    account: (directory) =>
      readOne<AcmeAccount>(database, "SELECT directory, key, url FROM acme_accounts WHERE directory = ?", [directory]),
    async claimOrder(name, { runner, now, until }) {
      const sql = `INSERT INTO certificate_orders (name, runner, until) VALUES (?, ?, ?) ON CONFLICT (name)
                   DO UPDATE SET runner = excluded.runner, until = excluded.until
                   WHERE certificate_orders.runner = excluded.runner OR certificate_orders.until <= ?`;
      return (await database.write([{ sql, args: [name, runner, until, now], rows: 1 }])).ok;
    },
    async releaseOrder(name, runner) {
      const sql = "DELETE FROM certificate_orders WHERE name = ? AND runner = ?";
      await database.write([{ sql, args: [name, runner] }]);
    },
    async putAccount({ directory, key, url }) {
      await database.write([
        {
          sql: `INSERT INTO acme_accounts (directory, key, url) VALUES (?, ?, ?)
                ON CONFLICT (directory) DO UPDATE SET key = excluded.key, url = excluded.url`,
          args: [directory, key, url],
        },
      ]);
    },
    ...doorRows(database),
    async value(key) {
      return (await readOne<{ value: string }>(database, "SELECT value FROM proxy_words WHERE key = ?", [key]))?.value;
    },
    async putValue(key, value) {
      await database.write([
        {
          sql: "INSERT INTO proxy_words (key, value) VALUES (?, ?) ON CONFLICT (key) DO UPDATE SET value = excluded.value",
          args: [key, value],
        },
      ]);
    },
  };
}

function doorRows(database: Database): Pick<ProxyStore, "peers" | "putPeerState" | "forgetPeer"> {
  return {
    async peers() {
      const sql = "SELECT node_id, beat, word FROM front_doors ORDER BY node_id";
      const rows = await database.read<{ node_id: string; beat: number; word: string }>(sql);
      return rows.map((row) => ({ ...row, word: JSON.parse(row.word) as PeerState }));
    },
    async putPeerState({ node_id, word, seen_at }, forget_before) {
      await database.write([
        { sql: "DELETE FROM front_doors WHERE seen_at < ?", args: [forget_before] },
        {
          sql: `INSERT INTO front_doors (node_id, beat, word, seen_at) VALUES (?, 1, ?, ?) ON CONFLICT (node_id) DO UPDATE
                SET beat = front_doors.beat + 1, word = excluded.word, seen_at = excluded.seen_at`,
          args: [node_id, JSON.stringify(word), seen_at],
        },
      ]);
    },
    async forgetPeer(node_id) {
      await database.write([{ sql: "DELETE FROM front_doors WHERE node_id = ?", args: [node_id] }]);
    },
  };
}
