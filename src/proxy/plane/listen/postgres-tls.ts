import type { Socket } from "node:net";
import { PROXY_LIMITS } from "../../limits.ts";
import type { PlaneServices } from "../types.ts";

const SSL_REQUEST = Buffer.from([0, 0, 0, 8, 4, 210, 22, 47]);

/** Answers PostgreSQL's SSLRequest, then continues with the TLS handshake. */
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
    // Data before our response is unencrypted and must not be processed.
    if (!bytes.equals(SSL_REQUEST)) return void socket.destroy();
    socket.write("S");
    go();
  };
  socket.on("data", read);
}
