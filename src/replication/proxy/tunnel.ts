/** WebSockets and other upgrades go to the local application, bytes as they are. */
import type { IncomingMessage } from "node:http";
import type { Duplex } from "node:stream";
import { pipeline } from "node:stream";
import { request as httpRequest } from "#http/node-http.ts";

export function tunnel(app: URL, request: IncomingMessage, socket: Duplex, head: Buffer): void {
  const { method = "GET", url: path = "/", headers } = request;
  const host = app.hostname.replace(/^\[|\]$/g, "");
  const sent = httpRequest({ host, port: app.port || 80, method, path, headers, agent: false, setHost: false });
  sent.on("upgrade", (answer, other, first) => {
    socket.write(headOf(answer, []));
    socket.write(first);
    other.write(head);
    pipeline(socket, other, () => undefined);
    pipeline(other, socket, () => undefined);
  });
  // The application refused the upgrade.
  sent.on("response", (answer) => {
    // The body arrives without its framing, and ends with the connection.
    socket.write(headOf(answer, ["transfer-encoding", "connection", "keep-alive"], "connection: close"));
    pipeline(answer, socket, () => undefined);
  });
  sent.on("error", () => socket.end("HTTP/1.1 502 Bad Gateway\r\nconnection: close\r\ncontent-length: 0\r\n\r\n"));
  socket.on("error", () => sent.destroy());
  sent.end();
}

function headOf(answer: IncomingMessage, left_out: readonly string[], ...more: string[]): string {
  const { statusCode, statusMessage, rawHeaders } = answer;
  const lines = [`HTTP/1.1 ${statusCode} ${statusMessage}`, ...more];
  for (let i = 0; i < rawHeaders.length; i += 2) {
    if (!left_out.includes((rawHeaders[i] ?? "").toLowerCase())) lines.push(`${rawHeaders[i]}: ${rawHeaders[i + 1]}`);
  }
  return `${lines.join("\r\n")}\r\n\r\n`;
}
