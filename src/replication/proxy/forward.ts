/** One attempt to forward a request to a server, with its outcome. */
import type { IncomingHttpHeaders, IncomingMessage, OutgoingHttpHeaders } from "node:http";
import { Agent, request } from "#http/node-http.ts";
import { REPLICATION_LIMITS } from "../limits.ts";

export type Outcome =
  | { kind: "answered"; response: IncomingMessage }
  /** The server was not reached and knows nothing of the request. */
  | { kind: "not sent"; error: Error }
  /** The connection broke after the request began: it may have been executed. */
  | { kind: "broken"; error: Error };

export interface Attempt {
  target: URL;
  method: string;
  path: string;
  headers: OutgoingHttpHeaders;
  /** In memory, or a stream that can be sent once. */
  body: Buffer | IncomingMessage;
  /** May use a kept-alive connection, which the server may be closing. */
  reuse: boolean;
  signal: AbortSignal;
}

const REUSED = new Agent({ keepAlive: true, maxFreeSockets: 64, timeout: REPLICATION_LIMITS.proxy_silence_ms });

export async function attempt({ target, body, reuse, ...options }: Attempt): Promise<Outcome> {
  const { promise, resolve } = Promise.withResolvers<Outcome>();
  let connected = false;
  const sent = request({
    ...options,
    host: target.hostname.replace(/^\[|\]$/g, ""),
    port: target.port || 80,
    agent: reuse ? REUSED : false,
    setHost: false,
  });
  sent.on("socket", (socket) => {
    const begin = (): void => {
      connected = true;
      if (body instanceof Uint8Array) sent.end(body);
      // A disconnecting client ends this too, by the signal.
      else body.pipe(sent);
    };
    if (socket.connecting) socket.once("connect", begin);
    else begin();
  });
  sent.setTimeout(REPLICATION_LIMITS.proxy_silence_ms, () => sent.destroy(new Error("it is silent")));
  sent.on("error", (error) => resolve({ kind: connected ? "broken" : "not sent", error }));
  sent.on("response", (response) => resolve({ kind: "answered", response }));
  return await promise;
}

/** Headers that are between two ends of one connection (RFC 9110, 7.6.1). */
const HOP_BY_HOP = ["connection", "keep-alive", "proxy-connection", "te", "trailer", "transfer-encoding", "upgrade"];

export function endToEnd(headers: IncomingHttpHeaders): OutgoingHttpHeaders {
  const named = (headers.connection ?? "").split(",").map((name) => name.trim().toLowerCase());
  const left_out = new Set([...HOP_BY_HOP, ...named]);
  return Object.fromEntries(Object.entries(headers).filter(([name]) => !left_out.has(name)));
}
