import type { Alg } from "#core/jwt.ts";

/** A key of an organization, with which its machines' tokens are signed. */
export interface SigningKey {
  /** Also its `kid`. */
  id: string;
  org_id: string;
  alg: Alg;
  /** As it is published, JSON. */
  public_jwk: string;
  /** PKCS #8, sealed. */
  private_key: Uint8Array;
  created_at: number;
  /** It signs from then on, until a later one does. */
  sign_from: number;
  /** Set when its successor is made: not published after this. */
  publish_until: number | null;
}

/** Keeps and finds keys; decides nothing. Implemented in stores/, examined by `store.suite.ts`. */
export interface KeyStore {
  /** Of one organization, newest first. */
  keys(org_id: string): Promise<SigningKey[]>;
  /**
   * Adds a key and says until when the ones before it are published. False, and nothing written, when there is
   * one already that signs from `unless_after` or later: someone else was faster.
   */
  insertKey(key: SigningKey, others_until: number, unless_after: number): Promise<boolean>;
  /** Forgets keys that are no longer published. */
  purgeKeys(org_id: string, now_ms: number): Promise<void>;
}
