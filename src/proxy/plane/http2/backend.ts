import {
  type ClientHttp2Session,
  type ClientHttp2Stream,
  connect,
  constants,
  type IncomingHttpHeaders,
} from "node:http2";
import type { Socket } from "node:net";
import { dial, type Endpoint } from "#core/dial.ts";
import type { TargetCounters } from "../counters.ts";
import { CHUNKED, type ResponseHead } from "../http1/head.ts";
import { type Exchange, TO_MACHINE, type UpstreamConnection } from "../http1/upstream.ts";
import { fieldsOf, LENIENT, trailerLines } from "./fields.ts";

const CLOSED_EARLY = (): Error => new Error("the connection was closed before it was open");

type PendingStream = (line: UpstreamConnection | undefined, problem?: Error) => void;

/** The HTTP/2 connection to one machine; opened on demand, and again after it was lost. */
export class Http2Backend {
  readonly #at: Endpoint;
  readonly #counters: TargetCounters;
  readonly #now: () => number;
  #session: ClientHttp2Session | undefined;
  /** Requests waiting for the connection being opened. */
  #waiting: PendingStream[] | undefined;
  #giveUp: (() => void) | undefined;

  constructor(at: Endpoint, counters: TargetCounters, now: () => number) {
    this.#at = at;
    this.#counters = counters;
    this.#now = now;
  }

  line(done: PendingStream): void {
    const session = this.#session;
    if (this.#waiting) this.#waiting.push(done);
    else if (session && !session.closed && !session.destroyed) done(new Http2Connection(session, true));
    else {
      this.#waiting = [done];
      this.#dial();
    }
  }

  #dial(): void {
    const began = this.#now();
    this.#giveUp = dial(this.#at, { ...TO_MACHINE, allowHalfOpen: false }, (socket, problem) => {
      this.#giveUp = undefined;
      if (!socket) return this.#settle(undefined, problem);
      this.#counters.connected((this.#now() - began) / 1000);
      this.#open(socket);
    });
  }

  #open(socket: Socket): void {
    const session = connect("http://machine", { ...LENIENT, createConnection: () => socket } as object);
    this.#session = session;
    session.once("connect", () => this.#settle(session));
    session.on("error", (problem: Error) => this.#settle(undefined, problem));
    session.on("close", () => {
      this.#counters.disconnected();
      if (this.#session === session) this.#session = undefined;
      this.#settle(undefined, CLOSED_EARLY());
    });
  }

  /** Resolves the waiting requests, once: later errors of the connection do not concern them. */
  #settle(session: ClientHttp2Session | undefined, problem?: Error): void {
    const waiting = this.#waiting ?? [];
    this.#waiting = undefined;
    for (const done of waiting) done(session && new Http2Connection(session, false), problem);
  }

  /** Streams in progress continue. */
  close(): void {
    this.#giveUp?.();
    this.#giveUp = undefined;
    this.#session?.close();
    this.#session = undefined;
    this.#settle(undefined, CLOSED_EARLY());
  }
}

/** One stream as an upstream connection. */
class Http2Connection implements UpstreamConnection {
  readonly reused: boolean;
  /** Frames are sent when there is room for them; Node does not report when. */
  readonly unsent = true;
  readonly #session: ClientHttp2Session;
  #stream: ClientHttp2Stream | undefined;
  #trailers = "";

  constructor(session: ClientHttp2Session, reused: boolean) {
    this.#session = session;
    this.reused = reused;
  }

  begin(exchange: Exchange, head: string, { complete }: { complete: boolean }): void {
    const stream = this.#session.request(headersOf(head), { endStream: complete, waitForTrailers: !complete });
    this.#stream = stream;
    let answered = false;
    let over = false;
    let trailers = "";
    stream.on("headers", (headers, _flags) => exchange.informed(answerOf(headers, false)));
    stream.on("response", (headers, flags) => {
      answered = true;
      exchange.answered(answerOf(headers, (flags & constants.NGHTTP2_FLAG_END_STREAM) !== 0));
      exchange.flush();
    });
    stream.on("data", (chunk: Buffer) => {
      exchange.data(chunk);
      exchange.flush();
    });
    stream.on("trailers", (headers: IncomingHttpHeaders) => {
      trailers = trailerLines(headers);
    });
    stream.on("drain", () => exchange.drained());
    stream.on("wantTrailers", () => stream.sendTrailers(fieldsOf(this.#trailers)));
    stream.on("end", () => {
      if (over || !answered) return;
      over = true;
      exchange.ended(trailers);
    });
    const fail = (problem: Error): void => {
      if (over) return;
      over = true;
      exchange.failed(problem, !answered);
    };
    stream.on("error", fail);
    stream.on("close", () => fail(new Error("the machine closed the stream")));
  }

  write(chunk: Buffer): boolean {
    return this.#stream?.write(chunk) ?? true;
  }

  end(trailers: string): void {
    this.#trailers = trailers;
    this.#stream?.end();
  }

  pause(): void {
    this.#stream?.pause();
  }

  resume(): void {
    this.#stream?.resume();
  }

  abandon(): void {
    this.#stream?.removeAllListeners();
    this.#stream?.on("error", () => {});
    this.#stream?.close(constants.NGHTTP2_CANCEL);
  }
}

/** Converts an HTTP/1.1 head to HTTP/2 headers. */
function headersOf(head: string): Record<string, string | string[]> {
  const [first = "", ...lines] = head.split("\r\n");
  const [method = "GET", path = "/"] = first.split(" ");
  const headers = fieldsOf(lines.join("\r\n"));
  const authority = headers["host"];
  delete headers["host"];
  return {
    ":method": method,
    ":path": path,
    ":scheme": "http",
    ...(authority ? { ":authority": authority } : {}),
    ...headers,
  };
}

function answerOf(headers: IncomingHttpHeaders & { ":status"?: number | undefined }, empty: boolean): ResponseHead {
  const fields: string[] = [];
  for (const [name, value] of Object.entries(headers)) {
    if (name.startsWith(":") || name === "content-length" || value === undefined) continue;
    for (const one of Array.isArray(value) ? value : [String(value)]) fields.push(name, one);
  }
  const length = headers["content-length"];
  const size = empty ? 0 : length === undefined ? CHUNKED : Number(length);
  if (empty && length !== undefined) fields.push("content-length", length);
  return {
    status: headers[":status"] ?? 502,
    reason: "",
    length: size,
    keep_alive: true,
    keep_s: 0,
    upgrade: undefined,
    fields,
  };
}
