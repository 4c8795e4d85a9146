/**
 * Settings of every HTTP server of the platform, not only the API's: limits on headers and time, and strict framing.
 * Node's own defaults wait for minutes, and accept a request line without a version.
 */
import type { IncomingMessage, RequestListener, ServerOptions, ServerResponse } from "node:http";
import type { Duplex } from "node:stream";
import { ApiError, errorBody } from "#core/errors.ts";
import { LIMITS } from "#core/limits.ts";
import { ambiguity, tooLong } from "./framing.ts";
import { isUploading } from "./upload.ts";

export const HTTP_BOUNDS = {
  maxHeaderSize: LIMITS.header_bytes,
  headersTimeout: LIMITS.headers_timeout_ms,
  requestTimeout: LIMITS.request_timeout_ms,
  connectionsCheckingInterval: 500,
  // Checked by framing.ts, so that the response has the API's format.
  requireHostHeader: false,
} as const satisfies ServerOptions;

/** Refuses ambiguous requests before `listener`. */
export const strictly =
  (listener: RequestListener): RequestListener =>
  (request, response) => {
    if (!isRefused(request, response)) listener(request, response);
  };

/** Answers a request that must be refused; returns whether it was one. */
export function isRefused(request: IncomingMessage, response: ServerResponse): boolean {
  const error = problemOf(request);
  if (!error) return false;
  const headers = { "content-type": "application/json", connection: "close" };
  response.writeHead(error.http, headers).end(`${JSON.stringify(errorBody(error, ""))}\n`);
  return true;
}

function problemOf(request: IncomingMessage): ApiError | undefined {
  if (tooLong(request)) return new ApiError("uri_too_long", `the limit target_bytes is ${LIMITS.target_bytes} bytes`);
  const problem = ambiguity(request);
  return problem === undefined ? undefined : new ApiError("malformed_http", problem);
}

/** For "clientError": a malformed request gets a short response. Uploads may be slow. */
export function refuseBytes(error: Error & { code?: string }, socket: Duplex): void {
  const late = error.code === "ERR_HTTP_REQUEST_TIMEOUT";
  if (late && isUploading(socket)) return;
  // Other errors mean that the client has disconnected, or a failed handshake.
  if (!socket.writable || !(late || error.code?.startsWith("HPE_"))) return void socket.destroy();
  const status = late ? "408 Request Timeout" : "400 Bad Request";
  socket.end(`HTTP/1.1 ${status}\r\nconnection: close\r\ncontent-length: 0\r\n\r\n`);
}
