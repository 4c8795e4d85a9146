import { createHash, createPublicKey, type KeyObject, sign } from "node:crypto";
import { request as plainRequest } from "node:http";
import { request } from "node:https";
import { text } from "node:stream/consumers";
import type { Clock } from "#core/clock.ts";

const NONCE_TRIES = 5;

/** What the authority said went wrong. */
class AcmeProblem extends Error {
  override readonly name = "AcmeProblem";
}

interface Directory {
  newNonce: string;
  newAccount: string;
  newOrder: string;
}

interface Order {
  url: string;
  status: string;
  authorizations: string[];
  finalize: string;
  certificate?: string;
  error?: { detail?: string };
}

interface Authorization {
  status: string;
  challenges: { type: string; url: string; token: string; status: string; error?: { detail?: string } }[];
}

interface Reply {
  status: number;
  headers: Record<string, string | string[] | undefined>;
  body: string;
}

const POLL_MS = 500;
const POLLS = 120;

interface AcmeParts {
  directory_url: string;
  /** PEM of the authority that vouches for the directory itself, when the system does not know it. */
  ca: string | undefined;
  key: KeyObject;
  clock: Clock;
  /** Answers a question at `/.well-known/acme-challenge/<token>` until it is taken back. */
  present(token: string, answer: string): Promise<() => void>;
}

/** A client of a certificate authority (RFC 8555), as far as one certificate by http-01 needs it. */
export class AcmeClient {
  readonly #parts: AcmeParts;
  #directory: Directory | undefined;
  #nonce: string | undefined;
  #account: string | undefined;

  constructor(parts: AcmeParts, account?: string) {
    this.#parts = parts;
    this.#account = account;
  }

  /** The account of the key, made when there is none. */
  async account(): Promise<string> {
    if (this.#account) return this.#account;
    const { newAccount } = await this.#find();
    const { headers } = await this.#post(newAccount, { termsOfServiceAgreed: true });
    this.#account = String(headers["location"]);
    return this.#account;
  }

  /** The chain as PEM. */
  async issue(hostname: string, csr: Buffer): Promise<string> {
    await this.account();
    const { newOrder } = await this.#find();
    const wish = { identifiers: [{ type: "dns", value: hostname }] };
    const made = await this.#post(newOrder, wish);
    const order: Order = { ...(JSON.parse(made.body) as Order), url: String(made.headers["location"]) };
    for (const url of order.authorizations) await this.#authorize(url);
    await this.#post(order.finalize, { csr: csr.toString("base64url") });
    const done = await this.#until<Order>(order.url, ({ status }) => status !== "processing" && status !== "ready");
    if (done.status !== "valid" || !done.certificate)
      throw new AcmeProblem(done.error?.detail ?? `the order is ${done.status}`);
    return (await this.#post(done.certificate, undefined)).body;
  }

  async #authorize(url: string): Promise<void> {
    const authorization = JSON.parse((await this.#post(url, undefined)).body) as Authorization;
    if (authorization.status === "valid") return;
    const challenge = authorization.challenges.find(({ type }) => type === "http-01");
    if (!challenge) throw new AcmeProblem("the authority does not offer http-01 for this name");
    const takeBack = await this.#parts.present(challenge.token, `${challenge.token}.${thumbprint(this.#parts.key)}`);
    try {
      await this.#post(challenge.url, {});
      const done = await this.#until<Authorization>(url, ({ status }) => status !== "pending");
      if (done.status === "valid") return;
      const failed = done.challenges.find(({ error }) => error)?.error;
      throw new AcmeProblem(failed?.detail ?? `the name was not confirmed (${done.status})`);
    } finally {
      takeBack();
    }
  }

  async #until<T>(url: string, done: (state: T) => boolean): Promise<T> {
    for (let poll = 0; poll < POLLS; poll++) {
      const state = JSON.parse((await this.#post(url, undefined)).body) as T;
      if (done(state)) return state;
      await this.#parts.clock.sleep(POLL_MS);
    }
    throw new AcmeProblem("the authority did not come to an end in time");
  }

  async #find(): Promise<Directory> {
    this.#directory ??= JSON.parse((await this.#send("GET", this.#parts.directory_url)).body) as Directory;
    return this.#directory;
  }

  /** A signed request; without a payload it is a read. A nonce that is refused is fetched anew, a few times. */
  async #post(url: string, payload: object | undefined, tries = NONCE_TRIES): Promise<Reply> {
    const nonce = this.#nonce ?? (await this.#freshNonce());
    this.#nonce = undefined;
    const { key } = this.#parts;
    const identity = this.#account ? { kid: this.#account } : { jwk: publicJwk(key) };
    const part = (value: object | undefined): string =>
      value === undefined ? "" : Buffer.from(JSON.stringify(value)).toString("base64url");
    const head = part({ alg: "ES256", nonce, url, ...identity });
    const body = part(payload);
    const signature = sign("sha256", Buffer.from(`${head}.${body}`), { key, dsaEncoding: "ieee-p1363" });
    const jws = { protected: head, payload: body, signature: signature.toString("base64url") };
    const reply = await this.#send("POST", url, JSON.stringify(jws));
    if (reply.status < 400) return reply;
    const problem = parseProblem(reply.body);
    if (tries > 1 && problem.type?.endsWith(":badNonce")) return await this.#post(url, payload, tries - 1);
    throw new AcmeProblem(problem.detail ?? `the authority answered ${reply.status}`);
  }

  async #freshNonce(): Promise<string> {
    await this.#send("HEAD", (await this.#find()).newNonce);
    const nonce = this.#nonce;
    if (!nonce) throw new AcmeProblem("the authority gave no nonce");
    return nonce;
  }

  async #send(method: string, url: string, body?: string): Promise<Reply> {
    const { ca } = this.#parts;
    const ask = url.startsWith("https:") ? request : plainRequest;
    const { promise, resolve, reject } = Promise.withResolvers<Reply>();
    const headers = { "content-type": "application/jose+json", "user-agent": "hangar" };
    const outgoing = ask(url, { method, headers, timeout: 15_000, ...(ca ? { ca } : {}) }, (incoming) => {
      const nonce = incoming.headers["replay-nonce"];
      if (nonce) this.#nonce = String(nonce);
      text(incoming).then(
        (received) => resolve({ status: incoming.statusCode ?? 0, headers: incoming.headers, body: received }),
        reject,
      );
    });
    outgoing.on("timeout", () => outgoing.destroy(new AcmeProblem("the authority does not answer")));
    outgoing.on("error", (error) =>
      reject(new AcmeProblem(`the authority cannot be reached: ${error.message}`, { cause: error })),
    );
    outgoing.end(body);
    return await promise;
  }
}

function parseProblem(body: string): { type?: string; detail?: string } {
  try {
    return JSON.parse(body) as { type?: string; detail?: string };
  } catch {
    return {};
  }
}

/** In the order a thumbprint wants them. */
function publicJwk(key: KeyObject): Record<string, string> {
  const { crv, kty, x, y } = createPublicKey(key).export({ format: "jwk" });
  return { crv: crv ?? "", kty: kty ?? "", x: x ?? "", y: y ?? "" };
}

const thumbprint = (key: KeyObject): string =>
  createHash("sha256")
    .update(JSON.stringify(publicJwk(key)))
    .digest("base64url");
