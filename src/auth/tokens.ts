import { hash, timingSafeEqual } from "node:crypto";
import { ACTIONS, ALL_ACTIONS, type Caveat, refusal } from "#core/caveats.ts";
import { type Clock, isoTime } from "#core/clock.ts";
import { fail } from "#core/errors.ts";
import type { Ids } from "#core/ids.ts";
import { LIMITS } from "#core/limits.ts";
import { isGenuine, MACAROON_PREFIX, type Macaroon, MacaroonError, mint, parse, serialize } from "#core/macaroon.ts";
import type { Sealer } from "#core/sealer.ts";
import { Principal } from "./principal.ts";
import type { AuthStore } from "./store.ts";
import type { Org, Token, TokenKind } from "./types.ts";

/** `hf1_` + id (26 characters) + secret (43 characters of base64url). */
const FULL_PREFIX = "hf1_";
const FULL = /^hf1_([0-9A-Z]{26})([\w-]{43})$/;

export interface NewToken {
  org: Org;
  kind: Exclude<TokenKind, "full">;
  name: string;
  expiry_ms: number;
  /** The creator: the new token can do no more, lives no longer, and is revoked with the creator's. */
  maker: Principal;
  /** For `deploy`: its app. */
  app?: string;
}

/** Creates, verifies and revokes tokens. */
export class TokenService {
  readonly #parts: { store: AuthStore; sealer: Sealer; clock: Clock };

  constructor(parts: { store: AuthStore; sealer: Sealer; clock: Clock }) {
    this.#parts = parts;
  }

  /** Creates a full-access token. Only its hash is stored. */
  async createFull(name: string, ids: Ids): Promise<string> {
    const id = ids.ulid();
    const secret = Buffer.from(ids.bytes(32)).toString("base64url");
    const token: Token = {
      id,
      org_id: null,
      kind: "full",
      name,
      secret: sha256(secret),
      created_at: this.#parts.clock.now(),
      expires_at: null,
      revoked_at: null,
      parent_id: null,
    };
    await this.#parts.store.insertToken(token, LIMITS.tokens_per_org);
    return `${FULL_PREFIX}${id}${secret}`;
  }

  async create(wanted: NewToken, ids: Ids): Promise<{ text: string; token: Token }> {
    const { store, sealer, clock } = this.#parts;
    const id = ids.ulid();
    const rootKey = ids.bytes(32);
    const now = clock.now();
    const expires_at = Math.min(now + wanted.expiry_ms, wanted.maker.expires_at ?? Number.POSITIVE_INFINITY);
    const token: Token = {
      id,
      org_id: wanted.org.id,
      kind: wanted.kind,
      name: wanted.name,
      secret: sealer.seal(`token:${id}`, rootKey),
      created_at: now,
      expires_at,
      revoked_at: null,
      parent_id: wanted.maker.token_id,
    };
    if (firstCaveats(wanted, expires_at).length > LIMITS.token_caveats)
      fail(
        "limit_reached",
        `a token has at most ${LIMITS.token_caveats} caveats, its maker's included (token_caveats)`,
      );
    const stored = await store.insertToken(token, LIMITS.tokens_per_org);
    if (stored === "limit")
      fail("limit_reached", `an organization has at most ${LIMITS.tokens_per_org} valid tokens (limit tokens_per_org)`);
    if (stored === "no_org") fail("not_found", "the organization was deleted in the meantime");
    // A repeated request gets the first one's token, with its expiry.
    const text = serialize(mint(rootKey, id, firstCaveats(wanted, stored.expires_at ?? expires_at)));
    return { text, token: stored };
  }

  /** Verifies a token. Fails with `unauthorized` and the reason. */
  async verify(text: string): Promise<Principal> {
    if (text.startsWith(FULL_PREFIX)) return await this.#verifyFull(text);
    if (text.startsWith(MACAROON_PREFIX)) return await this.#verifyMacaroon(text);
    return unauthorized(`this is not a token of this platform (they start with ${FULL_PREFIX} or ${MACAROON_PREFIX})`);
  }

  /**
   * Why a token is no longer valid, or undefined: it, or one of its ancestors, was revoked, expired or deleted. What a
   * token created checks this before it acts.
   */
  async fallen(id: string): Promise<string | undefined> {
    const { store, clock } = this.#parts;
    for (let next: string | null = id, steps = 0; next !== null; steps++) {
      const token: Token | undefined = steps < LIMITS.token_chain ? await store.findToken(next) : undefined;
      if (!token) return "is not known here";
      if (token.revoked_at !== null) return `was revoked ${isoTime(token.revoked_at)}`;
      if (token.expires_at !== null && token.expires_at <= clock.now()) return `expired ${isoTime(token.expires_at)}`;
      next = token.parent_id;
    }
    return undefined;
  }

