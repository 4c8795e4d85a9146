import type { Socket } from "node:net";
import { PROXY_LIMITS } from "../../limits.ts";
import type { PlaneServices } from "../types.ts";

const SSL_REQUEST = Buffer.from([0, 0, 0, 8, 4, 210, 22, 47]);

/** PostgreSQL clients ask for TLS in the clear first. Answers yes, and goes on when they begin it. */
export function beginPostgresTls(socket: Socket, plane: PlaneServices, go: () => void): void {
  const began = plane.now();
  let bytes: Buffer = Buffer.alloc(0);
  const watched = {
    sweep: (now: number): void => {
      if (now - began > PROXY_LIMITS.handshake_ms) socket.destroy();
    },
    drain: (): void => {},
    cut: (): void => void socket.destroy(),
  };
  plane.watch(watched);
  socket.once("close", () => plane.unwatch(watched));
  const read = (chunk: Buffer): void => {
    bytes = Buffer.concat([bytes, chunk]);
    if (bytes.length < SSL_REQUEST.length) return;
    socket.off("data", read);
    plane.unwatch(watched);
    // Anything after the request came before our answer, so it is not protected, and not meant to be.
    if (!bytes.equals(SSL_REQUEST)) return void socket.destroy();
    socket.write("S");
    go();
  };
  socket.on("data", read);
}
