import type { Socket } from "node:net";
import { PROXY_LIMITS } from "../limits.ts";
import { BodyReader } from "./body.ts";
import { compressing } from "./compress.ts";
import { type AnswerHead, BadMessage, CHUNKED, type RequestHead, readRequest, UNTIL_CLOSE } from "./head.ts";
import {
  answerFields,
  endsConnection,
  type OwnAnswer,
  type Peer,
  peerLines,
  refusalAnswer,
  repeatable,
  requestLines,
} from "./passage.ts";
import type { Plane } from "./plane.ts";
import type { Refusal, Route, Waiter } from "./route.ts";
import { splice } from "./splice.ts";
import type { TargetState } from "./target.ts";
import type { Exchange, Line } from "./upstream.ts";

/** How a request is dispatched; the same for every version of HTTP. See `dispatch.ts`. */
export type Dispatch = (head: Pick<RequestHead, "host" | "authority" | "method" | "target" | "accepts">) => Dispatched;
export type Dispatched = { route: Route } | { answer: (request_id: string) => OwnAnswer } | { refusal: Refusal };

const HEAD_END = "\r\n\r\n";
const NOTHING = Buffer.alloc(0);
/** How long a client whose connection ends may still read what it was sent. */
const LINGER_MS = 5000;

/**
 * One HTTP/1 client. It is read one request at a time: the next one begins when the answer before it is
 * written, and what comes early is kept, up to a limit, then left in the kernel.
 */
export class Http1Client implements Exchange, Waiter {
  readonly #socket: Socket;
  readonly #plane: Plane;
  readonly #peer: Peer;
  readonly #dispatch: Dispatch;
  readonly #peer_lines: string;
  /** Bytes that were read and not used. */
  #unread: Buffer = NOTHING;
  #state: "head" | "waiting" | "busy" | "closed" = "head";
  #head: RequestHead | undefined;
  #body: BodyReader | undefined;
  #route: Route | undefined;
  #target: TargetState | undefined;
  #upstream: Line | undefined;
  #request_id = "";
  #started = 0;
  #sent_at = 0;
  #status = 0;
  #answer: { chunked: boolean; close: boolean } | undefined;
  /** An answer's head that waits to be written together with its first bytes. */
  #held = "";
  #tries = 0;
  #bytes = { in: 0, out: 0 };
  #closing = false;
  /** Nothing moved since. */
  #moved_at: number;

  // What it asks a route for.
  readonly kind = "exchange";
  fresh = false;
  preface: Buffer | undefined;
  since = 0;
  refused_at: number | undefined;
  gone = false;

