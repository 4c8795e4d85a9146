/**
 * An HTTP proxy in front of each node's application: reads go to the local application, writes to the primary's. A
 * client reads its own writes everywhere: the response carries the transaction (`__txid` cookie, `hangar-txid`
 * header), and a node that is behind it waits, or forwards to the primary. While there is no primary, writes wait for
 * the next one.
 */
import type { IncomingMessage, OutgoingHttpHeaders, Server, ServerResponse } from "node:http";
import { pipeline } from "node:stream";
import { buffer } from "node:stream/consumers";
import { messageOf } from "#core/assert.ts";
import { ApiError, errorBody, fail } from "#core/errors.ts";
import { LIMITS } from "#core/limits.ts";
import { createServer } from "#http/node-http.ts";
import { HTTP_BOUNDS, refuseBytes, strictly } from "#http/strict-server.ts";
import { REPLICATION_LIMITS } from "../limits.ts";
import type { ReplicationNode } from "../node/node.ts";
import { hex16 } from "../position.ts";
import { attempt, endToEnd, type Outcome } from "./forward.ts";
import { PrimaryProxy } from "./primary-proxy.ts";
import { mayRepeat, type PathRules, Router } from "./rules.ts";
import { tunnel } from "./tunnel.ts";

export interface ProxyOptions extends PathRules {
  /** The application beside this node. */
  app: URL;
  /** The database whose transactions count. */
  db: string;
  /** Timeout for a primary. */
  queue_ms: number;
  /** Timeout for acknowledgement; see `REPLICATION_LIMITS.proxy_ack_ms`. */
  ack_ms?: number;
  log(message: string): void;
}

export const TXID_HEADER = "hangar-txid";
export const TXID_COOKIE = "__txid";
/** Set between proxies: a non-primary refuses instead of forwarding once more. */
const HOP_HEADER = "hangar-proxy-hop";
const NOT_PRIMARY = "hangar-not-primary";
const COOKIE_SECONDS = 300;

interface Exchange {
  request: IncomingMessage;
  response: ServerResponse;
  method: string;
  path: string;
  body: Buffer | IncomingMessage;
  /** Aborted when the client disconnects. */
  signal: AbortSignal;
}

export class HttpProxy {
  readonly server: Server;
  readonly #node: ReplicationNode;
  readonly #options: ProxyOptions;
  readonly #router: Router;
  readonly #primary: PrimaryProxy;
  #waiting = 0;
  /** Writes that the application here is working on, or that wait to be acknowledged. */
  writing = 0;
  /** A handover is near: further writes wait for the next primary. */
  draining = false;
  /** For the metrics. */
  readonly counts = { local: 0, forwarded: 0, queued: 0, repeated: 0, failed: 0, longest_wait_ms: 0 };

  constructor(node: ReplicationNode, options: ProxyOptions) {
    this.#node = node;
    this.#options = options;
    this.#router = new Router(options);
    this.#primary = new PrimaryProxy(node);
    const listener = strictly((request, response) => {
      this.#serve(request, response).catch((error: unknown) => this.#refuse(response, error));
    });
    this.server = createServer(HTTP_BOUNDS, listener);
    this.server.on("clientError", refuseBytes);
    this.server.on("upgrade", (request, socket, head) => tunnel(options.app, request, socket, head));
    // No timeout for streamed bodies: the application decides.
    this.server.requestTimeout = 0;
  }

  /** Requests waiting for a primary. */
  get waiting(): number {
    return this.#waiting;
  }

  async #serve(request: IncomingMessage, response: ServerResponse): Promise<void> {
    const disconnected = new AbortController();
    response.once("close", () => disconnected.abort());
    const { method = "GET", url: path = "/" } = request;
    const kind = this.#router.kindOf(method, path);
    const exchange: Exchange = {
      request,
      response,
      method,
      path,
      body: await bodyOf(request),
      signal: disconnected.signal,
    };
    if (kind === "local" || (kind === "read" && (await this.#hasWhatWasRead(exchange)))) await this.#readHere(exchange);
    else await this.#write(exchange);
  }

  /** Whether the local database includes what the client has seen or written. */
  async #hasWhatWasRead({ request, signal }: Exchange): Promise<boolean> {
    const txid = txidOf(request);
    if (txid === undefined || this.#isPrimary) return true;
    const { db } = this.#options;
    const reached = (): boolean => this.#node.reached(db) >= txid;
    return await this.#node.waits.until(db, reached, REPLICATION_LIMITS.proxy_read_ms, signal);
  }

  async #readHere(exchange: Exchange): Promise<void> {
    this.counts.local++;
    const outcome = await this.#attempt(exchange, this.#options.app, { repeatable: true });
    if (outcome.kind !== "answered") throw unreachable(this.#options.app, outcome.error);
    send(exchange.response, outcome.response, {});
  }

  get #isPrimary(): boolean {
    return this.#node.acknowledgements.is_primary && !this.draining;
  }

  /** Retries until the primary has responded, or the timeout. */
  async #write(exchange: Exchange): Promise<void> {
    const { clock } = this.#node;
    const began_ms = clock.monotonic();
    const until_ms = began_ms + this.#options.queue_ms;
    const hop = exchange.request.headers[HOP_HEADER] !== undefined;
    let queued = false;
    try {
      for (;;) {
        const problem = await this.#tryOnce(exchange, hop);
        if (!problem) break;
        if (exchange.signal.aborted) return;
        if (clock.monotonic() >= until_ms) throw problem;
        if (!queued) this.#enqueue();
        queued = true;
        await clock.sleep(REPLICATION_LIMITS.proxy_retry_ms, exchange.signal).catch(() => undefined);
      }
    } finally {
      if (queued) this.#waiting--;
      this.counts.longest_wait_ms = Math.max(this.counts.longest_wait_ms, clock.monotonic() - began_ms);
    }
  }

