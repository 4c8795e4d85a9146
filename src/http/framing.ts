import type { IncomingMessage } from "node:http";
import { LIMITS } from "#core/limits.ts";

/**
 * Detects requests that Node's parser accepts but another program on the way might parse differently. Ambiguous
 * requests are refused. (The parser itself refuses the rest: Content-Length with Transfer-Encoding, duplicate lengths,
 * bare line feeds, folded headers and so on.)
 */
export function ambiguity(request: IncomingMessage): string | undefined {
  const { method, url = "", httpVersion } = request;
  const encodings = values(request, "transfer-encoding");
  const hosts = values(request, "host").length;
  // Node's parser also accepts a missing version (HTTP/0.9) and 2.0.
  if (httpVersion !== "1.1" && httpVersion !== "1.0") return "the request line must end with HTTP/1.1 or HTTP/1.0";
  if (hosts > 1) return "there is more than one Host header";
  if (hosts === 0 && httpVersion === "1.1") return "there is no Host header";
  const encoding = encodingProblem(encodings, httpVersion);
  if (encoding !== undefined) return encoding;
  if (!url.startsWith("/")) return "the request target must be a path";
  if (/[\\#]/.test(url)) return "the request target may not hold a backslash or a #";
  const hasBody = encodings.length > 0 || Number(request.headers["content-length"] ?? 0) > 0;
  if (hasBody && (method === "GET" || method === "HEAD")) return `a ${method} request has no body`;
  return undefined;
}

function encodingProblem(encodings: readonly string[], version: string): string | undefined {
  if (encodings.length > 1) return "there is more than one Transfer-Encoding header";
  if (encodings.some((value) => value !== "chunked")) return "Transfer-Encoding may only be exactly `chunked`";
  if (encodings.length > 0 && version === "1.0") return "Transfer-Encoding does not belong in HTTP/1.0";
  return undefined;
}

/** Raw values: Node's joined headers hide duplicates. */
function values({ rawHeaders }: IncomingMessage, name: string): string[] {
  return rawHeaders.filter((_, i) => i % 2 === 1 && rawHeaders[i - 1]?.toLowerCase() === name);
}

export const tooLong = (request: IncomingMessage): boolean => (request.url?.length ?? 0) > LIMITS.target_bytes;
