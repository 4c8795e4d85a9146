import { createHash, createHmac, randomBytes } from "node:crypto";
import type { IncomingHttpHeaders } from "node:http";
import { sameSecret } from "#core/same-secret.ts";
import { REPLICATION_LIMITS } from "../limits.ts";
import { type Credentials, headerOf, Nonces, type SignedRequest } from "./credentials.ts";

const SIGNATURE_HEADER = "hangar-signature";

/** A key shared by all nodes of a cluster: HMAC-SHA256 over time, nonce, method, path and body digest. */
export class SharedKey implements Credentials {
  readonly #key: Buffer;
  readonly #nonces = new Nonces();

  constructor(key: string) {
    this.#key = createHash("sha256").update(`hangar replication ${key}`).digest();
  }

  sign(request: SignedRequest, now_ms: number): Promise<{ headers: Record<string, string>; nonce: string }> {
    const nonce = randomBytes(16).toString("hex");
    const value = `${now_ms} ${nonce} ${this.#request(request, String(now_ms), nonce)}`;
    return Promise.resolve({ headers: { [SIGNATURE_HEADER]: value }, nonce });
  }

  verify(request: SignedRequest, headers: IncomingHttpHeaders, now_ms: number): Promise<string | undefined> {
    const [time = "", nonce = "", signature = ""] = (headerOf(headers, SIGNATURE_HEADER) ?? "").split(" ");
    const young = Math.abs(now_ms - Number(time)) <= REPLICATION_LIMITS.signature_age_ms;
    // The nonce last: only a valid request consumes one.
    const good = young && sameSecret(signature, this.#request(request, time, nonce)) && this.#nonces.use(nonce, now_ms);
    return Promise.resolve(good ? nonce : undefined);
  }

  prove(nonce: string, term: number): Promise<string> {
    return Promise.resolve(this.#mac(["answer", nonce, String(term)]));
  }

  async proves(proof: string | undefined, nonce: string, term: number): Promise<boolean> {
    return sameSecret(proof ?? "", await this.prove(nonce, term));
  }

  #request({ method, path, body_sha256 }: SignedRequest, time: string, nonce: string): string {
    return this.#mac(["request", time, nonce, method, path, body_sha256]);
  }

  #mac(parts: readonly string[]): string {
    return createHmac("sha256", this.#key).update(JSON.stringify(parts)).digest("hex");
  }
}
