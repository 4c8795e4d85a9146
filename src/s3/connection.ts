/** Sends signed requests to one S3-compatible server over connections that are kept alive. */
import { Agent, type IncomingMessage, request } from "node:http";
import { Agent as SecureAgent, request as secureRequest } from "node:https";
import { Readable } from "node:stream";
import { pipeline } from "node:stream/promises";
import type { Clock } from "#core/clock.ts";
import { signedHeaders } from "./signature.ts";

export interface S3Server {
  /** Scheme, host and port. */
  origin: string;
  region: string;
  /** Empty: requests are not signed. */
  access_key: string;
  secret_key: string;
}

export interface S3Request {
  method: string;
  /** Bucket and key, percent-encoded: see `encodedPath`. */
  path: string;
  /** Percent-encoded, without the question mark. */
  query?: string;
  headers?: Record<string, string>;
  /** A stream needs a `content-length` header: S3 takes no chunked bodies. */
  body?: Uint8Array | Readable;
}

interface Bounds {
  connections: number;
  /** A connection on which nothing is sent or received for so long is closed, and its request fails. */
  idle_ms: number;
}

export class S3Connection {
  readonly #server: S3Server;
  readonly #url: URL;
  readonly #clock: Clock;
  readonly #bounds: Bounds;
  readonly #agent: Agent;

  constructor(server: S3Server, clock: Clock, bounds: Bounds) {
    this.#server = server;
    this.#url = new URL(server.origin);
    this.#clock = clock;
    this.#bounds = bounds;
    const options = { keepAlive: true, maxSockets: bounds.connections };
    this.#agent = this.#url.protocol === "https:" ? new SecureAgent(options) : new Agent(options);
  }

  /** Resolves with the response's head; the caller reads or drains its body. */
  async send({ method, path, query = "", headers = {}, body }: S3Request): Promise<IncomingMessage> {
    const secure = this.#url.protocol === "https:";
    const { promise, resolve, reject } = Promise.withResolvers<IncomingMessage>();
    const outgoing = (secure ? secureRequest : request)({
      hostname: this.#url.hostname.replace(/^\[|\]$/g, ""),
      port: this.#url.port || (secure ? 443 : 80),
      // As a string, not as a URL, which would resolve `..` in a key and so reach another bucket.
      path: query === "" ? path : `${path}?${query}`,
      method,
      headers: { ...lengthOf(body), ...headers, ...this.#signature(method, path, query, headers) },
      agent: this.#agent,
    });
    outgoing.setTimeout(this.#bounds.idle_ms, () => outgoing.destroy(new Error("the server does not respond")));
    outgoing.on("error", reject);
    outgoing.on("response", resolve);
    if (body instanceof Readable) pipeline(body, outgoing).catch(reject);
    else outgoing.end(body);
    return await promise;
  }

  close(): void {
    this.#agent.destroy();
  }

  #signature(method: string, path: string, query: string, headers: Record<string, string>): Record<string, string> {
    const { access_key: access_key_id, secret_key: secret, region } = this.#server;
    if (access_key_id === "") return {};
    const { host } = this.#url;
    return signedHeaders({
      method,
      path,
      query,
      host,
      headers,
      access_key_id,
      secret,
      region,
      now_ms: this.#clock.now(),
    });
  }
}

const lengthOf = (body: S3Request["body"]): Record<string, string> =>
  body instanceof Uint8Array ? { "content-length": String(body.length) } : {};
