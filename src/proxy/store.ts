/** A host name that an app claims, and its certificate, wherever that came from. */
export interface StoredCertificate {
  hostname: string;
  app_id: string;
  /** The app's organization; not written, only read. */
  org_id: string;
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
  /** Since when the name is known to be the app's; null while it is only claimed. */
  proved_at: number | null;
}

/** An account with a certificate authority. */
export interface AcmeAccount {
  directory: string;
  /** PEM, sealed. */
  key: Uint8Array;
  url: string;
}

/** What an edge proxy says about itself, for the others of the platform. */
export interface PeerState {
  /** Machines that may rest and were used not long ago, with what each has in progress there. */
  uses: Record<string, number>;
  /** Machines that it wants to put to rest, and the app of each. */
  resting: Record<string, string>;
  /** Machines that others want to put to rest, and that get nothing from it until then. */
  quiet: string[];
}

export interface ProxyPeer {
  node_id: string;
  /** Goes up with everything it says. */
  beat: number;
  word: PeerState;
}

/** Keeps what the edge proxy must remember; decides nothing. Implemented in stores/, examined by `store.suite.ts`. */
export interface ProxyStore {
  /** Of one app, or of all, by name. */
  certificates(app_id?: string): Promise<StoredCertificate[]>;
  /**
   * Claims a name. "taken": the app claims it already, or another one has proved it. "limit": the app has so many
   * already. `proved_at` is not written.
   */
  insertCertificate(certificate: StoredCertificate, limit: number): Promise<"inserted" | "taken" | "limit" | "no_app">;
  /** Everything but whose it is, since when, and whether it is proved. False when it is gone. */
  putCertificate(certificate: StoredCertificate): Promise<boolean>;
  /** The name is the app's from now on. False when the app does not claim it, or another one has proved it before. */
  proveHostname(app_id: string, hostname: string, at: number): Promise<boolean>;
  /** False when the app has none for the name. */
  deleteCertificate(app_id: string, hostname: string): Promise<boolean>;
  account(directory: string): Promise<AcmeAccount | undefined>;
  putAccount(account: AcmeAccount): Promise<void>;
  /** A word that is kept from one start to the next. */
  word(key: string): Promise<string | undefined>;
  putWord(key: string, value: string): Promise<void>;

  /** By name. */
  peers(): Promise<ProxyPeer[]>;
  /** Says something in place of what it said before; doors not heard of since `forget_before` are forgotten. */
  putPeerState(door: { node_id: string; word: PeerState; seen_at: number }, forget_before: number): Promise<void>;
  forgetPeer(node_id: string): Promise<void>;
}
