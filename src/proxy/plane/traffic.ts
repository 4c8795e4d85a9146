import type { Socket } from "node:net";
import type { Route } from "./balance/route.ts";

/** Bytes of a client's connection, told to the counters now and then. */
export class Traffic {
  readonly #socket: Socket;
  #in = 0;
  #out = 0;

  constructor(socket: Socket) {
    this.#socket = socket;
  }

  /** What came and went since the last time. */
  report(route: Route | undefined): void {
    const { bytesRead, bytesWritten } = this.#socket;
    route?.counters.moved(bytesRead - this.#in, bytesWritten - this.#out);
    this.#in = bytesRead;
    this.#out = bytesWritten;
  }
}
