import type { Readable } from "node:stream";
import type { Refusal } from "../balance/pending-request.ts";
import type { ResponseHead } from "../http1/head.ts";
import type { Exchange, UpstreamConnection } from "../http1/upstream.ts";

/** A request for a static file. */
export interface Wanted {
  method: "GET" | "HEAD";
  /** Path relative to the served directory; without a leading slash or `..`. */
  path: string;
  /** A field of the request, by its lower-case name. */
  field(name: string): string | undefined;
}

/** A source of static files. Returns a connection that answers the request, or nothing. */
export interface Files {
  find(wanted: Wanted): Promise<UpstreamConnection | Refusal | undefined>;
}

/** A ready response as an upstream connection. */
export class FileConnection implements UpstreamConnection {
  readonly reused = false;
  readonly unsent = false;
  readonly #head: ResponseHead;
  readonly #body: Readable | undefined;

  constructor(head: ResponseHead, body?: Readable) {
    this.#head = head;
    this.#body = body;
    // Until another listener is added.
    body?.on("error", () => {});
  }

  begin(exchange: Exchange): void {
    const body = this.#body;
    exchange.answered(this.#head);
    if (!body) {
      exchange.ended("");
      return;
    }
    let over = false;
    const fail = (problem: Error): void => {
      if (!over) exchange.failed(problem, false);
      over = true;
    };
    body.on("data", (chunk: Buffer) => {
      exchange.data(chunk);
      exchange.flush();
    });
    body.on("end", () => {
      over = true;
      exchange.ended("");
    });
    body.on("error", fail);
    body.on("close", () => fail(new Error("the file ended too soon")));
  }

  write(): boolean {
    return true;
  }

  end(): void {}

  pause(): void {
    this.#body?.pause();
  }

  resume(): void {
    this.#body?.resume();
  }

  abandon(): void {
    this.#body?.removeAllListeners();
    this.#body?.on("error", () => {});
    this.#body?.destroy();
  }
}
