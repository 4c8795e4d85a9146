import type { AuditAction, AuditEntry, Connection, Usage } from "./types.ts";

/** An authorization that was begun at a provider. */
export interface PendingAuthorization {
  state: string;
  org_id: string;
  provider: string;
  redirect_uri: string;
  scopes: string;
  /** The secret half of the proof that who ends it is who began it (PKCE); sealed. */
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

/** Keeps and finds connectors; decides nothing. Implemented in stores/, examined by `store.suite.ts`. */
export interface ConnectorStore {
  /** Newest first. */
  connections(org_id: string, provider?: string): Promise<Connection[]>;
  findConnection(id: string): Promise<Connection | undefined>;
  /** Nothing is written unless it is "inserted". The same id a second time is "exists". */
  insertConnection(
    connection: Connection,
    audit: AuditEntry,
    limit: number,
  ): Promise<"inserted" | "exists" | "limit" | "no_org">;
  /** Writes policy, credential and what goes with them if the revision is still the one before. */
  putConnection(connection: Connection, audit: AuditEntry): Promise<boolean>;
  /** False when it is gone already. */
  deleteConnection(id: string, audit: AuditEntry): Promise<boolean>;

  usage(connection_id: string): Promise<Usage | undefined>;
  /** Adds lines, and adds to what was counted. What belongs to a connector that is gone is counted nowhere. */
  record(entries: readonly AuditEntry[], counted: readonly Usage[]): Promise<void>;
  /** Newest first. */
  audit(filter: AuditFilter): Promise<AuditEntry[]>;
  /** Forgets lines that are older. */
  purgeAudit(before_ms: number): Promise<void>;

  /** False when the organization has `limit` that were begun after `since_ms`. Older ones of it are forgotten. */
  insertPending(pending: PendingAuthorization, since_ms: number, limit: number): Promise<boolean>;
  /** Takes it away: it can be ended once. */
  takePending(org_id: string, provider: string, state: string): Promise<PendingAuthorization | undefined>;
}
