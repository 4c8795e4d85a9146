import type { Socket } from "node:net";
import { dial, type Endpoint } from "#core/dial.ts";
import { PROXY_LIMITS } from "../../limits.ts";
import { BadMessage } from "./bad-message.ts";
import { BodyReader, type BodySink } from "./body.ts";
import { headEnd, type ResponseHead, readResponse } from "./head.ts";
import { ReadBatcher } from "./read-batcher.ts";
import { ReadBuffers } from "./read-buffers.ts";

/** Receives the response to a request. Order of calls: informed*, answered, data*, ended; or failed. */
export interface Exchange {
  readonly method: string;
  /** Whether the memory of delivered chunks is still in use, because not all of it was sent. */
  readonly unsent: boolean;
  /** An interim response (1xx). */
  informed(head: ResponseHead): void;
  answered(head: ResponseHead): void;
  /** This many bytes before the chunk, in its buffer, are free to be overwritten. */
  data(chunk: Buffer, module?: number): void;
  /** The end of a batch of chunks: buffered data can be sent. */
  flush(): void;
  ended(trailers: string): void;
  /** The machine switched protocols; the connection now belongs to the caller, with the bytes after the head. */
  upgraded(head: ResponseHead, socket: Socket, rest: Buffer): void;
  /** There is no response, or it broke off. `untouched`: no byte of it was received. */
  failed(problem: Error, untouched: boolean): void;
  /** More of the request body may be written. */
  drained(): void;
}

/** A connection to a machine for one exchange, over HTTP/1 or HTTP/2. */
export interface UpstreamConnection {
  /** Whether it was used before, so that the other side may have closed it meanwhile. */
  readonly reused: boolean;
  /** Whether the memory of written chunks is still in use. */
  readonly unsent: boolean;
  /** Sends the head, as HTTP/1.1 text; the body follows unless it is complete. */
  begin(exchange: Exchange, head: string, body: { complete: boolean; chunked: boolean }): void;
  /** Returns false when the caller should wait for `drained`. */
  write(chunk: Buffer): boolean;
  end(trailers: string): void;
  pause(): void;
  resume(): void;
  /** Aborts the exchange, because the client has disconnected. */
  abandon(): void;
}

/** The pool that a connection belongs to. */
export interface UpstreamOwner {
  /** The exchange is over and the connection may be reused, for at most this long. */
  free(upstream: Upstream, keep_ms: number): void;
  closed(upstream: Upstream): void;
}

/** Socket options of connections to machines. */
export const TO_MACHINE = { noDelay: true, allowHalfOpen: true, timeout_ms: PROXY_LIMITS.connect_ms } as const;

