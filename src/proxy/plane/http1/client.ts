import type { Socket } from "node:net";
import { PROXY_LIMITS } from "../../limits.ts";
import { ProxyExchange } from "../balance/exchange.ts";
import type { Refusal } from "../balance/pending-request.ts";
import type { Attempts } from "../balance/replay.ts";
import type { Route } from "../balance/route.ts";
import type { TargetState } from "../balance/target.ts";
import { compressing } from "../compress.ts";
import type { Dispatch } from "../dispatch.ts";
import { brokenOff, type OwnResponse, type Peer, peerLines, refusalResponse, requestLines } from "../header-rewrite.ts";
import { splice } from "../splice.ts";
import { Traffic } from "../traffic.ts";
import type { PlaneServices } from "../types.ts";
import { BadMessage } from "./bad-message.ts";
import { BodyReader } from "./body.ts";
import { CHUNKED, type RequestHead, type ResponseHead } from "./head.ts";
import { ReadBatcher } from "./read-batcher.ts";
import { release } from "./read-buffers.ts";
import { answerText, interimText, type ResponseText, sendOwn, switchText } from "./response-text.ts";
import { ResponseWriter } from "./response-writer.ts";
import { takeRequest, withoutEmptyLine } from "./take-request.ts";
import type { Exchange, UpstreamConnection } from "./upstream.ts";

const NOTHING = Buffer.alloc(0);

/**
 * One HTTP/1 client connection. Requests are processed one at a time: the next one begins when the previous response is
 * written; pipelined bytes are buffered up to a limit, then left in the kernel.
 */
export class Http1Client implements Exchange {
  readonly listener: object;
  readonly #plane: PlaneServices;
  readonly #proxied: ProxyExchange;
  readonly #socket: Socket;
  readonly #dispatch: Dispatch;
  readonly #peer_lines: string;
  /** The app that it probably belongs to, until a request names one. */
  readonly #likely: Route | undefined;
  readonly #writer: ResponseWriter;
  readonly #inbox: ReadBatcher;
  /** Bytes read but not yet parsed. */
  #unread: Buffer = NOTHING;
  #state: "head" | "waiting" | "busy" | "closed" = "head";
  #head: RequestHead | undefined;
  #body: BodyReader | undefined;
  #route: Route | undefined;
  #target: TargetState | undefined;
  #upstream: UpstreamConnection | undefined;
  #request_id = "";
  #started = 0;
  #sent_at = 0;
  #status = 0;
  #answer: ResponseText | undefined;
  readonly #traffic: Traffic;
  #closing = false;
  /** Time of the last progress. */
  #moved_at: number;

