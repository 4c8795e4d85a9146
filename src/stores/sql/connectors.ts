import type { ConnectorStore, PendingAuthorization } from "#connectors/store.ts";
import type { AccessPolicy, AuditEntry, Connection, ProviderInfo, Usage } from "#connectors/types.ts";
import { type Database, readOne, type Step, type Value } from "../database.ts";
import { lookup } from "../lookup.ts";

const CONNECTION =
  "id, org_id, provider, connection_type, provider_account_id, provider_account_name, provider_info, scopes, token_expires_at, inserted_at, updated_at, user_id, maker_expires_at, access_policy, credential, revision";
const AUDIT = "id, org_id, at, connection_id, action, actor, method, path, status, rule";
const PENDING = "state, org_id, provider, redirect_uri, scopes, verifier, created_at";
const USAGE = "calls, denials, failures, bytes_sent, bytes_received, last_used_at";

type ConnectionRow = Omit<Connection, "provider_info" | "access_policy"> & {
  provider_info: string;
  access_policy: string;
};

const fromRow = (row: ConnectionRow): Connection => ({
  ...row,
  provider_info: JSON.parse(row.provider_info) as ProviderInfo,
  access_policy: JSON.parse(row.access_policy) as AccessPolicy,
});

export function sqlConnectorStore(database: Database): ConnectorStore {
  return { ...connections(database), ...records(database), ...pending(database) };
}

type Connections = Pick<
  ConnectorStore,
  "connections" | "findConnection" | "insertConnection" | "putConnection" | "deleteConnection"
>;

function connections(database: Database): Connections {
  return {
    async connections(org_id, provider) {
      const rows = await database.read<ConnectionRow>(
        `SELECT ${CONNECTION} FROM connections WHERE org_id = ? ${provider === undefined ? "" : "AND provider = ?"}
         ORDER BY inserted_at DESC, id`,
        provider === undefined ? [org_id] : [org_id, provider],
      );
      return rows.map(fromRow);
    },
    findConnection: lookup(database, "connection", async (id) => {
      const row = await readOne<ConnectionRow>(database, `SELECT ${CONNECTION} FROM connections WHERE id = ?`, [id]);
      return row && fromRow(row);
    }),
    async insertConnection(connection, audit, limit) {
      const { org_id } = connection;
      const outcome = await database.write([
        // Locks the organization, so that concurrent inserts respect the limit.
        { sql: "UPDATE orgs SET name = name WHERE id = ?", args: [org_id], rows: 1 },
        {
          sql: `INSERT INTO connections (${CONNECTION}) SELECT ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?
                WHERE (SELECT count(*) FROM connections WHERE org_id = ?) < ? ON CONFLICT DO NOTHING`,
          args: [...values(connection), org_id, limit],
          rows: 1,
        },
        auditStep(audit),
      ]);
      if (outcome.ok) return "inserted";
      if (outcome.failed === 0) return "no_org";
      return (await this.findConnection(connection.id)) ? "exists" : "limit";
    },
    async putConnection(connection, audit) {
      const { access_policy, provider_info, scopes, token_expires_at, updated_at, credential, revision, id } =
        connection;
      const policy = JSON.stringify(access_policy);
      const info = JSON.stringify(provider_info);
      const outcome = await database.write([
        {
          sql: `UPDATE connections SET access_policy = ?, provider_info = ?, scopes = ?, token_expires_at = ?,
                updated_at = ?, credential = ?, revision = ? WHERE id = ? AND revision = ?`,
          args: [policy, info, scopes, token_expires_at, updated_at, credential, revision, id, revision - 1],
          rows: 1,
        },
        auditStep(audit),
      ]);
      return outcome.ok;
    },
    async deleteConnection(id, audit) {
      const deletion = { sql: "DELETE FROM connections WHERE id = ?", args: [id], rows: 1 };
      return (await database.write([deletion, auditStep(audit)])).ok;
    },
  };
}