/** One HTTP/1.1 connection to a machine: one exchange at a time. */
export class Upstream implements UpstreamConnection {
  readonly socket: Socket;
  readonly #owner: UpstreamOwner;
  #exchange: Exchange | undefined;
  #body: BodyReader | undefined;
  #pending: Buffer | undefined;
  #keep_alive = false;
  #keep_ms = 0;
  /** The current chunk is in the buffer that the next read overwrites. */
  #in_place = false;
  /** Nothing of the current chunk was passed on yet. */
  #unpassed = false;
  /** Part of it is still in use. */
  #unsent = false;
  /** Whether the request was written completely. */
  #sent = true;
  #chunked = false;
  #touched = false;
  #closed = false;
  readonly #buffers: ReadBuffers | undefined;
  readonly #sink: BodySink = {
    data: (chunk) => this.#pass(chunk),
    end: (trailers) => this.#complete(trailers, false),
  };
  readonly #inbox = new ReadBatcher((chunk) => this.#closed || this.#read(chunk));
  reused = false;
  /** Until when it may stay idle. */
  keep_until = 0;

  /** With buffers, data is delivered to `arrived`. */
  constructor(socket: Socket, owner: UpstreamOwner, buffers?: ReadBuffers) {
    this.socket = socket;
    this.#owner = owner;
    this.#buffers = buffers;
    if (!buffers) socket.on("data", (chunk: Buffer) => this.#read(chunk));
    socket.on("drain", () => this.#exchange?.drained());
    socket.on("end", () => this.#ended());
    socket.on("error", (error) => this.#fail(error));
    socket.on("close", () => this.#fail(new Error("the machine closed the connection")));
  }

  /** Connects; `done` gets the connection or the error. `preface` is written first. */
  static open(
    at: Endpoint,
    owner: UpstreamOwner,
    done: (upstream: Upstream | undefined, problem?: Error) => void,
    how: { preface?: Buffer | undefined; upgrade?: boolean } = {},
  ): void {
    let upstream: Upstream | undefined;
    // A connection that may be upgraded is read without shared buffers.
    const buffers = how.upgrade ? undefined : new ReadBuffers();
    const opened = (socket: Socket | undefined, problem?: Error): void => {
      if (socket) upstream = new Upstream(socket, owner, buffers);
      if (how.preface) socket?.write(how.preface);
      done(upstream, problem);
    };
    const onread = buffers && {
      buffer: () => buffers.current,
      callback(bytes: number, memory: Uint8Array): boolean {
        upstream?.arrived((memory as Buffer).subarray(0, bytes));
        return true;
      },
    };
    dial(at, { ...TO_MACHINE, ...(onread ? { onread } : {}) }, opened);
  }

  get unsent(): boolean {
    return this.socket.writableLength > 0;
  }

  get closed(): boolean {
    return this.#closed;
  }

  begin(exchange: Exchange, head: string, body: { complete: boolean; chunked: boolean }): void {
    this.#exchange = exchange;
    this.#buffers?.forget();
    this.#touched = false;
    this.#sent = body.complete;
    this.#chunked = body.chunked;
    this.socket.write(head, "latin1");
  }

  write(chunk: Buffer): boolean {
    if (!this.#chunked) return this.socket.write(chunk);
    this.socket.cork();
    this.socket.write(`${chunk.length.toString(16)}\r\n`, "latin1");
    this.socket.write(chunk);
    const module = this.socket.write("\r\n", "latin1");
    this.socket.uncork();
    return module;
  }

  end(trailers: string): void {
    if (this.#chunked) this.socket.write(`0\r\n${trailers}\r\n`, "latin1");
    this.#sent = true;
  }

  pause(): void {
    this.socket.pause();
  }

  resume(): void {
    if (!this.#closed && this.socket.isPaused()) this.socket.resume();
  }

  abandon(): void {
    this.#exchange = undefined;
    this.destroy();
  }

  destroy(): void {
    this.socket.destroy();
    this.#close();
  }

  /** Handles bytes from the machine. The next read reuses their buffer, unless it is lent. */
  arrived(chunk: Buffer): void {
    // Unexpected bytes must be detected before the next exchange.
    if (this.#exchange && chunk.length <= PROXY_LIMITS.one_write_bytes) {
      this.#inbox.put(Buffer.from(chunk));
      return;
    }
    this.#inbox.settle();
    this.#in_place = true;
    this.#unpassed = !this.#pending;
    this.#read(chunk);
    this.#in_place = false;
  }

  #read(chunk: Buffer): void {
    if (!this.#exchange) {
      this.destroy(); // Unexpected bytes.
      this.#touched = true;
      return;
    }
    this.#touched = true;
    try {
      this.#take(chunk);
      this.#exchange?.flush();
    } catch (thrown) {
      if (!(thrown instanceof BadMessage)) throw thrown;
      this.#fail(thrown);
    }
    this.#lend();
  }

  #take(chunk: Buffer): void {
    let rest = chunk;
    while (!this.#body) {
      const bytes = this.#pending ? Buffer.concat([this.#pending, rest]) : rest;
      const end = headEnd(bytes);
      if (end < 0) {
        if (bytes.length > PROXY_LIMITS.head_bytes) throw new BadMessage("the answer's head is too large", 502);
        this.#pending = Buffer.from(bytes);
        return;
      }
      this.#pending = undefined;
      rest = bytes.subarray(end + 4);
      if (!this.#head(bytes, rest)) return;
    }
    this.#feed(rest);
  }

  /** Returns false when reading ends here: the connection was upgraded, or the response is complete. */
  #head(bytes: Buffer, rest: Buffer): boolean {
    const exchange = this.#exchange as Exchange;
    const head = readResponse(bytes, bytes.length - rest.length, exchange.method);
    if (head.status === 101) {
      if (this.#buffers) throw new BadMessage("it switched protocols without a request to upgrade", 502);
      this.#handOver(exchange, head, rest);
      return false;
    }
    if (head.status < 200) {
      exchange.informed(head);
      return rest.length > 0;
    }
    this.#keep_alive = head.keep_alive;
    // The other side's keep-alive timeout, less a margin for the network.
    this.#keep_ms = Math.min(PROXY_LIMITS.pooled_ms, head.keep_s * 1000 - 1000);
    exchange.answered(head);
    this.#body = new BodyReader(head.length);
    if (!this.#body.done) return true;
    this.#complete("", rest.length > 0);
    return false;
  }

  #feed(bytes: Buffer): void {
    const body = this.#body;
    if (!body || bytes.length === 0) return;
    const used = body.feed(bytes, this.#sink);
    if (used < bytes.length && this.#exchange === undefined) this.destroy();
  }

  #lend(): void {
    if (this.#unsent) this.#buffers?.lend();
    this.#unsent = false;
  }

  #pass(chunk: Buffer): void {
    const exchange = this.#exchange;
    if (!exchange) return;
    if (!exchange.unsent) this.#buffers?.returned();
    exchange.data(chunk, this.#in_place && this.#unpassed ? chunk.byteOffset : 0);
    this.#unpassed = false;
    this.#unsent ||= this.#in_place && exchange.unsent;
  }

  #complete(trailers: string, more: boolean): void {
    const exchange = this.#exchange;
    this.#lend();
    // The next exchange does not track buffers that this one still uses.
    this.#buffers?.forget();
    this.#exchange = undefined;
    this.#body = undefined;
    // A response before the end of the request leaves the connection in the middle of the request.
    const usable = this.#keep_alive && this.#sent && !more && !this.#closed;
    this.reused = true;
    // A slow client may have paused it at the last bytes.
    if (this.socket.isPaused()) this.socket.resume();
    exchange?.ended(trailers);
    if (usable && !this.#closed) this.#owner.free(this, this.#keep_ms);
    else this.destroy();
  }

  #handOver(exchange: Exchange, head: ResponseHead, rest: Buffer): void {
    this.#exchange = undefined;
    this.socket.removeAllListeners();
    this.#closed = true;
    exchange.upgraded(head, this.socket, rest);
  }

  #ended(): void {
    this.#inbox.settle();
    const body = this.#body;
    const over = body?.close(this.#sink);
    if (!over) this.#fail(new Error("the machine closed the connection"));
    else this.destroy();
  }

  #fail(problem: Error): void {
    this.#inbox.settle();
    const exchange = this.#exchange;
    this.#exchange = undefined;
    this.socket.destroy();
    this.#close();
    exchange?.failed(problem, !this.#touched);
  }

  #close(): void {
    if (this.#closed) return;
    this.#closed = true;
    this.#owner.closed(this);
  }
}
