/** A certificate of an app's, wherever it came from. */
export interface StoredCertificate {
  hostname: string;
  app_id: string;
  kind: "custom" | "acme";
  state: "pending" | "ready" | "failed";
  /** PEM; null until there is one. */
  chain: string | null;
  /** PEM, sealed. */
  key: Uint8Array | null;
  /** Why there is none, or none newer. */
  problem: string | null;
  created_at: number;
  updated_at: number;
  expires_at: number | null;
}

/** An account with a certificate authority. */
export interface AcmeAccount {
  directory: string;
  /** PEM, sealed. */
  key: Uint8Array;
  url: string;
}

/** Keeps what the front door must remember; decides nothing. Implemented in stores/, examined by `store.suite.ts`. */
export interface ProxyStore {
  /** Of one app, or of all, by name. */
  certificates(app_id?: string): Promise<StoredCertificate[]>;
  /** A name belongs to one app. "limit": the app has so many already. */
  insertCertificate(certificate: StoredCertificate, limit: number): Promise<"inserted" | "taken" | "limit" | "no_app">;
  /** Everything but whose it is, and since when. False when it is gone. */
  putCertificate(certificate: StoredCertificate): Promise<boolean>;
  /** False when the app has none for the name. */
  deleteCertificate(app_id: string, hostname: string): Promise<boolean>;
  account(directory: string): Promise<AcmeAccount | undefined>;
  putAccount(account: AcmeAccount): Promise<void>;
  /** A word that is kept from one start to the next. */
  word(key: string): Promise<string | undefined>;
  putWord(key: string, value: string): Promise<void>;
}
