import { hash } from "node:crypto";
import { type AccessRequest, type Caveat, caveatWords, refusal } from "#core/caveats.ts";
import { attenuate, parse, serialize } from "#core/macaroon.ts";
import type { Caller } from "#http/access.ts";
import type { Org, Token, TokenKind } from "./types.ts";

/** A caller with a valid token. */
export class Principal implements Caller {
  readonly token_id: string;
  readonly name: string;
  readonly kind: TokenKind;
  /** The organization of a created token; a full-access token has none and sees all. */
  readonly org: Org | undefined;
  readonly caveats: readonly Caveat[];
  /** Expiry from its row and its caveats, in milliseconds. */
  readonly expires_at: number | null;
  /** The machine whose own socket the request came through. */
  readonly from_machine: string | undefined;
  readonly #text: string;

  constructor(
    token: Pick<Token, "id" | "name" | "kind" | "expires_at">,
    {
      org,
      caveats,
      text,
      from_machine,
    }: { org?: Org; caveats: readonly Caveat[]; text: string; from_machine?: string },
  ) {
    this.#text = text;
    this.from_machine = from_machine;
    this.expires_at = endOf(token, caveats);
    this.token_id = token.id;
    this.name = token.name || `${token.kind} token ${token.id}`;
    this.kind = token.kind;
    this.org = org;
    this.caveats = caveats;
  }

  /** Distinguishes it from all other tokens, including attenuated ones. */
  get fingerprint(): string {
    return hash("sha256", this.#text, "base64url");
  }

  /** A connector's credential, used by machines through the gateway: it creates no credentials. */
  get is_borrowed(): boolean {
    return this.kind === "connector";
  }

  /** The same token in a request through the machine's own socket. */
  insideMachine(from_machine: string): Principal {
    const { token_id: id, name, kind, expires_at, org, caveats } = this;
    return new Principal(
      { id, name, kind, expires_at },
      { ...(org && { org }), caveats, text: this.#text, from_machine },
    );
  }

  /** The same token with more conditions. A full-access token has none: it cannot be narrowed. */
  attenuated(more: readonly Caveat[]): string {
    return serialize(attenuate(parse(this.#text), more));
  }

  get is_operator(): boolean {
    return this.kind === "full";
  }

  /** Why it may not, or undefined. Without an organization in the request, the token's own is used. */
  refuses(request: Omit<AccessRequest, "from_machine">): string | undefined {
    const org = request.org ?? this.org?.slug;
    const { from_machine } = this;
    return refusal(this.caveats, {
      ...request,
      ...(org !== undefined && { org }),
      ...(from_machine && { from_machine }),
    });
  }

  /** Whether it may know that the organization exists. */
  sees(org: Pick<Org, "id">): boolean {
    return this.org === undefined || this.org.id === org.id;
  }

  /** Its rights for display. */
  words(): string[] {
    return this.caveats.length === 0 ? ["everything, in every organization"] : this.caveats.map(caveatWords);
  }
}

function endOf({ expires_at }: Pick<Token, "expires_at">, caveats: readonly Caveat[]): number | null {
  const ends = caveats.flatMap((caveat) => (caveat.type === "validity" ? [caveat.not_after_s * 1000] : []));
  const all = expires_at === null ? ends : [expires_at, ...ends];
  return all.length === 0 ? null : Math.min(...all);
}
