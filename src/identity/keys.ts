/**
 * The keys of each organization. They live in the store, sealed, and every process that shares it signs with the
 * same ones. A key is published an hour before it signs and two hours after, so a verifier that keeps the list
 * for a while never meets a key it does not know.
 *
 *   published ────────────────────────────────┐
 *            │ signs (30 days) │              │
 *   ─────────┴─────────────────┴──────────────┴──▶
 *                  ┌ successor published
 */
import { createPrivateKey, generateKeyPair, type JsonWebKey, type KeyObject } from "node:crypto";
import { promisify } from "node:util";
import { assert } from "#core/assert.ts";
import type { Clock } from "#core/clock.ts";
import { ALGS, type Alg, type PublicJwk, thumbprint } from "#core/jwt.ts";
import type { Sealer } from "#core/sealer.ts";
import { IDENTITY_LIMITS as LIMITS } from "./limits.ts";
import type { KeyStore, SigningKey } from "./store.ts";

const generate = promisify(generateKeyPair);

interface KeyParts {
  store: KeyStore;
  sealer: Sealer;
  clock: Clock;
}

interface Cached {
  keys: SigningKey[];
  read_at: number;
  /** Cached: unsealing and parsing an RSA key costs more than finding it. */
  opened: Map<string, KeyObject>;
}

export class KeyRing {
  readonly #parts: KeyParts;
  readonly #cache = new Map<string, Cached>();
  /** Keys being created; concurrent callers share them. */
  readonly #making = new Map<string, Promise<void>>();

  constructor(parts: KeyParts) {
    this.#parts = parts;
  }

  /** Published keys, newest first. */
  async published(org_id: string): Promise<PublicJwk[]> {
    const now = this.#parts.clock.now();
    const { keys } = await this.#current(org_id);
    return keys
      .filter(({ publish_until }) => publish_until === null || publish_until > now)
      .map(({ public_jwk }) => JSON.parse(public_jwk) as PublicJwk);
  }

  /** The current signing key. */
  async signer(org_id: string, alg: Alg): Promise<{ kid: string; alg: Alg; private_key: KeyObject }> {
    const cached = await this.#current(org_id);
    const now = this.#parts.clock.now();
    const own = cached.keys.filter((key) => key.alg === alg);
    // The very first key may come from a process whose clock is slightly ahead.
    const key = own.find(({ sign_from }) => sign_from <= now) ?? own.at(-1);
    assert(key, "an organization has a key of each kind");
    const private_key = cached.opened.get(key.id) ?? this.#open(key);
    cached.opened.set(key.id, private_key);
    return { kid: key.id, alg, private_key };
  }

  /**
   * Rotates an organization's keys early: published at once, signing after the usual delay. With `revoke`, for a leaked
   * key, they sign at once and the old ones are removed, which invalidates their tokens.
   */
  async rotate(org_id: string, { revoke }: { revoke: boolean }): Promise<void> {
    const { keys } = await this.#current(org_id);
    const { store, clock } = this.#parts;
    const now = clock.now();
    // A published key that does not sign yet already is the new one.
    const wanted = ALGS.filter((alg) => revoke || !keys.some((key) => key.alg === alg && key.sign_from > now));
    const [from, until] = revoke
      ? [now, { others: now, unless_after: Number.MAX_SAFE_INTEGER }]
      : [now + LIMITS.key_published_before_ms, undefined];
    await Promise.all(wanted.map((alg) => this.#make(org_id, alg, from, until)));
    if (revoke) await store.purgeKeys(org_id, now + 1);
    this.#cache.delete(org_id);
  }

  /** All stored keys, for administration. */
  async all(org_id: string): Promise<SigningKey[]> {
    return (await this.#current(org_id)).keys;
  }

  async #current(org_id: string): Promise<Cached> {
    const known = this.#cache.get(org_id);
    const now = this.#parts.clock.now();
    const cached = known && Math.abs(now - known.read_at) < LIMITS.key_cache_ms ? known : await this.#read(org_id);
    if (ALGS.every((alg) => !this.#due(cached.keys, alg, now))) return cached;
    const making = this.#making.get(org_id) ?? this.#renew(org_id).finally(() => this.#making.delete(org_id));
    this.#making.set(org_id, making);
    await making;
    return await this.#read(org_id);
  }

  async #read(org_id: string): Promise<Cached> {
    const keys = await this.#parts.store.keys(org_id);
    const opened = this.#cache.get(org_id)?.opened ?? new Map<string, KeyObject>();
    const fresh = { keys, read_at: this.#parts.clock.now(), opened };
    this.#cache.delete(org_id);
    this.#cache.set(org_id, fresh);
    const [oldest] = this.#cache.keys();
    if (this.#cache.size > LIMITS.key_cache_orgs && oldest !== undefined) this.#cache.delete(oldest);
    return fresh;
  }

  /** When the next key of this kind starts signing, if it must be created now; otherwise undefined. */
  #due(keys: readonly SigningKey[], alg: Alg, now: number): { from: number } | undefined {
    const newest = keys.find((key) => key.alg === alg);
    if (!newest) return { from: now };
    const ends = newest.sign_from + LIMITS.key_signs_ms;
    if (now < ends - LIMITS.key_published_before_ms) return undefined;
    // When late, the old key keeps signing until the new one has been published long enough.
    return { from: Math.max(ends, now + LIMITS.key_published_before_ms) };
  }

  async #renew(org_id: string): Promise<void> {
    const { store, clock } = this.#parts;
    const now = clock.now();
    const keys = await store.keys(org_id);
    const due = ALGS.flatMap((alg) => {
      const next = this.#due(keys, alg, now);
      return next ? [{ alg, from: next.from }] : [];
    });
    await Promise.all(due.map(({ alg, from }) => this.#make(org_id, alg, from)));
    await store.purgeKeys(org_id, now);
  }

  async #make(
    org_id: string,
    alg: Alg,
    sign_from: number,
    // Of concurrently created keys the first is kept: their times differ by less than this.
    until = {
      others: sign_from + LIMITS.key_published_after_ms,
      unless_after: sign_from - LIMITS.key_published_before_ms / 2,
    },
  ): Promise<void> {
    const { store, sealer, clock } = this.#parts;
    const { publicKey, privateKey } =
      alg === "RS256" ? await generate("rsa", { modulusLength: 2048 }) : await generate("ec", { namedCurve: "P-256" });
    const jwk: JsonWebKey = publicKey.export({ format: "jwk" });
    const id = thumbprint(jwk);
    const public_jwk: PublicJwk = { ...jwk, kid: id, alg, use: "sig" };
    const der = privateKey.export({ type: "pkcs8", format: "der" });
    const key: SigningKey = {
      id,
      org_id,
      alg,
      public_jwk: JSON.stringify(public_jwk),
      private_key: sealer.seal(`signing_key:${id}`, der),
      created_at: clock.now(),
      sign_from,
      publish_until: null,
    };
    await store.insertKey(key, until.others, until.unless_after);
  }

  #open({ id, private_key }: SigningKey): KeyObject {
    return createPrivateKey({
      key: this.#parts.sealer.open(`signing_key:${id}`, private_key),
      format: "der",
      type: "pkcs8",
    });
  }
}
