import type { Dialect } from "#metrics/promql/ast.ts";

/** Rules of an organization, as written by the user. */
export interface StoredRuleFile {
  org_id: string;
  name: string;
  /** The app whose series its rules see; null: those of the organization. */
  app_id: string | null;
  app_name: string | null;
  dialect: Dialect;
  content: string;
  updated_at: number;
}

/** The process that evaluates an organization's rules, until then. */
export interface AlertClaim {
  runner: string;
  now: number;
  until: number;
}

export interface StoredState {
  file: string;
  group_name: string;
  /** JSON. */
  state: string;
}

/** Stores rules and their states; decides nothing. Implemented in stores/, tested by `store.suite.ts`. */
export interface AlertStore {
  /** Ordered by name. */
  ruleFiles(org_id: string): Promise<StoredRuleFile[]>;
  findRuleFile(org_id: string, name: string): Promise<StoredRuleFile | undefined>;
  /** When each rule file of every organization was changed. */
  ruleFileVersions(): Promise<{ org_id: string; name: string; updated_at: number }[]>;
  /** Returns false, writing nothing, when the organization has `limit` other rule files. */
  putRuleFile(file: Omit<StoredRuleFile, "app_name">, limit: number): Promise<boolean>;
  /** Deletes its states too. Returns false when there is none. */
  deleteRuleFile(org_id: string, name: string): Promise<boolean>;

  /** Claims an organization, or renews the claim. False: another process has it, or the organization does not exist. */
  claim(org_id: string, claim: AlertClaim): Promise<boolean>;
  release(runner: string): Promise<void>;
  states(org_id: string): Promise<StoredState[]>;
  /** Renews the claim too. Returns false, writing nothing, when this process has it no longer. */
  putState(org_id: string, state: StoredState, claim: AlertClaim): Promise<boolean>;
}
