import type { PageRequest } from "#core/list-page.ts";
import type { Org, Token } from "./types.ts";

/** Keeps and finds organizations and tokens; decides nothing. Implemented in stores/, examined by `store.suite.ts`. */
export interface AuthStore {
  /** By slug. */
  orgs(): Promise<Org[]>;
  findOrg(slug: string): Promise<Org | undefined>;
  findOrgById(id: string): Promise<Org | undefined>;
  /** Nothing is written unless it is "inserted". The same id and slug a second time is "inserted". */
  insertOrg(org: Org, limit: number): Promise<"inserted" | "slug_taken" | "limit">;
  /** Its tokens go with it. False when it still has apps, or is not there. */
  deleteOrg(id: string): Promise<boolean>;

  findToken(id: string): Promise<Token | undefined>;
  /** Newest first; the full-access ones for null. All when no page is asked for, which comes after a token's id. */
  tokens(org_id: string | null, page?: PageRequest<readonly [id: string]>): Promise<Token[]>;
  /**
   * Answers the token that is stored: this one, or, for the same id a second time, the first one. Full-access ones belong to
   * no organization, and are not counted.
   */
  insertToken(token: Token, limit: number): Promise<Token | "no_org" | "limit">;
  /** Keeps the moment of the first revocation. False when there is no such token. */
  revokeToken(id: string, at_ms: number): Promise<boolean>;
}
