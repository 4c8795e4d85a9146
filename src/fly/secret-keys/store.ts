/** A key that the platform keeps for an app, to sign or encrypt with. */
export interface SecretKey {
  name: string;
  type: string;
  /** The key, sealed with the platform's master key. */
  sealed: Uint8Array;
  /** The public half, of a key that has one. */
  public_key: Uint8Array | null;
  /** How often the key was set. */
  version: number;
  created_at: number;
  updated_at: number;
}

/** Stores the secret keys of apps; decides nothing. Implemented in stores/, tested by `store.suite.ts`. */
export interface SecretKeyStore {
  /** Ordered by name. */
  list(app_id: string): Promise<SecretKey[]>;
  find(app_id: string, name: string): Promise<SecretKey | undefined>;
  /**
   * Inserts or replaces a key, and returns its new version. A replaced one keeps its `created_at`. Nothing is written
   * when the app was deleted or would exceed `limit` keys.
   */
  put(app_id: string, key: Omit<SecretKey, "version">, limit: number): Promise<number | "no_app" | "limit">;
  /** Returns false when there is no such key. */
  remove(app_id: string, name: string): Promise<boolean>;
}
