import type { Drain, DrainState } from "./types.ts";

/** Stores drains and how far hosts got; decides nothing. Implemented in stores/, tested by `store.suite.ts`. */
export interface DrainStore {
  /** Drains of one organization, or of all. */
  drains(org_id?: string): Promise<Drain[]>;
  /** Returns false, writing nothing, when the organization already has `limit` others. */
  insert(drain: Drain, limit: number): Promise<boolean>;
  /** Returns false when there is no such drain. */
  delete(org_id: string, id: string): Promise<boolean>;
  states(org_id: string): Promise<DrainState[]>;
  /** What a host stored last. */
  hostStates(host_id: string): Promise<DrainState[]>;
  /** Returns false when the drain was deleted. */
  putState(state: DrainState): Promise<boolean>;
}
