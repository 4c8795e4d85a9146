/**
 * Requests between nodes carry a signature made with a key they share: an HMAC over time, nonce, method, path and
 * body. The answer carries one over the nonce and the term, so that a replica also knows that its primary is one.
 */
import { createHash, createHmac, randomBytes, timingSafeEqual } from "node:crypto";
import { REPLICATION_LIMITS } from "../limits.ts";

export const SIGNATURE_HEADER = "hangar-signature";
export const PROOF_HEADER = "hangar-proof";

export interface SignedRequest {
  method: string;
  path: string;
  body: Buffer;
}

export class Signer {
  readonly #key: Buffer;
  readonly #seen = new Map<string, number>();

  constructor(key: string) {
    this.#key = createHash("sha256").update(`hangar replication ${key}`).digest();
  }

  /** The header's value, and the nonce in it. */
  sign(request: SignedRequest, now_ms: number): { header: string; nonce: string } {
    const nonce = randomBytes(16).toString("hex");
    return { header: `${now_ms} ${nonce} ${this.#request(request, String(now_ms), nonce)}`, nonce };
  }

  /** The nonce of a good signature that was not used before; undefined for any other. */
  verify(request: SignedRequest, header: string | undefined, now_ms: number): string | undefined {
    const [time = "", nonce = "", signature = ""] = (header ?? "").split(" ");
    const age_ms = Math.abs(now_ms - Number(time));
    if (!(age_ms <= REPLICATION_LIMITS.signature_age_ms) || !/^[0-9a-f]{32}$/.test(nonce)) return undefined;
    if (!equal(signature, this.#request(request, time, nonce))) return undefined;
    this.#forgetOld(now_ms);
    if (this.#seen.has(nonce)) return undefined;
    this.#seen.set(nonce, now_ms);
    return nonce;
  }

  prove(nonce: string, term: number): string {
    return this.#mac(["answer", nonce, String(term)]);
  }

  proves(proof: string | undefined, nonce: string, term: number): boolean {
    return equal(proof ?? "", this.prove(nonce, term));
  }

  #request({ method, path, body }: SignedRequest, time: string, nonce: string): string {
    return this.#mac(["request", time, nonce, method, path, createHash("sha256").update(body).digest("hex")]);
  }

  #mac(parts: readonly string[]): string {
    return createHmac("sha256", this.#key).update(JSON.stringify(parts)).digest("hex");
  }

  #forgetOld(now_ms: number): void {
    for (const [nonce, at_ms] of this.#seen) {
      if (now_ms - at_ms < 2 * REPLICATION_LIMITS.signature_age_ms) return;
      this.#seen.delete(nonce);
    }
  }
}

/** In constant time, so that a signature cannot be found out byte by byte. */
function equal(a: string, b: string): boolean {
  const [x, y] = [Buffer.from(a), Buffer.from(b)];
  return x.length === y.length && timingSafeEqual(x, y);
}
