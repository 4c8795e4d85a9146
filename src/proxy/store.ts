/** A host name that an app claims, and its certificate, wherever that came from. */
export interface StoredCertificate {
  hostname: string;
  app_id: string;
  /** The app's organization; read only. */
  org_id: string;
  kind: "custom" | "acme";
  state: "pending" | "ready" | "failed";
  /** PEM; null until issued. */
  chain: string | null;
  /** PEM, sealed. */
  key: Uint8Array | null;
  /** Why there is none, or no renewed one. */
  problem: string | null;
  created_at: number;
  updated_at: number;
  expires_at: number | null;
  /** When ownership of the name was proved; null while it is only claimed. */
  proved_at: number | null;
}

/** An account with a certificate authority. */
export interface AcmeAccount {
  directory: string;
  /** PEM, sealed. */
  key: Uint8Array;
  url: string;
}

/** State that an edge proxy publishes for its peers. */
export interface PeerState {
  /** Machines with autostop that were recently used, with their load there. */
  uses: Record<string, number>;
  /** Machines that it wants to stop, and the app of each. */
  resting: Record<string, string>;
  /** Machines that peers want to stop, to which it sends no requests meanwhile. */
  quiet: string[];
}

export interface ProxyPeer {
  node_id: string;
  /** Incremented with each publication. */
  beat: number;
  word: PeerState;
}

/** Stores what the edge proxy must remember; decides nothing. Implemented in stores/, tested by `store.suite.ts`. */
export interface ProxyStore {
  /** Certificates of one app, or of all, by name. */
  certificates(app_id?: string): Promise<StoredCertificate[]>;
  /**
   * Claims a name. "taken": the app already claims it, or another one has proved it. "limit": the app has too many.
   * `proved_at` is not written.
   */
  insertCertificate(certificate: StoredCertificate, limit: number): Promise<"inserted" | "taken" | "limit" | "no_app">;
  /** Updates everything but owner, creation time and proof. Returns false when it was deleted. */
  putCertificate(certificate: StoredCertificate): Promise<boolean>;
  /** Records ownership. Returns false when the app does not claim the name, or another one proved it before. */
  proveHostname(app_id: string, hostname: string, at: number): Promise<boolean>;
  /** Returns false when the app has none for the name. */
  deleteCertificate(app_id: string, hostname: string): Promise<boolean>;
  /** Reserves orders for the name for this runner until then. False while another runner's claim has not expired. */
  claimOrder(name: string, claim: { runner: string; now: number; until: number }): Promise<boolean>;
  /** Releases the runner's claim on orders for the name; does nothing to another runner's. */
  releaseOrder(name: string, runner: string): Promise<void>;
  account(directory: string): Promise<AcmeAccount | undefined>;
  putAccount(account: AcmeAccount): Promise<void>;
  /** A value that survives restarts. */
  value(key: string): Promise<string | undefined>;
  putValue(key: string, value: string): Promise<void>;

  /** By name. */
  peers(): Promise<ProxyPeer[]>;
  /** Replaces a proxy's state; proxies without a heartbeat since `forget_before` are deleted. */
  putPeerState(peer: { node_id: string; word: PeerState; seen_at: number }, forget_before: number): Promise<void>;
  forgetPeer(node_id: string): Promise<void>;
}
