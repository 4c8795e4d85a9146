import type { Server } from "node:http";
import type { Socket } from "node:net";

/**
 * Tracks which connections have a request in progress. Node's closeIdleConnections skips connections that were never
 * used, which would delay a shutdown; its maxConnections closes the newest one, so that idle connections keep others
 * out.
 */
export function trackConnections(server: Server, most: number): { closeIdle(): void; closeAll(): void } {
  // Ordered by last use.
  const requests = new Map<Socket, number>();
  let closing = false;
  const change = (socket: Socket, by: number): void => {
    const now = (requests.get(socket) ?? 0) + by;
    if (requests.delete(socket)) requests.set(socket, now);
    if (closing && now === 0) socket.end();
  };
  server.on("connection", (socket) => {
    if (requests.size >= most) {
      const unused = firstUnused(requests) ?? socket;
      requests.delete(unused);
      unused.destroy();
      if (unused === socket) return;
    }
    requests.set(socket, 0);
    socket.once("close", () => requests.delete(socket));
  });
  server.on("request", ({ socket }, response) => {
    change(socket, 1);
    response.once("close", () => change(socket, -1));
  });
  // A WebSocket is in use until it ends.
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

function firstUnused(requests: ReadonlyMap<Socket, number>): Socket | undefined {
  for (const [socket, busy] of requests) if (busy === 0) return socket;
  return undefined;
}
