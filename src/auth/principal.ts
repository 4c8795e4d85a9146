import { type Caveat, caveatWords, refusal, type Wish } from "#core/caveats.ts";
import type { Caller } from "#http/access.ts";
import type { Org, TokenKind } from "./types.ts";

/** A caller whose token was found good: what it is and what it may do. */
export class Principal implements Caller {
  readonly token_id: string;
  readonly name: string;
  readonly kind: TokenKind;
  /** The organization of a created token; a full-access token has none and sees all. */
  readonly org: Org | undefined;
  readonly caveats: readonly Caveat[];

  constructor(token: { id: string; name: string; kind: TokenKind }, org: Org | undefined, caveats: readonly Caveat[]) {
    this.token_id = token.id;
    this.name = token.name || `${token.kind} token ${token.id}`;
    this.kind = token.kind;
    this.org = org;
    this.caveats = caveats;
  }

  /** Why it may not, or undefined when it may. Without an organization in the wish, the token's own is meant. */
  refuses(wish: Wish): string | undefined {
    return refusal(this.caveats, this.org && wish.org === undefined ? { ...wish, org: this.org.slug } : wish);
  }

  /** Whether it may know that the organization exists. */
  sees(org: Pick<Org, "id">): boolean {
    return this.org === undefined || this.org.id === org.id;
  }

  /** Its rights in words. */
  words(): string[] {
    return this.caveats.length === 0 ? ["everything, in every organization"] : this.caveats.map(caveatWords);
  }
}
