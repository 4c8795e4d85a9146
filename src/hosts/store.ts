import type { Host } from "./types.ts";

/** Keeps and finds hosts; decides nothing. Implemented in stores/, examined by `store.suite.ts`. */
export interface HostStore {
  /** By id. */
  hosts(): Promise<Host[]>;
  /**
   * Makes the hosts exactly the declared ones that still can be: known ones get the declared size and keep their
   * state, new ones are added, and ones that are no longer declared are forgotten unless machines live there.
   * What is used is counted anew.
   */
  declare(hosts: readonly Pick<Host, "id" | "region" | "zone" | "cpus" | "memory_mb">[]): Promise<void>;
  /** False when there is no such host. */
  setState(id: string, state: Host["state"]): Promise<boolean>;
}