  #enqueue(): void {
    const { proxy_waiting } = REPLICATION_LIMITS;
    if (this.#waiting >= proxy_waiting) {
      fail("overloaded", `proxy_waiting: ${proxy_waiting} requests wait for a primary`, { retry_after_s: 1 });
    }
    this.#waiting++;
    this.counts.queued++;
  }

  /** Undefined when the client has its response; otherwise the reason, if it can be retried. */
  async #tryOnce(exchange: Exchange, hop: boolean): Promise<ApiError | undefined> {
    if (this.#isPrimary) return await this.#writeHere(exchange);
    if (hop) {
      exchange.response.writeHead(503, { [NOT_PRIMARY]: "1" }).end();
      return undefined;
    }
    const there = await this.#primary.find();
    if (there instanceof URL) return await this.#writeThere(exchange, there);
    return new ApiError("no_primary", there, { retry_after_s: 1 });
  }

  async #writeHere(exchange: Exchange): Promise<ApiError | undefined> {
    this.writing++;
    try {
      return await this.#writeInApp(exchange);
    } finally {
      this.writing--;
    }
  }

  async #writeInApp(exchange: Exchange): Promise<ApiError | undefined> {
    const { app, db } = this.#options;
    const outcome = await this.#attempt(exchange, app, { repeatable: mayRepeatBy(exchange) });
    if (outcome.kind === "not sent") return unreachable(app, outcome.error);
    if (outcome.kind === "broken") return this.#broken(exchange, `the application at ${app.host}`, outcome.error);
    const txid = await this.#acknowledged(db, exchange.signal).catch((error: unknown) => {
      outcome.response.destroy();
      throw error;
    });
    this.counts.local++;
    send(exchange.response, outcome.response, txid === undefined ? {} : positionHeaders(outcome.response, txid));
    return undefined;
  }

  /** The position after the application's writes, once acknowledged. */
  async #acknowledged(db: string, signal: AbortSignal): Promise<number | undefined> {
    const { waits, acknowledgements, clock } = this.#node;
    const { ack_ms: ms = REPLICATION_LIMITS.proxy_ack_ms } = this.#options;
    const until_ms = clock.monotonic() + ms;
    while (!this.#node.look(db) && clock.monotonic() < until_ms) await clock.sleep(1);
    const txid = this.#node.directory.get(db)?.position.txid;
    if (txid === undefined) return undefined;
    const { replicas } = acknowledgements.mode;
    const durable = await waits.until(db, () => this.#node.reached(db) >= txid, ms, signal);
    if (durable && (replicas === 0 || (await acknowledgements.until(db, txid, { replicas, ms, signal })))) return txid;
    return fail(
      "not_acknowledged",
      `the application answered, but transaction ${hex16(txid)} of ${db} was not on ${replicas} replicas in ${ms} ms; it may be lost with this node`,
    );
  }

  async #writeThere(exchange: Exchange, there: URL): Promise<ApiError | undefined> {
    const outcome = await this.#attempt(exchange, there, { repeatable: mayRepeatBy(exchange), hop: true });
    if (outcome.kind !== "answered") this.#primary.forget();
    if (outcome.kind === "not sent") return new ApiError("no_primary", `${there.host}: ${outcome.error.message}`);
    if (outcome.kind === "broken") return this.#broken(exchange, `the primary at ${there.host}`, outcome.error);
    if (outcome.response.headers[NOT_PRIMARY] !== undefined) {
      outcome.response.resume();
      this.#primary.forget();
      const problem = new ApiError("no_primary", `${there.host} is not the primary`, { retry_after_s: 1 });
      // A streamed body cannot be sent again.
      if (!(exchange.body instanceof Uint8Array)) throw problem;
      return problem;
    }
    this.counts.forwarded++;
    send(exchange.response, outcome.response, {});
    return undefined;
  }

  /** The outcome is unknown. Throws unless the request may be repeated. */
  #broken(exchange: Exchange, who: string, error: Error): ApiError {
    const problem = new ApiError(
      "outcome_unknown",
      `${who} was lost while it worked on the request (${error.message}): it may have been done; send an Idempotency-Key that the application knows, and the proxy repeats the request`,
    );
    if (!mayRepeatBy(exchange) || !(exchange.body instanceof Uint8Array)) throw problem;
    this.counts.repeated++;
    return problem;
  }

  async #attempt(
    { request, method, path, body, signal }: Exchange,
    target: URL,
    { repeatable, hop = false }: { repeatable: boolean; hop?: boolean },
  ): Promise<Outcome> {
    const { [HOP_HEADER]: _, ...headers } = endToEnd(request.headers);
    const from = [request.headers["x-forwarded-for"], request.socket.remoteAddress].filter(Boolean).join(", ");
    const more: OutgoingHttpHeaders = { "x-forwarded-for": from, ...(hop ? { [HOP_HEADER]: "1" } : {}) };
    if (body instanceof Uint8Array && (body.length > 0 || headers["content-length"] !== undefined))
      more["content-length"] = body.length;
    return await attempt({ target, method, path, headers: { ...headers, ...more }, body, reuse: repeatable, signal });
  }

  #refuse(response: ServerResponse, thrown: unknown): void {
    this.counts.failed++;
    const error = thrown instanceof ApiError ? thrown : new ApiError("internal", messageOf(thrown));
    if (!(thrown instanceof ApiError)) this.#options.log(`proxy: ${messageOf(thrown)}`);
    if (response.headersSent) {
      response.destroy();
      return;
    }
    const { retry_after_s, headers } = error.extras;
    const retry = retry_after_s === undefined ? {} : { "retry-after": String(retry_after_s) };
    response.writeHead(error.http, { "content-type": "application/json", ...retry, ...headers });
    response.end(`${JSON.stringify(errorBody(error, ""))}\n`);
  }
}

