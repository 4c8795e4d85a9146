import type { Socket } from "node:net";
import { dial, type Endpoint } from "#core/dial.ts";
import { PROXY_LIMITS } from "../../limits.ts";
import { BadMessage } from "./bad-message.ts";
import { BodyReader, type BodySink } from "./body.ts";
import { headEnd, type ResponseHead, readResponse } from "./head.ts";
import { ReadBatcher } from "./read-batcher.ts";
import { ReadBuffers } from "./read-buffers.ts";

/** Who asked, and is told what comes back. Calls come in this order: informed*, answered, data*, ended; or failed. */
export interface Exchange {
  readonly method: string;
  /** Whether the memory of what was told so far is still needed, because not all of it is sent. */
  readonly unsent: boolean;
  /** An interim answer (1xx). */
  informed(head: ResponseHead): void;
  answered(head: ResponseHead): void;
  /** So many bytes in front of the chunk, in its memory, are nobody's and may be written to. */
  data(chunk: Buffer, module?: number): void;
  /** The batch of bytes that was just told is over: what was held back to be sent together can go. */
  flush(): void;
  ended(trailers: string): void;
  /** The machine changed the protocol; from now on the connection is the caller's, with what came after the head. */
  upgraded(head: ResponseHead, socket: Socket, rest: Buffer): void;
  /** No answer will come, or it broke off. `untouched`: not a byte of it had come. */
  failed(problem: Error, untouched: boolean): void;
  /** More of the request's body may be written. */
  drained(): void;
}

/** One exchange's way to the machine, whatever is spoken on it. */
export interface UpstreamConnection {
  /** Used before: the other side may have closed it meanwhile. */
  readonly reused: boolean;
  /** Whether the memory of what was written is still needed. */
  readonly unsent: boolean;
  /** Sends the head, which is HTTP/1.1 text; the body follows unless it is complete. */
  begin(exchange: Exchange, head: string, body: { complete: boolean; chunked: boolean }): void;
  /** False when the caller should wait for `drained`. */
  write(chunk: Buffer): boolean;
  end(trailers: string): void;
  pause(): void;
  resume(): void;
  /** Nobody waits for the answer any more. */
  abandon(): void;
}

/** What a connection tells the pool it belongs to. */
export interface UpstreamOwner {
  /** The exchange is over and the connection can be used again, for at most so long. */
  free(upstream: Upstream, keep_ms: number): void;
  closed(upstream: Upstream): void;
}

/** How every connection to a machine is opened. */
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
  /** What is being read lies where the next read goes. */
  #in_place = false;
  /** Nothing of it was passed on yet. */
  #untold = false;
  /** Part of it is still needed. */
  #unsent = false;
  /** Whether the request was written to its end. */
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
  /** Until when it may lie unused. */
  keep_until = 0;

  /** With buffers, what comes is brought to `arrived`. */
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

  /** Connects; `done` is told the connection or why there is none. `preface` is written before anything else. */
  static open(
    at: Endpoint,
    owner: UpstreamOwner,
    done: (upstream: Upstream | undefined, problem?: Error) => void,
    how: { preface?: Buffer | undefined; upgrade?: boolean } = {},
  ): void {
    let upstream: Upstream | undefined;
    // A connection that may change hands is read the usual way.
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

  /** Bytes of the machine. Their memory is the next read's, unless it is lent. */
  arrived(chunk: Buffer): void {
    // Bytes that nobody asked for must not be there still when somebody does.
    if (this.#exchange && chunk.length <= PROXY_LIMITS.one_write_bytes) {
      this.#inbox.put(Buffer.from(chunk));
      return;
    }
    this.#inbox.settle();
    this.#in_place = true;
    this.#untold = !this.#pending;
    this.#read(chunk);
    this.#in_place = false;
  }

  #read(chunk: Buffer): void {
    if (!this.#exchange) {
      this.destroy(); // Bytes that nobody asked for.
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

  /** False when nothing more is to be read here: the connection changed hands, or the answer is complete. */
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
    // The other side's own limit, less what is on its way.
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
    exchange.data(chunk, this.#in_place && this.#untold ? chunk.byteOffset : 0);
    this.#untold = false;
    this.#unsent ||= this.#in_place && exchange.unsent;
  }

  #complete(trailers: string, more: boolean): void {
    const exchange = this.#exchange;
    this.#lend();
    // Whoever asks next on this connection knows nothing of what this one still has to send.
    this.#buffers?.forget();
    this.#exchange = undefined;
    this.#body = undefined;
    // An answer that came before the whole request was sent leaves the connection in the middle of it.
    const usable = this.#keep_alive && this.#sent && !more && !this.#closed;
    this.reused = true;
    // A slow client may have stopped it at the last bytes.
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
