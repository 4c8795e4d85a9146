/**
 * Sends one HTTP/1.1 request over its own socket: for a short command, loading Node's HTTP client takes longer than the
 * request. Only the API's short responses are parsed; everything else is left to `node:http`.
 */
import type { Socket } from "node:net";
import type { ClientResponse, Outgoing } from "#client/client.ts";

/** Printable ASCII, as in tokens and addresses. `node:http` validates anything else. */
const PLAIN_VALUE = /^[\x20-\x7e]*$/;
const PLAIN_NAME = /^[\w-]+$/;
const HEAD_END = "\r\n\r\n";

/** Whether a request can be sent here: no TLS, no user name in the address, and headers that are plain text. */
export function isPlain(url: URL, headers: Outgoing["headers"]): boolean {
  const all_plain = Object.entries(headers).every(([name, value]) => PLAIN_NAME.test(name) && PLAIN_VALUE.test(value));
  return url.protocol === "http:" && url.username === "" && url.password === "" && all_plain;
}

/** Rejects when there is no response, or only a part of one. */
export async function sendPlain(request: Outgoing, signal: AbortSignal | undefined): Promise<ClientResponse> {
  const received = await exchange(new URL(request.url), requestText(request), signal);
  const { status, headers, body } = parseResponse(received, request.method);
  return {
    status,
    ok: status >= 200 && status < 300,
    headers: { get: (name) => headers.get(name) ?? null },
    url: request.url,
    text: async () => body.toString("utf8"),
  };
}

function requestText({ method, url, headers, body }: Outgoing): string {
  const { host, pathname, search } = new URL(url);
  const length = body === undefined ? {} : { "content-length": String(Buffer.byteLength(body)) };
  // The connection carries one request, so its end may mark the end of the response.
  const all = { host, ...headers, ...length, connection: "close" };
  const lines = Object.entries(all).map(([name, value]) => `${name}: ${value}\r\n`);
  return `${method} ${pathname}${search} HTTP/1.1\r\n${lines.join("")}\r\n${body ?? ""}`;
}

async function exchange({ hostname, port }: URL, text: string, signal: AbortSignal | undefined): Promise<Buffer> {
  signal?.throwIfAborted();
  const { connect } = await import("node:net");
  const host = hostname.replace(/^\[(.*)\]$/, "$1");
  const socket = connect({ host, port: Number(port || 80) });
  const abort = (): void => void socket.destroy(signal?.reason as Error);
  signal?.addEventListener("abort", abort);
  try {
    socket.write(text);
    return await allOf(socket);
  } finally {
    signal?.removeEventListener("abort", abort);
    socket.destroy();
  }
}

const allOf = (socket: Socket): Promise<Buffer> =>
  new Promise((resolve, reject) => {
    const pieces: Buffer[] = [];
    let missing: number | undefined;
    socket.on("data", (piece) => {
      pieces.push(piece);
      missing = missing === undefined ? missingOf(Buffer.concat(pieces)) : missing - piece.length;
      // Some servers ignore `connection: close`.
      if (missing !== undefined && missing <= 0) resolve(Buffer.concat(pieces));
    });
    socket.on("end", () => resolve(Buffer.concat(pieces)));
    socket.on("error", reject);
    socket.on("close", () => reject(new Error("the connection was closed before the response was complete")));
  });

/** How many bytes are still to come; undefined while the head is incomplete or does not give a length. */
function missingOf(received: Buffer): number | undefined {
  const end = received.indexOf(HEAD_END);
  const head = received.toString("latin1", 0, Math.max(end, 0));
  const length = /^HTTP\/1\.[01] [2-5][\s\S]*\r\ncontent-length: *(\d{1,15})(?:\r\n|$)/i.exec(head)?.[1];
  return length === undefined ? undefined : end + HEAD_END.length + Number(length) - received.length;
}

interface Parsed {
  status: number;
  headers: Map<string, string>;
  body: Buffer;
}

export function parseResponse(received: Buffer, method: string): Parsed {
  const end = received.indexOf(HEAD_END);
  const [first = "", ...lines] = received.toString("latin1", 0, Math.max(end, 0)).split("\r\n");
  const status = Number(/^HTTP\/1\.[01] (\d{3})(?: |$)/.exec(first)?.[1] ?? 0);
  if (status === 0)
    throw new Error(received.length === 0 ? "the connection was closed" : "the response is not HTTP/1.1");
  const rest = received.subarray(end + HEAD_END.length);
  // An interim response, such as 103, precedes the final one.
  if (status < 200) return parseResponse(rest, method);
  const headers = new Map<string, string>();
  for (const line of lines) {
    const colon = line.indexOf(":");
    if (colon < 1) throw new Error("the response has a header without a name");
    const [name, value] = [line.slice(0, colon).toLowerCase(), line.slice(colon + 1).trim()];
    const before = headers.get(name);
    headers.set(name, before === undefined ? value : `${before}, ${value}`);
  }
  const has_body = method !== "HEAD" && status !== 204 && status !== 304;
  return { status, headers, body: has_body ? bodyOf(rest, headers) : Buffer.alloc(0) };
}

function bodyOf(rest: Buffer, headers: ReadonlyMap<string, string>): Buffer {
  const coding = headers.get("transfer-encoding");
  if (coding !== undefined) {
    if (coding.toLowerCase() !== "chunked") throw new Error(`the response has the transfer coding ${coding}`);
    return unchunked(rest);
  }
  const length = headers.get("content-length");
  if (length === undefined) return rest;
  if (!/^\d{1,15}$/.test(length)) throw new Error(`the response has the length ${length}`);
  if (rest.length < Number(length)) throw cutShort();
  return rest.subarray(0, Number(length));
}

function unchunked(rest: Buffer): Buffer {
  const pieces: Buffer[] = [];
  for (let at = 0; ; ) {
    const line_end = rest.indexOf("\r\n", at);
    if (line_end < 0) throw cutShort();
    const size = /^([\da-f]{1,8})(?:[\t ]*;.*)?$/i.exec(rest.toString("latin1", at, line_end))?.[1];
    if (size === undefined) throw new Error("the response has a chunk without a size");
    const [begin, length] = [line_end + 2, Number.parseInt(size, 16)];
    if (length === 0) return Buffer.concat(pieces);
    if (rest.length < begin + length + 2) throw cutShort();
    pieces.push(rest.subarray(begin, begin + length));
    at = begin + length + 2;
  }
}

const cutShort = (): Error => new Error("the connection was closed before the response was complete");