const mayRepeatBy = ({ method, request }: Exchange): boolean => mayRepeat(method, request.headers["idempotency-key"]);

function unreachable(app: URL, error: Error): ApiError {
  return new ApiError("app_unreachable", `the application at ${app.host} does not answer: ${error.message}`);
}

/** Small bodies are buffered, so that they can be sent again; larger ones are streamed once. */
async function bodyOf(request: IncomingMessage): Promise<Buffer | IncomingMessage> {
  const { "content-length": length, "transfer-encoding": encoding } = request.headers;
  if (encoding !== undefined || Number(length ?? 0) > REPLICATION_LIMITS.proxy_body_bytes) return request;
  // While a body is buffered the application does not know of the request, so the timeout is ours.
  const late = Promise.withResolvers<never>();
  const error = new ApiError("request_timeout", "the body did not arrive in time (limit request_timeout_ms)", {
    headers: { connection: "close" },
  });
  const timer = setTimeout(() => late.reject(error), LIMITS.request_timeout_ms);
  try {
    return await Promise.race([buffer(request), late.promise]);
  } finally {
    clearTimeout(timer);
  }
}

/** The transaction that the client has seen or written, from its header or cookie. Invalid ones are ignored. */
export function txidOf({ headers }: Pick<IncomingMessage, "headers">): number | undefined {
  const cookie = new RegExp(`(?:^|;\\s*)${TXID_COOKIE}=([^;]*)`).exec(headers.cookie ?? "")?.[1];
  const text = headers[TXID_HEADER] ?? cookie;
  if (typeof text !== "string" || !/^[0-9a-f]{1,16}$/.test(text)) return undefined;
  const txid = Number.parseInt(text, 16);
  return Number.isSafeInteger(txid) ? txid : undefined;
}

function positionHeaders({ headers }: IncomingMessage, txid: number): OutgoingHttpHeaders {
  const cookie = `${TXID_COOKIE}=${hex16(txid)}; Path=/; Max-Age=${COOKIE_SECONDS}; HttpOnly; SameSite=Lax`;
  return { [TXID_HEADER]: hex16(txid), "set-cookie": [...(headers["set-cookie"] ?? []), cookie] };
}

function send(response: ServerResponse, from: IncomingMessage, more: OutgoingHttpHeaders): void {
  if (response.destroyed) {
    from.destroy();
    return;
  }
  response.writeHead(from.statusCode ?? 502, { ...endToEnd(from.headers), ...more });
  // A failure of either end aborts the other: a truncated response must not look complete.
  pipeline(from, response, () => undefined);
}
