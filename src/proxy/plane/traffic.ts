import type { Socket } from "node:net";
import type { Route } from "./balance/route.ts";

/** Counts the bytes of a client connection. */
export class Traffic {
  readonly #socket: Socket;
  #in = 0;
  #out = 0;

  constructor(socket: Socket) {
    this.#socket = socket;
  }

  /** Reports the bytes since the last call. */
  report(route: Route | undefined): void {
    const { bytesRead, bytesWritten } = this.#socket;
    route?.counters.moved(bytesRead - this.#in, bytesWritten - this.#out);
    this.#in = bytesRead;
    this.#out = bytesWritten;
  }
}