function records(database: Database): Pick<ConnectorStore, "usage" | "record" | "audit" | "purgeAudit"> {
  return {
    usage: (id) => readOne<Usage>(database, `SELECT id AS connection_id, ${USAGE} FROM connections WHERE id = ?`, [id]),
    async record(entries, counted) {
      await database.write([...entries.map(auditStep), ...counted.map(usageStep)]);
    },
    async audit({ org_id, connection_id, action, before, limit }) {
      const conditions: [string, Value | undefined][] = [
        ["org_id = ?", org_id],
        ["connection_id = ?", connection_id],
        ["action = ?", action],
        ["id < ?", before],
      ];
      const given = conditions.filter((pair): pair is [string, Value] => pair[1] !== undefined);
      return await database.read<AuditEntry>(
        `SELECT ${AUDIT} FROM connector_audit WHERE ${given.map(([sql]) => sql).join(" AND ")} ORDER BY id DESC LIMIT ?`,
        [...given.map(([, value]) => value), limit],
      );
    },
    async purgeAudit(before_ms) {
      await database.write([{ sql: "DELETE FROM connector_audit WHERE at < ?", args: [before_ms] }]);
    },
  };
}

function pending(database: Database): Pick<ConnectorStore, "insertPending" | "takePending"> {
  return {
    async insertPending({ state, org_id, provider, redirect_uri, scopes, verifier, created_at }, since_ms, limit) {
      const outcome = await database.write([
        { sql: "UPDATE orgs SET name = name WHERE id = ?", args: [org_id], rows: 1 },
        { sql: "DELETE FROM oauth_states WHERE org_id = ? AND created_at < ?", args: [org_id, since_ms] },
        {
          sql: `INSERT INTO oauth_states (${PENDING}) SELECT ?, ?, ?, ?, ?, ?, ?
                WHERE (SELECT count(*) FROM oauth_states WHERE org_id = ?) < ? ON CONFLICT DO NOTHING`,
          args: [state, org_id, provider, redirect_uri, scopes, verifier, created_at, org_id, limit],
          rows: 1,
        },
      ]);
      return outcome.ok;
    },
    async takePending(org_id, provider, state) {
      const sql = `DELETE FROM oauth_states WHERE org_id = ? AND provider = ? AND state = ? RETURNING ${PENDING}`;
      const outcome = await database.write([{ sql, args: [org_id, provider, state], rows: 1 }]);
      return outcome.ok ? (outcome.returned[0]?.[0] as PendingAuthorization | undefined) : undefined;
    },
  };
}

function values(connection: Connection): Value[] {
  return [
    connection.id,
    connection.org_id,
    connection.provider,
    connection.connection_type,
    connection.provider_account_id,
    connection.provider_account_name,
    JSON.stringify(connection.provider_info),
    connection.scopes,
    connection.token_expires_at,
    connection.inserted_at,
    connection.updated_at,
    connection.user_id,
    connection.maker_expires_at,
    JSON.stringify(connection.access_policy),
    connection.credential,
    connection.revision,
  ];
}

function auditStep(entry: AuditEntry): Step {
  const { id, org_id, at, connection_id, action, actor, method, path, status, rule } = entry;
  return {
    sql: `INSERT INTO connector_audit (${AUDIT}) VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?)`,
    args: [id, org_id, at, connection_id, action, actor, method, path, status, rule],
  };
}

function usageStep({ connection_id, calls, denials, failures, bytes_sent, bytes_received, last_used_at }: Usage): Step {
  return {
    sql: `UPDATE connections SET calls = calls + ?, denials = denials + ?, failures = failures + ?,
          bytes_sent = bytes_sent + ?, bytes_received = bytes_received + ?, last_used_at = COALESCE(?, last_used_at)
          WHERE id = ?`,
    args: [calls, denials, failures, bytes_sent, bytes_received, last_used_at, connection_id],
  };
}