  /** Whether it is a full-access token: what the operator created may reach private addresses. */
  async isFullAccess(id: string): Promise<boolean> {
    return (await this.#parts.store.findToken(id))?.kind === "full";
  }

  /** Revokes the token and returns it; undefined when the organization has no such token. */
  async revoke(org_id: string | null, id: string): Promise<Token | undefined> {
    const { store, clock } = this.#parts;
    const token = await store.findToken(id);
    if (token?.org_id !== org_id) return undefined;
    await store.revokeToken(id, clock.now());
    return await store.findToken(id);
  }

  /** Deletes tokens that ended long ago. What they created ended with them. */
  async expire(): Promise<void> {
    const { store, clock } = this.#parts;
    await store.deleteEnded(clock.now() - LIMITS.ended_tokens_kept_ms);
  }

  async #verifyFull(text: string): Promise<Principal> {
    const [, id = "", secret = ""] = FULL.exec(text) ?? [];
    const token = await this.#parts.store.findToken(id);
    // The same work whether the id exists or not.
    const right = timingSafeEqual(sha256(secret), token?.kind === "full" ? token.secret : Buffer.alloc(32));
    if (!token || !right) return unauthorized("the token is not known here");
    await this.#refuseFallen(token);
    return new Principal(token, { caveats: [], text });
  }

  async #verifyMacaroon(text: string): Promise<Principal> {
    const { store, sealer, clock } = this.#parts;
    const macaroon = readMacaroon(text);
    const token = await store.findToken(macaroon.id);
    if (!token?.org_id) return unauthorized("the token is not known here");
    if (!isGenuine(sealer.open(`token:${token.id}`, token.secret), macaroon))
      return unauthorized("the token was changed or is incomplete");
    await this.#refuseFallen(token);
    const validity = macaroon.caveats.filter((caveat) => caveat.type === "validity");
    const expired = refusal(validity, { action: "read", now_ms: clock.now() });
    if (expired) return unauthorized(expired);
    const org = await store.findOrgById(token.org_id);
    // The organization was deleted meanwhile, and the token with it.
    if (!org) return unauthorized("the token is not known here");
    return new Principal(token, { org, caveats: macaroon.caveats, text });
  }

  async #refuseFallen({ revoked_at, parent_id }: Token): Promise<void> {
    if (revoked_at !== null) unauthorized(`the token was revoked ${isoTime(revoked_at)}`);
    const fallen = parent_id === null ? undefined : await this.fallen(parent_id);
    if (fallen) unauthorized(`the token that made this one ${fallen}`);
  }
}

/** The id in an Authorization header that looks like one of our tokens, valid or not. */
export function tokenIdOf(authorization: string | undefined): string | undefined {
  const text = authorization?.trim().split(/\s+/).at(-1) ?? "";
  if (!text.startsWith(MACAROON_PREFIX)) return FULL.exec(text)?.[1];
  try {
    return parse(text).id;
  } catch {
    return undefined;
  }
}

function firstCaveats({ org, kind, app, maker }: NewToken, expires_at: number): Caveat[] {
  const caveats: Caveat[] = [
    { type: "org", org: org.slug, actions: kind === "readonly" ? ACTIONS.read : ALL_ACTIONS },
    // Valid from the start, even if a clock is set back, or is that of another host.
    { type: "validity", not_before_s: 0, not_after_s: Math.ceil(expires_at / 1000) },
  ];
  if (app !== undefined) caveats.push({ type: "apps", apps: { [app]: ALL_ACTIONS } });
  return [...caveats, ...maker.caveats];
}

function readMacaroon(text: string): Macaroon {
  try {
    return parse(text);
  } catch (thrown) {
    if (thrown instanceof MacaroonError) return unauthorized(thrown.message);
    throw thrown;
  }
}

export function unauthorized(text: string): never {
  fail("unauthorized", text, {
    hint: "send `Authorization: Bearer <token>`; `hangar auth token` prints a full-access one",
    headers: { "www-authenticate": "Bearer" },
  });
}

const sha256 = (text: string): Buffer => hash("sha256", text, "buffer");