  constructor(
    socket: Socket,
    parts: { plane: PlaneServices; peer: Peer; listener: object; dispatch: Dispatch; likely?: Route },
  ) {
    this.#plane = parts.plane;
    this.#proxied = new ProxyExchange(parts, this, "1.1");
    this.listener = parts.listener;
    this.#socket = socket;
    this.#dispatch = parts.dispatch;
    this.#likely = parts.likely;
    this.#peer_lines = peerLines(parts.peer, parts.plane.region, "1.1");
    this.#writer = new ResponseWriter(socket);
    this.#inbox = new ReadBatcher((chunk) => socket.destroyed || this.#read(chunk));
    this.#traffic = new Traffic(socket);
    this.#moved_at = parts.plane.now();
    socket.on("data", (chunk: Buffer) => this.#inbox.put(chunk));
    socket.on("drain", () => this.#drain());
    socket.on("end", () => this.#ended());
    socket.on("error", () => socket.destroy());
    socket.on("close", () => this.#disconnected());
    parts.plane.watch(this);
  }

  get method(): string {
    return this.#head?.method ?? "GET";
  }

  get unsent(): boolean {
    return this.#writer.holds;
  }

  /** Called at intervals: closes the connection on a timeout. */
  sweep(now: number): void {
    const quiet = now - this.#moved_at;
    this.#traffic.report(this.#route);
    if (this.#state === "closed" && quiet > PROXY_LIMITS.linger_ms) this.#socket.destroy();
    else if (this.#state === "head" && quiet > this.#headTimeout()) {
      if (this.#unread.length === 0) this.#socket.destroy();
      else this.#refuse(408, "request_timeout", "the request did not arrive in time");
    } else if (this.#state === "busy") this.#sweepBusy(quiet, now);
  }

  #sweepBusy(quiet: number, now: number): void {
    const idle = this.#route?.table.options.idle_ms || PROXY_LIMITS.answer_idle_ms;
    const uploading = this.#body !== undefined && !this.#body.done;
    const stuck = this.#socket.writableLength > 0 || uploading;
    // Once it answers, both directions are a stream of the machine's own.
    if (uploading && !this.#answer && this.#proxied.pace.isSlow(now, this.#socket.isPaused()))
      this.#proxied.refuseSlow();
    else if (stuck ? quiet > PROXY_LIMITS.stall_ms : quiet > idle) this.#stalled(!stuck);
  }

  /** Timeout for the head of a request. */
  #headTimeout(): number {
    const begun = this.#unread.length > 0 || this.#started === 0;
    if (begun) return (this.#route ?? this.#likely)?.table.options.head_ms || PROXY_LIMITS.head_ms;
    return this.#closing ? PROXY_LIMITS.linger_ms : PROXY_LIMITS.client_idle_ms;
  }

  drain(patient: boolean): void {
    this.#inbox.settle();
    this.#closing = true;
    if (!patient && this.#state === "head" && this.#unread.length === 0) this.#socket.destroy();
  }

  cut(): void {
    this.#socket.destroy();
  }

  #read(chunk: Buffer): void {
    if (this.#state === "busy" && this.#body && !this.#body.done) {
      this.#moved_at = this.#plane.now();
      this.#feed(chunk);
      return;
    }
    if (this.#state === "closed") return; // Reads and drops what follows the last response, so that the client can read that.
    // The head timeout counts from its first byte, so a slow client cannot prolong it.
    if (this.#unread.length === 0) this.#moved_at = this.#plane.now();
    this.#unread = this.#unread.length === 0 ? chunk : Buffer.concat([this.#unread, chunk]);
    if (this.#state === "head") this.#next();
    else if (this.#unread.length > PROXY_LIMITS.read_ahead_bytes) this.#socket.pause();
  }

  /** Begins the next request, if its head is complete. */
  #next(): void {
    // A client that does not read its responses gets no more.
    if (this.#socket.writableNeedDrain) return;
    this.#unread = withoutEmptyLine(this.#unread);
    try {
      const taken = takeRequest(this.#unread);
      if (!taken) return;
      this.#unread = taken.rest;
      this.#begin(taken.head);
    } catch (thrown) {
      if (!(thrown instanceof BadMessage)) throw thrown;
      this.#refuse(thrown.status, thrown.status === 431 ? "headers_too_large" : "malformed_http", thrown.message);
    }
  }

  #begin(head: RequestHead): void {
    this.#state = "waiting";
    this.#head = head;
    this.#started = this.#plane.now();
    this.#status = 0;
    this.#request_id = this.#plane.requestId();
    this.#answer = undefined;
    const found = this.#dispatch(head);
    if ("refusal" in found) {
      this.refused(found.refusal);
      return;
    }
    if ("answer" in found) {
      this.#answerOwn(found.answer(this.#request_id));
      return;
    }
    found.route.counters.takeOver(this.#route?.counters);
    this.#route = found.route;
    this.#proxied.findTarget(found.route, head, this.#request_id, this.#started);
  }

  waits(): void {
    this.#state = "waiting";
  }

  got(target: TargetState | undefined, connection: UpstreamConnection): void {
    const head = this.#head as RequestHead;
    const { body } = this.#proxied.attempts as Attempts;
    const upstream = compressing(connection, head.accepts, (this.#route as Route).table.options);
    this.#target = target;
    this.#upstream = upstream;
    this.#state = "busy";
    this.#sent_at = this.#plane.now();
    this.#moved_at = this.#sent_at;
    this.#proxied.pace.restart(this.#sent_at);
    if (head.length !== 0) this.#body ??= new BodyReader(head.length);
    const lines = requestLines(head, this.#peer_lines, this.#request_id, this.#proxied.moreLines);
    upstream.begin(this, lines, { complete: head.length === 0, chunked: head.length === CHUNKED });
    body?.again(upstream);
    if (this.#body && !this.#body.done && this.#unread.length > 0) {
      const early = this.#unread;
      this.#unread = NOTHING;
      this.#feed(early);
    }
    if (this.#socket.isPaused()) this.#socket.resume();
  }

  refused(refusal: Refusal): void {
    this.#proxied.log.refused(refusal.reason);
    this.#answerOwn(refusalResponse(refusal, this.#request_id));
  }

  // The request body, to the machine.

  #feed(bytes: Buffer): void {
    this.#proxied.pace.came(bytes.length);
    try {
      const used = (this.#body as BodyReader).feed(bytes, {
        data: (chunk) => this.#send(chunk),
        end: (trailers) => this.#proxied.attempts?.body?.end(this.#upstream, trailers),
      });
      if (used < bytes.length) this.#unread = Buffer.concat([this.#unread, bytes.subarray(used)]);
      else if (this.#upstream && !this.#upstream.unsent && !this.#proxied.attempts?.body?.whole) release(bytes);
    } catch (thrown) {
      if (!(thrown instanceof BadMessage)) throw thrown;
      // The machine already has part of the request, so both connections are closed.
      this.cut();
    }
  }

  #send(chunk: Buffer): void {
    if (this.#upstream && this.#proxied.attempts?.body?.write(this.#upstream, chunk) === false) this.#socket.pause();
  }

  drained(): void {
    this.#moved_at = this.#plane.now();
    this.#socket.resume();
  }

  // The response, to the client.

  informed(head: ResponseHead): void {
    if (this.#head?.minor !== 1) return;
    this.#socket.write(interimText(head), "latin1");
  }

  answered(head: ResponseHead): void {
    const request = this.#head as RequestHead;
    const { options } = (this.#route as Route).table;
    const now = this.#plane.now();
    this.#moved_at = now;
    this.#status = head.status;
    this.#target?.counters.responded(head.status, (now - this.#sent_at) / 1000);
    if (this.#proxied.replays(head, this.#route as Route, this.#target)) return;
    const unfinished = this.#body !== undefined && !this.#body.done;
    const last = this.#closing || unfinished;
    this.#answer = answerText(head, request, { options, request_id: this.#request_id, last });
    this.#writer.head(this.#answer.text, this.#answer.chunked);
  }

  releaseTarget(): void {
    this.#upstream?.abandon();
    this.#upstream = undefined;
    this.#leave();
  }

  data(chunk: Buffer, module = 0): void {
    this.#moved_at = this.#plane.now();
    if (!this.#writer.data(chunk, module)) this.#upstream?.pause();
  }

  flush(): void {
    this.#writer.flush();
  }

  ended(trailers: string): void {
    this.#writer.end(trailers);
    this.#upstream = undefined;
    this.#finish(this.#answer?.close ?? true);
  }

  upgraded(head: ResponseHead, socket: Socket, rest: Buffer): void {
    this.#inbox.settle();
    const target = this.#target as TargetState;
    const request = this.#head as RequestHead;
    this.#upstream = undefined;
    // The reservation now belongs to the connection and is released when that ends.
    this.#target = undefined;
    target.hold(socket);
    this.#status = 101;
    this.#state = "closed";
    this.#count();
    target.counters.responded(101, (this.#plane.now() - this.#sent_at) / 1000);
    this.#plane.unwatch(this);
    this.#socket.removeAllListeners().once("close", () => this.#disconnected());
    this.#socket.write(switchText(head, request, (this.#route as Route).table.options, this.#request_id), "latin1");
    splice(this.#socket, socket, {
      plane: this.#plane,
      count: () => this.#traffic.report(this.#route),
      early: this.#unread,
      answer: rest,
    });
  }

  failed(problem: Error, untouched: boolean): void {
    const request = this.#head as RequestHead;
    const upstream = this.#upstream;
    this.#proxied.log.failed(problem);
    this.#upstream = undefined;
    this.#leave();
    if (this.#answer) {
      this.cut();
      return;
    }
    if (!this.#proxied.retries(request, upstream, untouched)) this.refused(brokenOff(problem));
  }

  // The end of a request.

  #answerOwn(answer: OwnResponse): void {
    const request = this.#head;
    // After an unread request body the connection cannot be reused.
    const close = this.#closing || !request?.keep_alive || request.length !== 0 || answer.status === 400;
    this.#status = answer.status;
    sendOwn(this.#socket, answer, { ...(request && { method: request.method }), close });
    this.#finish(close);
  }

  #refuse(status: number, reason: string, text: string): void {
    this.#request_id = this.#plane.requestId();
    this.#head = undefined;
    this.refused({ status, reason, text });
  }

  #finish(close: boolean): void {
    this.#count();
    this.#leave();
    this.#body = undefined;
    this.#proxied.over();
    this.#moved_at = this.#plane.now();
    if (close) {
      this.#state = "closed";
      this.#socket.end();
      if (this.#socket.isPaused()) this.#socket.resume();
      return;
    }
    this.#state = "head";
    if (this.#socket.isPaused()) this.#socket.resume();
    // In a new turn of the event loop, so that a pipelining client does not block others.
    if (this.#unread.length > 0) setImmediate(() => this.#state === "head" && this.#next());
  }

  #count(): void {
    this.#proxied.log.ended(this.#route, this.#status, this.#started);
  }

  /** Releases the request's reservation; with `connections` the connection holds it. */
  #leave(): void {
    const target = this.#target;
    this.#target = undefined;
    if (target?.table.mode === "requests") target.release();
  }

  #drain(): void {
    this.#moved_at = this.#plane.now();
    this.#upstream?.resume();
    if (this.#state === "head" && this.#unread.length > 0) this.#next();
  }

  /** A client that closed its side is not waiting for a response either, so the request is aborted. */
  #ended(): void {
    this.#inbox.settle();
    if (this.#state === "closed") this.#socket.end();
    else this.#socket.destroy();
  }

  #stalled(machine: boolean): void {
    if (!machine || this.#answer) {
      this.cut();
      return;
    }
    this.#proxied.timeOut();
  }

  #disconnected(): void {
    if (this.#state === "waiting") this.#proxied.aborted = true;
    this.releaseTarget();
    this.#proxied.over();
    this.#state = "closed";
    this.#traffic.report(this.#route);
    this.#route?.counters.disconnected();
    this.#plane.unwatch(this);
  }
}
