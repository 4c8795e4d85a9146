import type { PageRequest } from "#core/list-page.ts";
import type { Org, Token } from "./types.ts";

/** Stores organizations and tokens; decides nothing. Implemented in stores/, tested by `store.suite.ts`. */
export interface AuthStore {
  /** Ordered by slug. */
  orgs(): Promise<Org[]>;
  findOrg(slug: string): Promise<Org | undefined>;
  findOrgById(id: string): Promise<Org | undefined>;
  /** Nothing is written unless the result is "inserted". The same id and slug again is "inserted" too. */
  insertOrg(org: Org, limit: number): Promise<"inserted" | "slug_taken" | "limit">;
  /** Deletes its tokens too. Returns false when it still has apps or does not exist. */
  deleteOrg(id: string): Promise<boolean>;

  findToken(id: string): Promise<Token | undefined>;
  /** Newest first; full-access ones for null. All without a page, which starts after a token's id. */
  tokens(org_id: string | null, page?: PageRequest<readonly [id: string]>): Promise<Token[]>;
  /**
   * Returns the stored token: this one or, for a repeated id, the first one. The limit is that of an organization's valid
   * tokens; with ended ones there are at most four times as many. Full-access tokens belong to no organization and are not
   * counted.
   */
  insertToken(token: Token, limit: number): Promise<Token | "no_org" | "limit">;
  /** Keeps the time of the first revocation. Returns false when the token does not exist. */
  revokeToken(id: string, at_ms: number): Promise<boolean>;
  /** Deletes the tokens that were revoked or expired before. */
  deleteEnded(before_ms: number): Promise<void>;
}
