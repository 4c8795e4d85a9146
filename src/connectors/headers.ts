/** Filters headers at the gateway, in both directions. */
import type { IncomingHttpHeaders } from "node:http";

/** Hop-by-hop headers. */
const HOP = new Set(
  "connection keep-alive proxy-authenticate proxy-authorization proxy-connection te trailer transfer-encoding upgrade".split(
    " ",
  ),
);

/** Passed to every provider. */
const COMMON = new Set(
  "accept accept-language cache-control content-disposition content-encoding content-language content-length content-type idempotency-key if-match if-modified-since if-none-match if-range if-unmodified-since last-event-id link prefer range user-agent x-idempotency-key x-request-id".split(
    " ",
  ),
);

/**
 * Never passed: the caller's own credentials and cookies, forwarding headers, and headers that make a server use
 * another path, method or host than the one checked. The gateway sets the encoding: responses must be readable for
 * masking.
 */
const NEVER =
  /^(authorization|cookie2?|host|expect|forwarded|via|accept-encoding|x-forwarded-.*|x-real-ip|x-client-ip|true-client-ip|cf-connecting-ip|x-original-.*|x-rewrite-.*|x-http-method.*|x-method-override|x-host|x-envoy-.*|x-amz-date|x-amz-security-token|x-amz-content-sha256|svc-(?!machine-lease-nonce).*)$/;

/** The caller's headers for the provider. `secret_header` holds the credential. */
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

/** Headers listed in `Connection` are hop-by-hop too. */
function connectionNames({ connection }: IncomingHttpHeaders): Set<string> {
  return new Set((connection ?? "").split(",").map((name) => name.trim().toLowerCase()));
}

/** The provider's headers for the caller, without cookies, which belong to the credential's owner. */
export function responseHeaders(headers: IncomingHttpHeaders, mask: (text: string) => string): [string, string][] {
  const named = connectionNames(headers);
  return Object.entries(headers).flatMap(([name, value]): [string, string][] => {
    if (HOP.has(name) || named.has(name) || name === "set-cookie" || name === "alt-svc" || name.startsWith("svc-"))
      return [];
    return [value ?? []].flat().map((one) => [name, mask(one)]);
  });
}
