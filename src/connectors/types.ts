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
  /** The token that made it, and with which it falls. */
  user_id: string;
  /** When the time of that token is up; null when it has none. */
  maker_expires_at: number | null;
  access_policy: AccessPolicy;
  /** A `Credential` as JSON, sealed for this connection alone. */
  credential: Uint8Array;
  /** Goes up with every change: who read 7 may write only while it is 7. */
  revision: number;
}

export type ConnectionType = "oauth" | "api_key" | "provisioned" | "internal";

/** Who may use a connector, and for what. Nothing said is nobody. */
export interface AccessPolicy {
  allow_all?: boolean;
  allowed_endpoints?: string[];
  blocked_endpoints?: string[];
  name_prefix?: string;
  sprite_labels?: string[];
}

/** What is not secret about how the provider is reached. */
export interface ProviderInfo {
  /** Where it is, when its owner says so and not the table of providers. */
  base_url?: string;
  auth_method?: "header" | "query" | "path";
  auth_header_prefix?: string;
  auth_header_name?: string;
  auth_query_name?: string;
  region?: string;
  test_path?: string;
  /** Paths with encoded slashes and the like may pass, as long as there are no rules about paths. */
  encoded_paths?: boolean;
}

/** What is secret. */
export interface Credential {
  token: string;
  refresh_token?: string;
  /** Of an object store: `token` is the secret that belongs to it. */
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
  /** A machine's request that was passed on. */
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
  /** Without the query, which may hold what should not be in a log. */
  path: string | null;
  /** What the caller was answered. */
  status: number | null;
  /** The rule that decided. */
  rule: string | null;
}

/** What a connector was used for. */
export interface Usage {
  connection_id: string;
  calls: number;
  denials: number;
  /** Calls that the provider could not be reached for, or that broke off. */
  failures: number;
  bytes_sent: number;
  bytes_received: number;
  last_used_at: number | null;
}
