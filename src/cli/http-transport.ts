/**
 * Sends a request over a plain socket, or with Node's own HTTP client for TLS and other cases. `fetch` does the same,
 * but loading it takes longer than all the rest of a short command.
 */
import type { IncomingMessage } from "node:http";
import type { ClientResponse, Outgoing } from "#client/client.ts";
import { isPlain, sendPlain } from "./plain-http.ts";

/** Rejects when the response is missing or truncated. Undefined for redirects, which only `fetch` follows. */
export async function sendOverHttp(
  request: Outgoing,
  signal: AbortSignal | undefined,
): Promise<ClientResponse | undefined> {
  const send = isPlain(new URL(request.url), request.headers) ? sendPlain : sendWithNode;
  const response = await send(request, signal);
  return REDIRECTS.has(response.status) ? undefined : response;
}

const REDIRECTS = new Set([301, 302, 303, 307, 308]);

async function sendWithNode(
  { method, url, headers, body }: Outgoing,
  signal: AbortSignal | undefined,
): Promise<ClientResponse> {
  const { request } = url.startsWith("https:") ? await import("node:https") : await import("node:http");
  const response = await new Promise<IncomingMessage>((resolve, reject) => {
    const sent = request(url, { method, headers, ...(signal ? { signal } : {}) }, resolve);
    sent.on("error", reject);
    sent.end(body);
  });
  const { statusCode: status = 0 } = response;
  if (REDIRECTS.has(status)) response.destroy();
  return {
    status,
    ok: status >= 200 && status < 300,
    headers: { get: (name) => response.headers[name]?.toString() ?? null },
    url,
    text: () => textOf(response),
  };
}

async function textOf(response: IncomingMessage): Promise<string> {
  const pieces: Buffer[] = [];
  for await (const piece of response) pieces.push(piece as Buffer);
  return Buffer.concat(pieces).toString("utf8");
}
