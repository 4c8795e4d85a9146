/** Requests from one node to another: signed when there is a key, bounded, and with the answer's proof checked. */
import { request as httpRequest, type IncomingMessage } from "node:http";
import type { Clock } from "#core/clock.ts";
import { REPLICATION_LIMITS } from "../limits.ts";
import { PROOF_HEADER, SIGNATURE_HEADER, type Signer } from "./signature.ts";

export const TERM_HEADER = "hangar-term";

/** The peer answered, and it was a no. */
export class PeerRefused extends Error {
  override readonly name = "PeerRefused";
  readonly status: number;

  constructor(status: number, message: string) {
    super(message);
    this.status = status;
  }
}

export interface Answer {
  response: IncomingMessage;
  /** The term the peer says it is primary of; 0 when it says none. */
  term: number;
}

export class Peer {
  readonly url: string;
  readonly #clock: Clock;
  readonly #signer: Signer | undefined;

  constructor(url: string, clock: Clock, signer: Signer | undefined) {
    this.url = url.replace(/\/+$/, "");
    this.#clock = clock;
    this.#signer = signer;
  }

  /** host:port, as events name it. */
  get hostname(): string {
    return new URL(this.url).host;
  }

  /** The answer when its status is 200; the body is the caller's to read. */
  async open(method: string, path: string, value: unknown, signal: AbortSignal): Promise<Answer> {
    const body = value === undefined ? Buffer.alloc(0) : Buffer.from(JSON.stringify(value));
    const signed = this.#signer?.sign({ method, path, body }, this.#clock.now());
    const headers = {
      "content-type": "application/json",
      "content-length": body.length,
      ...(signed ? { [SIGNATURE_HEADER]: signed.header } : {}),
    };
    const response = await new Promise<IncomingMessage>((done, failed) => {
      const request = httpRequest(`${this.url}${path}`, { method, headers, signal });
      request.on("response", done);
      request.on("error", failed);
      request.setTimeout(REPLICATION_LIMITS.silence_ms, () => request.destroy(new Error(`${this.url} is silent`)));
      request.end(body);
    });
    const term = Number(response.headers[TERM_HEADER] ?? 0);
    if (response.statusCode !== 200) {
      throw new PeerRefused(response.statusCode ?? 0, `${path}: ${(await readBody(response)).toString("utf8")}`);
    }
    const proof = response.headers[PROOF_HEADER];
    if (signed && !this.#signer?.proves(typeof proof === "string" ? proof : undefined, signed.nonce, term)) {
      response.destroy();
      throw new PeerRefused(0, `${this.url} does not have our key`);
    }
    return { response, term };
  }

  async json(method: string, path: string, value: unknown, signal: AbortSignal): Promise<unknown> {
    const { response } = await this.open(method, path, value, signal);
    return JSON.parse((await readBody(response)).toString("utf8")) as unknown;
  }
}

/** A whole body, up to the limit. */
export async function readBody(
  message: IncomingMessage,
  limit: number = REPLICATION_LIMITS.body_bytes,
): Promise<Buffer> {
  const parts: Buffer[] = [];
  let size = 0;
  for await (const part of message as AsyncIterable<Buffer>) {
    size += part.length;
    if (size > limit) throw new PeerRefused(413, `the body is larger than body_bytes, ${limit}`);
    parts.push(part);
  }
  return Buffer.concat(parts);
}
