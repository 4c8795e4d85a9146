import type { Host, HostFacts, Placing, Tenure } from "./types.ts";

export interface JoinToken {
  id: string;
  /** SHA-256 of the token's secret half. */
  hash: Uint8Array;
  /** The platform's master key, sealed with the secret half. */
  sealed_key: Uint8Array;
  expires_at: number;
}

/** What a host brings along when it takes its place. */
export interface Arrival {
  lease_ms: number;
  address: string;
  facts: HostFacts;
  now: number;
}

/** Keeps and finds hosts; decides nothing. Implemented in stores/, examined by `store.suite.ts`. */
export interface HostStore {
  /** By id. */
  hosts(): Promise<Host[]>;
  find(id: string): Promise<Host | undefined>;
  /**
   * Makes the hosts of this process exactly the declared ones that still can be: known ones get the declared size and
   * keep their state, new ones are added, and ones that are no longer declared are forgotten unless machines live
   * there or they joined by themselves. What is used is counted anew.
   */
  declare(hosts: readonly Placing[]): Promise<void>;
  /** False when there is no such host. An operator's word holds until an operator takes it back. */
  setState(id: string, state: Host["state"], held: boolean): Promise<boolean>;
  setCordoned(id: string, change: { cordoned: boolean; draining: boolean }): Promise<boolean>;
  /** Forgets a host where nothing is. False when there is none, or something is. */
  forget(id: string): Promise<boolean>;

  /** Where a process of the platform is reached by the others; `seen_at` is for people. */
  announce(door: { node_id: string; address: string; seen_at: number }): Promise<void>;
  channelAddressOf(node_id: string): Promise<string | undefined>;

  addToken(token: JoinToken): Promise<void>;
  findToken(id: string): Promise<JoinToken | undefined>;
  /** A new host, and its token is used up. False when the id is taken or the token gone. */
  join(host: Placing & { node_id: string }, token_id: string, now: number): Promise<boolean>;

  /**
   * A new tenure: the host is this node's, `ok`, under the next epoch. Only while its epoch is still `after`, and only
   * of a host that is the node's own or nobody's yet and that no operator holds back. Undefined otherwise.
   */
  take(tenure: Tenure, after: number, arrival: Arrival): Promise<number | undefined>;
  /** One more beat. False when the tenure is over: somebody took the host away. */
  renew(tenure: Tenure, now: number): Promise<boolean>;
  /** A last beat, which lasts so long. False when the tenure is over. */
  leave(tenure: Tenure, lease_ms: number, now: number): Promise<boolean>;
  /** The host is lost, and its tenure over, if no beat came since. False when one did. */
  lose(id: string, beat: number): Promise<boolean>;
  /** All that follows from a loss was done. */
  handled(id: string, epoch: number): Promise<void>;
}
