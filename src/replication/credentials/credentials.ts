/**
 * How nodes know each other: a key they share, or the identity the platform gives to machines. Either way a request
 * carries a proof that covers its method, path and body and is good once, and the answer carries one that covers the
 * term, so that a replica also knows that its primary is one. Each implementation passes `credentials.suite.ts`.
 */
import { createHash } from "node:crypto";
import type { IncomingHttpHeaders } from "node:http";
import { REPLICATION_LIMITS } from "../limits.ts";

export const PROOF_HEADER = "hangar-proof";
/** SHA-256 of the body, hex. This is signed, so a body need not be in memory. */
export const BODY_HEADER = "hangar-body-sha256";

export interface SignedRequest {
  method: string;
  path: string;
  /** SHA-256 of the body, hex. */
  body_sha256: string;
}

export interface Credentials {
  /** Headers that authenticate the request, and the nonce that the response must contain. */
  sign(request: SignedRequest, now_ms: number): Promise<{ headers: Record<string, string>; nonce: string }>;
  /** The nonce of a valid signature that was not used before; undefined otherwise. */
  verify(request: SignedRequest, headers: IncomingHttpHeaders, now_ms: number): Promise<string | undefined>;
  /** The proof in the response to `nonce`. */
  prove(nonce: string, term: number): Promise<string>;
  proves(proof: string | undefined, nonce: string, term: number, now_ms: number): Promise<boolean>;
}

export function sha256(...parts: (string | Uint8Array)[]): string {
  const hash = createHash("sha256");
  for (const part of parts) hash.update(part);
  return hash.digest("hex");
}

/** One header's value; undefined when it is missing. */
export function headerOf(headers: IncomingHttpHeaders, name: string): string | undefined {
  const value = headers[name];
  return typeof value === "string" ? value : undefined;
}

/** Used nonces, for as long as their requests would be accepted. */
export class Nonces {
  readonly #seen = new Map<string, number>();

  /** Returns true the first time. */
  use(nonce: string, now_ms: number): boolean {
    for (const [old, at_ms] of this.#seen) {
      if (now_ms - at_ms < 2 * REPLICATION_LIMITS.signature_age_ms) break;
      this.#seen.delete(old);
    }
    if (!/^[0-9a-f]{32}$/.test(nonce) || this.#seen.has(nonce)) return false;
    this.#seen.set(nonce, now_ms);
    return true;
  }
}
