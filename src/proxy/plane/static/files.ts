import type { Readable } from "node:stream";
import type { Refusal } from "../balance/pending-request.ts";
import type { ResponseHead } from "../http1/head.ts";
import type { Exchange, UpstreamConnection } from "../http1/upstream.ts";

/** What a request says about the file it wants. */
export interface Wanted {
  method: "GET" | "HEAD";
  /** Its way from the folder that is served; no slash before it, and no `..` in it. */
  path: string;
  /** A field of the request, by its lower-case name. */
  field(name: string): string | undefined;
}

/** Where files are. Finds a line that answers the request, or nothing. */
export interface Files {
  find(wanted: Wanted): Promise<UpstreamConnection | Refusal | undefined>;
}

/** An answer that is here already, as a line. */
export class FileConnection implements UpstreamConnection {
  readonly reused = false;
  readonly unsent = false;
  readonly #head: ResponseHead;
  readonly #body: Readable | undefined;

  constructor(head: ResponseHead, body?: Readable) {
    this.#head = head;
    this.#body = body;
    // Until somebody listens.
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
