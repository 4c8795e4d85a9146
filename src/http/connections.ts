import type { Server } from "node:http";
import type { Socket } from "node:net";

/**
 * Which connections have a request in progress. Node's own "close idle connections" forgets the ones that
 * were opened and never used, and would let a stopping platform wait for them.
 */
export function trackConnections(server: Server): { closeIdle(): void; closeAll(): void } {
  const requests = new Map<Socket, number>();
  let closing = false;
  const change = (socket: Socket, by: number): void => {
    const now = (requests.get(socket) ?? 0) + by;
    if (requests.has(socket)) requests.set(socket, now);
    if (closing && now === 0) socket.end();
  };
  server.on("connection", (socket) => {
    requests.set(socket, 0);
    socket.once("close", () => requests.delete(socket));
  });
  server.on("request", ({ socket }, response) => {
    change(socket, 1);
    response.once("close", () => change(socket, -1));
  });
  // A line is in use until it ends.
  server.on("upgrade", ({ socket }) => change(socket, 1));
  return {
    closeIdle() {
      closing = true;
      for (const [socket, busy] of requests) if (busy === 0) socket.destroy();
    },
    closeAll() {
      for (const socket of requests.keys()) socket.destroy();
    },
  };
}
