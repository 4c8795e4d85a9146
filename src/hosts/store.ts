import type { Host, HostFacts, Placing, Tenure } from "./types.ts";

export interface JoinToken {
  id: string;
  /** SHA-256 of the token's secret half. */
  hash: Uint8Array;
  /** The platform's master key, sealed with the secret half. */
  sealed_key: Uint8Array;
  expires_at: number;
}

/** What a host reports when it acquires its lease. */
export interface Arrival {
  lease_ms: number;
  address: string;
  facts: HostFacts;
  now: number;
}

/** Stores hosts; decides nothing. Implemented in stores/, tested by `store.suite.ts`. */
export interface HostStore {
  /** Ordered by id. */
  hosts(): Promise<Host[]>;
  find(id: string): Promise<Host | undefined>;
  /**
   * Reconciles the hosts of this process with the declared ones: known ones get the declared size and keep their state,
   * new ones are added, undeclared ones are deleted unless they have machines or joined by themselves. Usage is counted
   * again.
   */
  declare(hosts: readonly Placing[]): Promise<void>;
  /** Returns false when the host does not exist. `held` keeps the state until an operator changes it. */
  setState(id: string, state: Host["state"], held: boolean): Promise<boolean>;
  setCordoned(id: string, change: { cordoned: boolean; draining: boolean }): Promise<boolean>;
  /** Deletes an empty host. Returns false when it does not exist or has machines. */
  forget(id: string): Promise<boolean>;

  /** Publishes a process's address for the others; `seen_at` is for display. */
  announce(process: { node_id: string; address: string; seen_at: number }): Promise<void>;
  channelAddressOf(node_id: string): Promise<string | undefined>;

  addToken(token: JoinToken): Promise<void>;
  findToken(id: string): Promise<JoinToken | undefined>;
  /** Adds a host and consumes its token. Returns false when the id is taken or the token no longer exists. */
  join(host: Placing & { node_id: string }, token_id: string, now: number): Promise<boolean>;

  /**
   * Begins a new tenure: the host belongs to this node, is `ok`, and has the next epoch. Only while its epoch is still
   * `after`, it is the node's own or unowned, and not held by an operator. Undefined otherwise.
   */
  take(tenure: Tenure, after: number, arrival: Arrival): Promise<number | undefined>;
  /** Renews the lease. Returns false when the tenure is over. */
  renew(tenure: Tenure, now: number): Promise<boolean>;
  /** A last renewal of this length. Returns false when the tenure is over. */
  leave(tenure: Tenure, lease_ms: number, now: number): Promise<boolean>;
  /** Marks the host as lost and ends its tenure, if it has not renewed since. Returns false otherwise. */
  lose(id: string, beat: number): Promise<boolean>;
  /** Records that the loss was handled. */
  handled(id: string, epoch: number): Promise<void>;
}
