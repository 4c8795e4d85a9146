/** Types of the auth module, as stored. */
export interface Org {
  id: string;
  slug: string;
  name: string;
  numeric_id: number;
  created_at: number;
}

/**
 * `full` has access to everything. `org` and `readonly` are macaroons of one organization; `deploy` is one for a single
 * app; `connector` is the credential of a connector to the platform itself, which machines use through the gateway and
 * nobody sees.
 */
export type TokenKind = "full" | "org" | "readonly" | "deploy" | "connector";

export interface Token {
  id: string;
  /** Null for a full-access token. */
  org_id: string | null;
  kind: TokenKind;
  name: string;
  /** Full-access: SHA-256 of the secret. Macaroons: the root key, sealed. */
  secret: Uint8Array;
  created_at: number;
  expires_at: number | null;
  revoked_at: number | null;
  /** The token that created it; it is revoked with that. Null for the first one of a platform, and for old ones. */
  parent_id: string | null;
}
