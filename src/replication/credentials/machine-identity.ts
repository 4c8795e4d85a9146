/**
 * The identity the platform gives to machines instead of a key: each request carries a token minted for it alone. Its
 * audience is a digest of method, path, body and nonce, so it is worth nothing for any other request.
 */
import { randomBytes } from "node:crypto";
import type { IncomingHttpHeaders } from "node:http";
import { createRemoteJWKSet, customFetch, type JWTVerifyGetKey, jwtVerify } from "jose";
import { REPLICATION_LIMITS } from "../limits.ts";
import { type Credentials, headerOf, Nonces, type SignedRequest, sha256 } from "./credentials.ts";

const NONCE_HEADER = "hangar-nonce";
const REQUEST_MS = 5000;

export interface IdentityOptions {
  /** Accepted `iss`; its configuration names the keys, unless `jwks_url` does. */
  issuer: string;
  jwks_url?: string | undefined;
  /** The keys as JSON, from another source. */
  keys?(): Promise<string>;
  /** Accepted `sub`: `org:app:machine`, where `*` matches anything but a colon. */
  subject: string;
  /** Requests a token of this machine for an audience. */
  mint(audience: string): Promise<string>;
}

export class MachineIdentity implements Credentials {
  readonly #options: IdentityOptions;
  readonly #nonces = new Nonces();
  readonly #subject: RegExp;
  #keys: Promise<JWTVerifyGetKey> | undefined;

  constructor(options: IdentityOptions) {
    this.#options = options;
    this.#subject = subjectPattern(options.subject);
  }

  async sign(request: SignedRequest): Promise<{ headers: Record<string, string>; nonce: string }> {
    const nonce = randomBytes(16).toString("hex");
    const token = await this.#options.mint(requestAudience(request, nonce));
    return { headers: { authorization: `Bearer ${token}`, [NONCE_HEADER]: nonce }, nonce };
  }

  async verify(request: SignedRequest, headers: IncomingHttpHeaders, now_ms: number): Promise<string | undefined> {
    const nonce = headerOf(headers, NONCE_HEADER) ?? "";
    const [scheme, token = ""] = (headerOf(headers, "authorization") ?? "").split(" ");
    if (scheme !== "Bearer" || !(await this.#good(token, requestAudience(request, nonce), now_ms))) return undefined;
    return this.#nonces.use(nonce, now_ms) ? nonce : undefined;
  }

  async prove(nonce: string, term: number): Promise<string> {
    return await this.#options.mint(answerAudience(nonce, term));
  }

  async proves(proof: string | undefined, nonce: string, term: number, now_ms: number): Promise<boolean> {
    return proof !== undefined && (await this.#good(proof, answerAudience(nonce, term), now_ms));
  }

  async #good(token: string, audience: string, now_ms: number): Promise<boolean> {
    try {
      const { payload } = await jwtVerify(token, await this.#jwks(), {
        issuer: this.#options.issuer,
        audience,
        // No symmetric algorithms: an issuer's keys are public.
        algorithms: ["RS256", "ES256", "EdDSA"],
        currentDate: new Date(now_ms),
        maxTokenAge: REPLICATION_LIMITS.signature_age_ms / 1000,
        clockTolerance: REPLICATION_LIMITS.signature_age_ms / 1000,
      });
      return this.#subject.test(payload.sub ?? "");
    } catch (error) {
      // An unreachable issuer is not an invalid token.
      if (error instanceof IssuerUnreachable) throw error;
      return false;
    }
  }

  async #jwks(): Promise<JWTVerifyGetKey> {
    this.#keys ??= this.#findKeys();
    try {
      return await this.#keys;
    } catch (error) {
      // Fetched again next time.
      this.#keys = undefined;
      throw error;
    }
  }

  async #findKeys(): Promise<JWTVerifyGetKey> {
    const { issuer, jwks_url, keys } = this.#options;
    if (keys) return createRemoteJWKSet(new URL(issuer), { [customFetch]: async () => new Response(await keys()) });
    if (jwks_url !== undefined) return createRemoteJWKSet(new URL(jwks_url));
    const url = `${issuer.replace(/\/+$/, "")}/.well-known/openid-configuration`;
    try {
      const answer = await fetch(url, { signal: AbortSignal.timeout(REQUEST_MS) });
      const { jwks_uri } = (await answer.json()) as { jwks_uri?: string };
      return createRemoteJWKSet(new URL(jwks_uri ?? ""));
    } catch (cause) {
      throw new IssuerUnreachable(`${url} does not say where the keys of the issuer are`, { cause });
    }
  }
}

class IssuerUnreachable extends Error {
  override readonly name = "IssuerUnreachable";
}

const requestAudience = ({ method, path, body_sha256 }: SignedRequest, nonce: string): string =>
  `hangar-db:${sha256(JSON.stringify(["request", nonce, method, path, body_sha256]))}`;

const answerAudience = (nonce: string, term: number): string =>
  `hangar-db:${sha256(JSON.stringify(["answer", nonce, term]))}`;

function subjectPattern(subject: string): RegExp {
  const parts = subject.split(":");
  if (parts.length !== 3 || parts.some((part) => !/^[\w.*-]+$/.test(part))) {
    throw new Error(`${JSON.stringify(subject)} is not a subject such as org:app:machine or org:app:*`);
  }
  return new RegExp(`^${parts.map((part) => part.replaceAll(".", "\\.").replaceAll("*", "[^:]*")).join(":")}$`);
}
