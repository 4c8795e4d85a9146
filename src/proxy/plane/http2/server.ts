import {
  constants,
  type IncomingHttpHeaders,
  performServerHandshake,
  type ServerHttp2Session,
  type ServerHttp2Stream,
} from "node:http2";
import type { Socket } from "node:net";
import type { TLSSocket } from "node:tls";
import { messageOf } from "#core/assert.ts";
import { PROXY_LIMITS } from "../../limits.ts";
import { ProxyExchange } from "../balance/exchange.ts";
import type { Refusal } from "../balance/pending-request.ts";
import type { Attempts } from "../balance/replay.ts";
import type { Route } from "../balance/route.ts";
import type { TargetState } from "../balance/target.ts";
import { compressing } from "../compress.ts";
import type { Dispatch } from "../dispatch.ts";
import {
  answerFields,
  brokenOff,
  type OwnResponse,
  type Peer,
  peerLines,
  refusalResponse,
  requestLines,
} from "../header-rewrite.ts";
import { BadMessage } from "../http1/bad-message.ts";
import { CHUNKED, type RequestHead, type ResponseHead } from "../http1/head.ts";
import type { Exchange, UpstreamConnection } from "../http1/upstream.ts";
import { Traffic } from "../traffic.ts";
import type { PlaneServices } from "../types.ts";
import { fieldsOf, LENIENT, outgoing, trailerLines } from "./fields.ts";
import { requestHead } from "./request-head.ts";

interface Parts {
  plane: PlaneServices;
  peer: Peer;
  listener: object;
  dispatch: Dispatch;
}

/** Serves an HTTP/2 connection; each stream is one request. */
export function serveHttp2(socket: TLSSocket, parts: Parts): void {
  const { plane } = parts;
  const session: ServerHttp2Session = performServerHandshake(socket, {
    ...LENIENT,
    maxHeaderListPairs: PROXY_LIMITS.head_lines,
    streamResetBurst: PROXY_LIMITS.h2_resets,
    streamResetRate: PROXY_LIMITS.h2_resets_per_second,
    settings: {
      maxConcurrentStreams: PROXY_LIMITS.h2_streams,
      maxHeaderListSize: PROXY_LIMITS.head_bytes,
      enablePush: false,
    },
  });
  let route: Route | undefined;
  let used_at = plane.now();
  const exchanges = new Set<Http2Exchange>();
  const traffic = new Traffic(socket);
  // A session waits for its last frames to be sent, which never happens if the client does not read; so the socket is
  // destroyed too.
  const cut = (): void => {
    session.destroy();
    socket.destroy();
  };
  const watched = {
    listener: parts.listener,
    sweep(now: number): void {
      traffic.report(route);
      for (const exchange of exchanges) exchange.sweep(now);
      // A stream's end cannot be sent: the client reads nothing, so its other streams are stuck too.
      if ([...exchanges].some((exchange) => exchange.isStuck(now))) {
        cut();
        return;
      }
      if (exchanges.size > 0 || now - used_at <= PROXY_LIMITS.client_idle_ms) return;
      // A client that does not even read GOAWAY is disconnected at the next sweep.
      if (session.closed) cut();
      else session.close();
    },
    // Streams in progress continue; new ones must use another connection.
    drain: (): void => session.close(),
    cut,
  };
  plane.watch(watched);
  session.on("error", () => session.destroy());
  session.on("close", () => {
    watched.sweep(plane.now());
    plane.unwatch(watched);
    route?.counters.disconnected();
  });
  session.on("stream", (stream: ServerHttp2Stream, headers: IncomingHttpHeaders) => {
    const exchange = new Http2Exchange(stream, parts);
    exchanges.add(exchange);
    stream.once("close", () => {
      exchanges.delete(exchange);
      used_at = plane.now();
    });
    // In a turn of its own: a stream that is cancelled in the same turn (rapid reset) costs no machine a connection.
    setImmediate(() => {
      if (stream.closed || stream.destroyed) return;
      exchange.begin(headers);
      if (!exchange.route) return;
      exchange.route.counters.takeOver(route?.counters);
      route = exchange.route;
    });
  });
}

