/** Which headers pass the gateway, in both directions. */
import type { IncomingHttpHeaders } from "node:http";

/** Belong to one connection, not to the request. */
const HOP = new Set(
  "connection keep-alive proxy-authenticate proxy-authorization proxy-connection te trailer transfer-encoding upgrade".split(
    " ",
  ),
);

/** Pass to every provider. */
const COMMON = new Set(
  "accept accept-language cache-control content-disposition content-encoding content-language content-length content-type idempotency-key if-match if-modified-since if-none-match if-range if-unmodified-since last-event-id link prefer range user-agent x-idempotency-key x-request-id".split(
    " ",
  ),
);

/**
 * Never pass, even to a provider that takes any header: credentials and cookies of the caller's own, where it
 * comes from, and what asks a server to read another path, method or host than the one that was judged. The
 * encoding is ours to choose: what comes back must be readable, so that a credential in it can be masked.
 */
const NEVER =
  /^(authorization|cookie2?|host|expect|forwarded|via|accept-encoding|x-forwarded-.*|x-real-ip|x-client-ip|true-client-ip|cf-connecting-ip|x-original-.*|x-rewrite-.*|x-http-method.*|x-method-override|x-host|x-envoy-.*|x-amz-date|x-amz-security-token|x-amz-content-sha256|svc-(?!machine-lease-nonce).*)$/;

/** The caller's headers as they go to the provider. `secret_header` is the one the credential goes into. */
export function requestHeaders(
  headers: IncomingHttpHeaders,
  allowed: readonly string[],
  secret_header: string | undefined,
): Record<string, string> {
  const named = connectionNames(headers);
  return Object.fromEntries(
    Object.entries(headers).flatMap(([name, value]) => {
      if (HOP.has(name) || NEVER.test(name) || named.has(name) || name === secret_header || value === undefined)
        return [];
      if (!COMMON.has(name) && !allowed.some((pattern) => matches(pattern, name))) return [];
      return [[name, Array.isArray(value) ? value.join(", ") : value]];
    }),
  );
}

const matches = (pattern: string, name: string): boolean =>
  pattern.endsWith("*") ? name.startsWith(pattern.slice(0, -1)) : name === pattern;

/** Whatever `Connection` names belongs to the connection, too. */
function connectionNames({ connection }: IncomingHttpHeaders): Set<string> {
  return new Set((connection ?? "").split(",").map((name) => name.trim().toLowerCase()));
}

/**
 * The provider's headers as they go to the caller. Its cookies are a session of the credential's owner, and no
 * business of the caller's.
 */
export function responseHeaders(headers: IncomingHttpHeaders, mask: (text: string) => string): [string, string][] {
  const named = connectionNames(headers);
  return Object.entries(headers).flatMap(([name, value]): [string, string][] => {
    if (HOP.has(name) || named.has(name) || name === "set-cookie" || name === "alt-svc" || name.startsWith("svc-"))
      return [];
    return [value ?? []].flat().map((one) => [name, mask(one)]);
  });
}