  constructor(socket: Socket, parts: { plane: Plane; peer: Peer; dispatch: Dispatch }) {
    this.#socket = socket;
    this.#plane = parts.plane;
    this.#peer = parts.peer;
    this.#dispatch = parts.dispatch;
    this.#peer_lines = peerLines(parts.peer, parts.plane.region, "1.1");
    this.#moved_at = parts.plane.now();
    socket.on("data", (chunk: Buffer) => this.#read(chunk));
    socket.on("drain", () => this.#drain());
    socket.on("end", () => this.#ended());
    socket.on("error", () => socket.destroy());
    socket.on("close", () => this.#gone());
    parts.plane.watch(this);
  }

  get method(): string {
    return this.#head?.method ?? "GET";
  }

  /** Called now and then: ends what takes too long. */
  sweep(now: number): void {
    const quiet = now - this.#moved_at;
    this.#countBytes();
    if (this.#state === "closed") {
      if (quiet > LINGER_MS) this.#socket.destroy();
    } else if (this.#state === "head") {
      const patience = this.#closing
        ? LINGER_MS
        : this.#started === 0
          ? PROXY_LIMITS.head_ms
          : PROXY_LIMITS.client_idle_ms;
      if (this.#unread.length > 0 && quiet > PROXY_LIMITS.head_ms) {
        this.#refuse(408, "request_timeout", "the request did not arrive in time");
      } else if (this.#unread.length === 0 && quiet > patience) this.#socket.destroy();
    } else if (this.#state === "busy") {
      const idle = this.#route?.table.options.idle_ms || PROXY_LIMITS.answer_idle_ms;
      const stuck = this.#socket.writableLength > 0 || (this.#body && !this.#body.done);
      if (stuck ? quiet > PROXY_LIMITS.stall_ms : quiet > idle) this.#stalled(!stuck);
    }
  }

  /** Finishes what it does and takes no more. */
  drain(): void {
    this.#closing = true;
  }

  #read(chunk: Buffer): void {
    if (this.#state === "busy" && this.#body && !this.#body.done) {
      this.#moved_at = this.#plane.now();
      return this.#feed(chunk);
    }
    if (this.#state === "closed") return; // What comes after the last answer is read, so that the client can read that.
    // The time for a head is counted from its first byte: dripping does not prolong it.
    if (this.#unread.length === 0) this.#moved_at = this.#plane.now();
    this.#unread = this.#unread.length === 0 ? chunk : Buffer.concat([this.#unread, chunk]);
    if (this.#state === "head") this.#next();
    else if (this.#unread.length > PROXY_LIMITS.read_ahead_bytes) this.#socket.pause();
  }

  /** Begins the next request, if the whole of its head is there. */
  #next(): void {
    // Who does not read answers gets no more of them.
    if (this.#socket.writableNeedDrain) return;
    // One empty line before a request is a habit of old clients.
    if (this.#unread.length >= 2 && this.#unread[0] === 13 && this.#unread[1] === 10)
      this.#unread = this.#unread.subarray(2);
    const end = this.#unread.indexOf(HEAD_END);
    if (end > PROXY_LIMITS.head_bytes || (end < 0 && this.#unread.length > PROXY_LIMITS.head_bytes)) {
      const text = `the request's head has more than ${PROXY_LIMITS.head_bytes} bytes (limit head_bytes)`;
      return this.#refuse(431, "headers_too_large", text);
    }
    if (end < 0) return;
    const text = this.#unread.toString("latin1", 0, end + 4);
    this.#unread = this.#unread.subarray(end + 4);
    try {
      this.#begin(readRequest(text));
    } catch (thrown) {
      if (!(thrown instanceof BadMessage)) throw thrown;
      this.#refuse(thrown.status, "malformed_http", thrown.message);
    }
  }

  #begin(head: RequestHead): void {
    this.#state = "waiting";
    this.#head = head;
    this.#started = this.#plane.now();
    this.#status = 0;
    this.#tries = 0;
    this.#request_id = this.#plane.requestId();
    this.#answer = undefined;
    const found = this.#dispatch(head);
    if ("refusal" in found) return this.refused(found.refusal);
    if ("answer" in found) return this.#answerOwn(found.answer(this.#request_id));
    if (!this.#route) found.route.counters.connected();
    this.#route = found.route;
    this.refused_at = undefined;
    this.fresh = endsConnection(head) || head.upgrade !== undefined;
    this.preface = this.#plane.preface(found.route, this.#peer);
    found.route.obtain(this);
  }

  got(target: TargetState, connection: unknown): void {
    const head = this.#head as RequestHead;
    const upstream = compressing(connection as Line, head.accepts, (this.#route as Route).table.options);
    this.#target = target;
    this.#upstream = upstream;
    this.#state = "busy";
    this.#sent_at = this.#plane.now();
    this.#moved_at = this.#sent_at;
    this.#body = head.length === 0 ? undefined : new BodyReader(head.length);
    const lines = requestLines(head, this.#peer_lines, this.#request_id);
    upstream.begin(this, lines, { complete: head.length === 0, chunked: head.length === CHUNKED });
    if (this.#body && this.#unread.length > 0) {
      const early = this.#unread;
      this.#unread = NOTHING;
      this.#feed(early);
    }
    if (this.#socket.isPaused()) this.#socket.resume();
  }

  refused(refusal: Refusal): void {
    this.#answerOwn(refusalAnswer(refusal, this.#request_id));
  }

  // The request's body, on its way to the machine.

  #feed(bytes: Buffer): void {
    try {
      const used = (this.#body as BodyReader).feed(bytes, {
        data: (chunk) => this.#send(chunk),
        end: (trailers) => this.#upstream?.end(trailers),
      });
      if (used < bytes.length) this.#unread = Buffer.concat([this.#unread, bytes.subarray(used)]);
    } catch (thrown) {
      if (!(thrown instanceof BadMessage)) throw thrown;
      // The machine has part of the request already: cutting both sides is the only honest answer.
      this.#cut();
    }
  }

  #send(chunk: Buffer): void {
    if (this.#upstream && !this.#upstream.write(chunk)) this.#socket.pause();
  }

  drained(): void {
    this.#moved_at = this.#plane.now();
    this.#socket.resume();
  }

  // The answer, on its way to the client.

  informed(head: AnswerHead): void {
    if (this.#head?.minor !== 1) return;
    let lines = `HTTP/1.1 ${head.status} ${head.reason}\r\n`;
    for (let i = 0; i < head.fields.length; i += 2) lines += `${head.fields[i]}: ${head.fields[i + 1]}\r\n`;
    this.#socket.write(`${lines}\r\n`, "latin1");
  }

  answered(head: AnswerHead): void {
    const request = this.#head as RequestHead;
    const { options } = (this.#route as Route).table;
    const now = this.#plane.now();
    this.#moved_at = now;
    this.#status = head.status;
    this.#target?.counters.responded(head.status, (now - this.#sent_at) / 1000);
    const chunked = head.length === CHUNKED || head.length === UNTIL_CLOSE;
    const unfinished = this.#body !== undefined && !this.#body.done;
    const close = this.#closing || !request.keep_alive || unfinished || (chunked && request.minor === 0);
    this.#answer = { chunked: chunked && request.minor === 1, close };
    let lines = `HTTP/1.1 ${head.status} ${head.reason}\r\n`;
    answerFields(head, options, this.#request_id, (name, value) => {
      lines += `${name}: ${value}\r\n`;
    });
    if (this.#answer.chunked) lines += "transfer-encoding: chunked\r\n";
    else if (head.length > 0) lines += `content-length: ${head.length}\r\n`;
    if (close) lines += "connection: close\r\n";
    else if (request.minor === 0) lines += "connection: keep-alive\r\n";
    this.#held = `${lines}\r\n`;
  }

  data(chunk: Buffer): void {
    this.#moved_at = this.#plane.now();
    const head = this.#held;
    this.#held = "";
    const chunked = this.#answer?.chunked === true;
    const size = chunked ? `${chunk.length.toString(16)}\r\n` : "";
    const gap = chunked ? "\r\n" : "";
    if (chunk.length <= PROXY_LIMITS.one_write_bytes) {
      this.#write(`${head}${size}${chunk.toString("latin1")}${gap}`);
      return;
    }
    this.#socket.cork();
    if (head !== "" || chunked) this.#socket.write(head + size, "latin1");
    if (!this.#socket.write(chunk)) this.#upstream?.pause();
    if (chunked) this.#socket.write(gap, "latin1");
    this.#socket.uncork();
  }

  flush(): void {
    if (this.#held === "") return;
    const head = this.#held;
    this.#held = "";
    this.#write(head);
  }

  ended(trailers: string): void {
    const rest = this.#answer?.chunked ? `0\r\n${trailers}\r\n` : "";
    if (this.#held !== "" || rest !== "") this.#write(this.#held + rest);
    this.#held = "";
    this.#upstream = undefined;
    this.#finish(this.#answer?.close ?? true);
  }

  upgraded(head: AnswerHead, socket: Socket, rest: Buffer): void {
    const target = this.#target as TargetState;
    const request = this.#head as RequestHead;
    this.#upstream = undefined;
    // Whoever had the seat, it is left when the connection ends.
    this.#target = undefined;
    socket.once("close", () => {
      target.counters.disconnected();
      target.leave();
    });
    let lines = `HTTP/1.1 101 ${head.reason}\r\nconnection: upgrade\r\nupgrade: ${head.upgrade ?? request.upgrade}\r\n`;
    answerFields(head, (this.#route as Route).table.options, this.#request_id, (name, value) => {
      lines += `${name}: ${value}\r\n`;
    });
    this.#status = 101;
    this.#state = "closed";
    this.#count();
    target.counters.responded(101, (this.#plane.now() - this.#sent_at) / 1000);
    this.#plane.unwatch(this);
    this.#socket.removeAllListeners();
    this.#socket.write(`${lines}\r\n`, "latin1");
    splice(this.#socket, socket, {
      plane: this.#plane,
      route: this.#route as Route,
      early: this.#unread,
      answer: rest,
    });
  }

  failed(problem: Error, untouched: boolean): void {
    const request = this.#head as RequestHead;
    const upstream = this.#upstream;
    this.#upstream = undefined;
    this.#leave();
    if (this.#answer) return this.#cut();
    // The machine closed a connection that it had kept, just when it was used: ask again on a new one.
    if (untouched && upstream?.reused && repeatable(request) && this.#tries++ === 0) {
      this.#state = "waiting";
      this.fresh = true;
      return this.#route?.obtain(this);
    }
    const bad = problem instanceof BadMessage;
    const text = bad
      ? `the machine's answer is not HTTP as it should be: ${problem.message}`
      : `the machine broke off before it answered (${problem.message})`;
    this.#answerOwn(
      refusalAnswer({ status: 502, reason: bad ? "malformed_answer" : "broken_off", text }, this.#request_id),
    );
  }

  // The end of a request.

  #answerOwn(answer: OwnAnswer): void {
    const request = this.#head;
    const body = request?.method === "HEAD" ? "" : answer.body;
    // A request whose body was not read cannot be followed by another one.
    const close = this.#closing || !request?.keep_alive || request.length !== 0 || answer.status === 400;
    let lines = `HTTP/1.1 ${answer.status} ${answer.reason}\r\n`;
    for (const [name, value] of answer.fields) lines += `${name}: ${value}\r\n`;
    lines += `content-length: ${Buffer.byteLength(answer.body)}\r\n${close ? "connection: close\r\n" : ""}\r\n`;
    this.#status = answer.status;
    this.#socket.cork();
    this.#socket.write(lines, "latin1");
    this.#socket.write(body);
    this.#socket.uncork();
    this.#finish(close);
  }

  #refuse(status: number, reason: string, text: string): void {
    this.#request_id = this.#plane.requestId();
    this.#head = undefined;
    this.#answerOwn(refusalAnswer({ status, reason, text }, this.#request_id));
  }

  #finish(close: boolean): void {
    this.#count();
    this.#leave();
    this.#body = undefined;
    this.#moved_at = this.#plane.now();
    if (close) {
      this.#state = "closed";
      this.#socket.end();
      if (this.#socket.isPaused()) this.#socket.resume();
      return;
    }
    this.#state = "head";
    if (this.#socket.isPaused()) this.#socket.resume();
    // In a turn of its own: a client that sends many requests at once is not to be served in one breath.
    if (this.#unread.length > 0) setImmediate(() => this.#state === "head" && this.#next());
  }

  #count(): void {
    this.#route?.counters.responded(this.#status, (this.#plane.now() - this.#started) / 1000);
  }

  #countBytes(): void {
    const { bytesRead, bytesWritten } = this.#socket;
    this.#route?.counters.moved(bytesRead - this.#bytes.in, bytesWritten - this.#bytes.out);
    this.#bytes = { in: bytesRead, out: bytesWritten };
  }

  /** The seat of a request; with `connections` it is the connection's. */
  #leave(): void {
    const target = this.#target;
    this.#target = undefined;
    if (target?.table.mode === "requests") target.leave();
  }

  #write(text: string): void {
    if (!this.#socket.write(text, "latin1")) this.#upstream?.pause();
  }

  #drain(): void {
    this.#moved_at = this.#plane.now();
    this.#upstream?.resume();
    if (this.#state === "head" && this.#unread.length > 0) this.#next();
  }

  /** A client that says nothing more does not wait for an answer either: the machine need not go on. */
  #ended(): void {
    if (this.#state === "closed") this.#socket.end();
    else this.#socket.destroy();
  }

  #stalled(machine: boolean): void {
    if (!machine || this.#answer) return this.#cut();
    this.#upstream?.abandon();
    this.#upstream = undefined;
    const text = "the machine did not answer in time";
    this.#answerOwn(refusalAnswer({ status: 504, reason: "answer_timeout", text }, this.#request_id));
  }

  #cut(): void {
    this.#socket.destroy();
  }

  #gone(): void {
    if (this.#state === "waiting") this.gone = true;
    this.#upstream?.abandon();
    this.#upstream = undefined;
    this.#leave();
    this.#state = "closed";
    this.#countBytes();
    this.#route?.counters.disconnected();
    this.#plane.unwatch(this);
  }
}