/** One request of an HTTP/2 client. */
class Http2Exchange implements Exchange {
  route: Route | undefined;
  readonly #plane: PlaneServices;
  readonly #peer: Peer;
  readonly #proxied: ProxyExchange;
  readonly #stream: ServerHttp2Stream;
  readonly #dispatch: Dispatch;
  readonly #request_id: string;
  readonly #started: number;
  #head: RequestHead | undefined;
  #target: TargetState | undefined;
  #upstream: UpstreamConnection | undefined;
  #sent_at = 0;
  #status = 0;
  #trailers = "";
  #request_trailers = "";
  /** Whether the request body is being read. */
  #reading = false;
  /** Time of the last progress. */
  #moved_at: number;
  /** When we closed its stream. */
  #closed_at: number | undefined;

  constructor(stream: ServerHttp2Stream, parts: Parts) {
    this.#plane = parts.plane;
    this.#peer = parts.peer;
    this.#proxied = new ProxyExchange(parts, this, "2");
    this.#stream = stream;
    this.#dispatch = parts.dispatch;
    this.#request_id = parts.plane.requestId();
    this.#started = parts.plane.now();
    this.#moved_at = this.#started;
    stream.on("error", () => stream.destroy());
    stream.on("close", () => this.#disconnected());
    stream.on("drain", () => {
      this.#moved_at = this.#plane.now();
      this.#upstream?.resume();
    });
    // Registered at once, because trailers may arrive while the body waits for a machine.
    stream.on("trailers", (sent: IncomingHttpHeaders) => {
      this.#request_trailers = trailerLines(sent);
    });
    stream.on("wantTrailers", () => stream.sendTrailers(fieldsOf(this.#trailers)));
  }

  get method(): string {
    return this.#head?.method ?? "GET";
  }

  /** Node does not report when frames are sent. */
  readonly unsent = true;

  begin(headers: IncomingHttpHeaders): void {
    try {
      this.#head = requestHead(headers, this.#stream.endAfterHeaders);
    } catch (thrown) {
      if (!(thrown instanceof BadMessage)) throw thrown;
      this.refused({ status: thrown.status, reason: "malformed_http", text: thrown.message });
      return;
    }
    const found = this.#dispatch(this.#head);
    if ("refusal" in found) {
      this.refused(found.refusal);
      return;
    }
    if ("answer" in found) {
      this.#answerOwn(found.answer(this.#request_id));
      return;
    }
    this.route = found.route;
    this.#proxied.findTarget(found.route, this.#head, this.#request_id, this.#started);
  }

  /**
   * Called at intervals: ends the exchange on a timeout. The client's timeout applies while a response waits to be
   * read, and after all of it was sent; an open body may be as silent as the machine's, as in bidirectional gRPC.
   */
  sweep(now: number): void {
    const { headersSent, writableLength } = this.#stream;
    // The queue has its own timeout.
    if (!this.#upstream && !headersSent) return;
    if (this.#isSlow(now)) {
      if (headersSent) this.#close(now);
      else this.#proxied.refuseSlow();
      return;
    }
    const idle = this.route?.table.options.idle_ms || PROXY_LIMITS.answer_idle_ms;
    const clients_turn = !this.#upstream || writableLength > 0;
    if (now - this.#moved_at <= (clients_turn ? PROXY_LIMITS.stall_ms : idle)) return;
    if (headersSent) this.#close(now);
    else this.#proxied.timeOut();
  }

  /** While a machine answers, both directions are a stream of its own; gRPC may send little before that, too. */
  #isSlow(now: number): boolean {
    if (!this.#reading || this.#stream.readableEnded || (this.#upstream && this.#stream.headersSent)) return false;
    const rpc = this.#target?.table.h2 && /^content-type: application\/grpc\b/m.test(this.#head?.lines ?? "");
    return this.#proxied.pace.isSlow(now, rpc || this.#stream.isPaused());
  }

  #close(now: number): void {
    this.#closed_at ??= now;
    this.#stream.close(constants.NGHTTP2_CANCEL);
  }

  /** Whether its stream was closed at an earlier sweep and is still open. */
  isStuck(now: number): boolean {
    return this.#closed_at !== undefined && this.#closed_at < now;
  }

  waits(): void {
    // Further body data is for the next machine.
    if (this.#reading) this.#stream.pause();
  }

  got(target: TargetState | undefined, connection: UpstreamConnection): void {
    const plane = this.#plane;
    const head = this.#head as RequestHead;
    const upstream = compressing(connection, head.accepts, (this.route as Route).table.options);
    this.#upstream = upstream;
    this.#target = target;
    this.#sent_at = plane.now();
    this.#moved_at = this.#sent_at;
    this.#proxied.pace.restart(this.#sent_at);
    const { body } = this.#proxied.attempts as Attempts;
    const lines = requestLines(
      head,
      peerLines(this.#peer, plane.region, "2"),
      this.#request_id,
      this.#proxied.moreLines,
    );
    upstream.begin(this, lines, { complete: head.length === 0, chunked: head.length === CHUNKED });
    if (!body) return;
    body.again(upstream);
    if (this.#reading) this.#stream.resume();
    else this.#read(body);
  }

  #read(body: NonNullable<Attempts["body"]>): void {
    this.#reading = true;
    this.#stream.on("data", (chunk: Buffer) => {
      this.#moved_at = this.#plane.now();
      this.#proxied.pace.came(chunk.length);
      if (this.#upstream && !body.write(this.#upstream, chunk)) this.#stream.pause();
    });
    this.#stream.on("end", () => body.end(this.#upstream, this.#request_trailers));
  }

  refused(refusal: Refusal): void {
    this.#proxied.log.refused(refusal.reason);
    this.#answerOwn(refusalResponse(refusal, this.#request_id));
  }

  informed(head: ResponseHead): void {
    if (head.status === 100 || this.#stream.headersSent || this.#stream.destroyed) return;
    this.#stream.additionalHeaders({ ":status": head.status, ...outgoing(pairsOf(head.fields)) });
  }

  answered(head: ResponseHead): void {
    this.#status = head.status;
    this.#moved_at = this.#plane.now();
    this.#target?.counters.responded(head.status, (this.#plane.now() - this.#sent_at) / 1000);
    if (this.#proxied.replays(head, this.route as Route, this.#target)) return;
    const pairs: [string, string][] = [];
    answerFields(head, (this.route as Route).table.options, this.#request_id, (name, value) =>
      pairs.push([name, value]),
    );
    if (head.length > 0) pairs.push(["content-length", String(head.length)]);
    const empty = head.length === 0;
    try {
      this.#stream.respond(
        { ":status": head.status, ...outgoing(pairs) },
        { endStream: empty, waitForTrailers: !empty && head.length === CHUNKED },
      );
    } catch (thrown) {
      // Node rejects such responses, for example with status 700.
      this.releaseTarget();
      this.refused(brokenOff(new BadMessage(messageOf(thrown))));
    }
  }

  releaseTarget(): void {
    this.#upstream?.abandon();
    this.#upstream = undefined;
    this.#leave();
  }

  data(chunk: Buffer): void {
    this.#moved_at = this.#plane.now();
    if (!this.#stream.destroyed && !this.#stream.write(chunk)) this.#upstream?.pause();
  }

  flush(): void {}

  ended(trailers: string): void {
    this.#trailers = trailers;
    this.#moved_at = this.#plane.now();
    this.#upstream = undefined;
    this.#leave();
    this.#count();
    this.#stream.end();
  }

  upgraded(_head: ResponseHead, socket: Socket): void {
    // Never requested here.
    socket.destroy();
    this.failed(new Error("the machine switched protocols without a request to upgrade"), false);
  }

  failed(problem: Error, untouched: boolean): void {
    const upstream = this.#upstream;
    this.#proxied.log.failed(problem);
    this.#upstream = undefined;
    this.#leave();
    if (this.#stream.headersSent) {
      this.#stream.close(constants.NGHTTP2_INTERNAL_ERROR);
      return;
    }
    const head = this.#head as RequestHead;
    if (!this.#proxied.retries(head, upstream, untouched)) this.refused(brokenOff(problem));
  }

  drained(): void {
    this.#stream.resume();
  }

  #answerOwn(answer: OwnResponse): void {
    if (this.#stream.destroyed || this.#stream.headersSent) return;
    this.#status = answer.status;
    this.#moved_at = this.#plane.now();
    this.#count();
    this.#stream.respond({ ":status": answer.status, ...outgoing(answer.fields) });
    this.#stream.end(this.method === "HEAD" ? "" : answer.body);
  }

  #count(): void {
    this.#proxied.log.ended(this.route, this.#status, this.#started);
  }

  #leave(): void {
    const target = this.#target;
    this.#target = undefined;
    if (target?.table.mode === "requests") target.release();
  }

  #disconnected(): void {
    this.#proxied.aborted = true;
    this.#proxied.over();
    this.releaseTarget();
  }
}

function pairsOf(fields: readonly string[]): [string, string][] {
  const pairs: [string, string][] = [];
  for (let i = 0; i < fields.length; i += 2) pairs.push([fields[i] as string, fields[i + 1] as string]);
  return pairs;
}
