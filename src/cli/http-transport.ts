/**
 * Sends a request with Node's own HTTP client. `fetch` does the same, but loading it takes longer than all the rest of a
 * short command.
 */
import type { IncomingMessage } from "node:http";
import type { ClientResponse, Outgoing } from "#client/client.ts";

/** Rejects when there is no answer, or none to its end. Undefined for what only `fetch` can do: redirects. */
export async function sendOverHttp(
  { method, url, headers, body }: Outgoing,
  signal: AbortSignal | undefined,
): Promise<ClientResponse | undefined> {
  const { request } = url.startsWith("https:") ? await import("node:https") : await import("node:http");
  const response = await new Promise<IncomingMessage>((resolve, reject) => {
    const sent = request(url, { method, headers, ...(signal ? { signal } : {}) }, resolve);
    sent.on("error", reject);
    sent.end(body);
  });
  const { statusCode: status = 0 } = response;
  if (REDIRECTS.has(status)) {
    response.destroy();
    return undefined;
  }
  return {
    status,
    ok: status >= 200 && status < 300,
    headers: { get: (name) => response.headers[name]?.toString() ?? null },
    url,
    text: () => textOf(response),
  };
}

const REDIRECTS = new Set([301, 302, 303, 307, 308]);

async function textOf(response: IncomingMessage): Promise<string> {
  const pieces: Buffer[] = [];
  for await (const piece of response) pieces.push(piece as Buffer);
  return Buffer.concat(pieces).toString("utf8");
}
