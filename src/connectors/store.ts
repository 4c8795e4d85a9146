import type { AuditAction, AuditEntry, Connection, Usage } from "./types.ts";

/** A pending authorization at a provider. */
export interface PendingAuthorization {
  state: string;
  org_id: string;
  provider: string;
  redirect_uri: string;
  scopes: string;
  /** The PKCE code verifier, sealed. */
  verifier: Uint8Array;
  created_at: number;
}

interface AuditFilter {
  org_id: string;
  connection_id?: string;
  action?: AuditAction;
  /** Entries older than the one with this id. */
  before?: string;
  limit: number;
}

/** Stores connectors; decides nothing. Implemented in stores/, tested by `store.suite.ts`. */
export interface ConnectorStore {
  /** Newest first. */
  connections(org_id: string, provider?: string): Promise<Connection[]>;
  findConnection(id: string): Promise<Connection | undefined>;
  /** Nothing is written unless the result is "inserted". The same id again is "exists". */
  insertConnection(
    connection: Connection,
    audit: AuditEntry,
    limit: number,
  ): Promise<"inserted" | "exists" | "limit" | "no_org">;
  /** Writes policy and credential if the revision is unchanged. */
  putConnection(connection: Connection, audit: AuditEntry): Promise<boolean>;
  /** Returns false when it was already deleted. */
  deleteConnection(id: string, audit: AuditEntry): Promise<boolean>;

  usage(connection_id: string): Promise<Usage | undefined>;
  /** Adds entries and counters. Those of a deleted connector are not counted. */
  record(entries: readonly AuditEntry[], counted: readonly Usage[]): Promise<void>;
  /** Newest first. */
  audit(filter: AuditFilter): Promise<AuditEntry[]>;
  /** Deletes older entries. */
  purgeAudit(before_ms: number): Promise<void>;

  /** Returns false when the organization has `limit` newer than `since_ms`. Older ones are deleted. */
  insertPending(pending: PendingAuthorization, since_ms: number, limit: number): Promise<boolean>;
  /** Takes it: it can be finished once. */
  takePending(org_id: string, provider: string, state: string): Promise<PendingAuthorization | undefined>;
}
