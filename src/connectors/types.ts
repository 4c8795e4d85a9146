/** Types of the connectors module, as stored. Times are milliseconds since 1970. */
export interface Connection {
  id: string;
  org_id: string;
  /** A key of `providers.ts`. */
  provider: string;
  connection_type: ConnectionType;
  provider_account_id: string;
  provider_account_name: string;
  provider_info: ProviderInfo;
  /** Comma-separated. */
  scopes: string;
  token_expires_at: number | null;
  inserted_at: number;
  updated_at: number;
  /** The token that created it; the connector is revoked with it. */
  user_id: string;
  /** Expiry of that token, or null. */
  maker_expires_at: number | null;
  access_policy: AccessPolicy;
  /** A `Credential` as JSON, sealed for this connection alone. */
  credential: Uint8Array;
  /** Incremented with every change, for optimistic locking. */
  revision: number;
}

export type ConnectionType = "oauth" | "api_key" | "provisioned" | "internal";

/** Who may use a connector, and for what. An empty policy denies all. */
export interface AccessPolicy {
  allow_all?: boolean;
  allowed_endpoints?: string[];
  blocked_endpoints?: string[];
  name_prefix?: string;
  sprite_labels?: string[];
}

/** Non-secret configuration of the provider. */
export interface ProviderInfo {
  /** Base URL chosen by its owner. */
  base_url?: string;
  auth_method?: "header" | "query" | "path";
  auth_header_prefix?: string;
  auth_header_name?: string;
  auth_query_name?: string;
  region?: string;
  test_path?: string;
  /** Allows encoded slashes and the like, if there are no path rules. */
  encoded_paths?: boolean;
}

/** The secrets. */
export interface Credential {
  token: string;
  refresh_token?: string;
  /** Of an object store; `token` is its secret key. */
  access_key_id?: string;
}

/** A machine, as policies see it. */
export interface Sprite {
  machine_id: string;
  name: string;
  labels: readonly string[];
  org: { id: string; slug: string };
}

export type AuditAction =
  | "created"
  | "policy"
  | "rotated"
  | "refreshed"
  | "deleted"
  /** A machine's request that was forwarded. */
  | "call"
  /** A machine's request that was refused. */
  | "denied";

/** One line of the audit log. */
export interface AuditEntry {
  id: string;
  org_id: string;
  at: number;
  connection_id: string;
  action: AuditAction;
  /** Who: a token's name, or a machine's. */
  actor: string;
  method: string | null;
  /** Without the query, which may contain secrets. */
  path: string | null;
  /** Status of the response to the caller. */
  status: number | null;
  /** The deciding rule. */
  rule: string | null;
}

/** Usage counters of a connector. */
export interface Usage {
  connection_id: string;
  calls: number;
  denials: number;
  /** Calls whose provider was unreachable or broke off. */
  failures: number;
  bytes_sent: number;
  bytes_received: number;
  last_used_at: number | null;
}
