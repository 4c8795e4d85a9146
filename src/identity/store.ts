import type { Alg } from "#core/jwt.ts";

/** An organization's key that signs its machines' tokens. */
export interface SigningKey {
  /** Also its `kid`. */
  id: string;
  org_id: string;
  alg: Alg;
  /** The published JWK, as JSON. */
  public_jwk: string;
  /** PKCS #8, sealed. */
  private_key: Uint8Array;
  created_at: number;
  /** Signs from then on, until a later one does. */
  sign_from: number;
  /** Set when its successor is created: not published after this. */
  publish_until: number | null;
}

/** Stores keys; decides nothing. Implemented in stores/, tested by `store.suite.ts`. */
export interface KeyStore {
  /** Of one organization, newest first. */
  keys(org_id: string): Promise<SigningKey[]>;
  /**
   * Adds a key and sets until when earlier ones are published. Returns false, writing nothing, when another key signs
   * from `unless_after` or later.
   */
  insertKey(key: SigningKey, others_until: number, unless_after: number): Promise<boolean>;
  /** Deletes keys that are no longer published. */
  purgeKeys(org_id: string, now_ms: number): Promise<void>;
}
