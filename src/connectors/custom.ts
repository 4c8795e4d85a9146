/** Validates the address of a custom connector's provider. */
import { literalProblem } from "#core/public-addresses.ts";
import { bad } from "./service.ts";
import type { ProviderInfo } from "./types.ts";

interface CustomApi {
  base_api_url: string;
  auth_method: "header" | "query" | "path";
  auth_header_prefix?: string | undefined;
  auth_header_name?: string | undefined;
  auth_query_name?: string | undefined;
  test_url?: string | undefined;
  encoded_paths?: boolean | undefined;
}

/** Header and parameter names are tokens; a prefix is text before a token. */
const NAME = /^[A-Za-z0-9!#$%&'*+.^_`|~-]+$/;
const PREFIX = /^[!-~]*(?: [!-~]+)*$/;
/** Credentials are not allowed in framing and routing headers. */
const FRAMING = /^(host|connection|content-length|transfer-encoding|te|trailer|upgrade|expect)$/i;

export function customInfo(body: CustomApi): ProviderInfo {
  const { auth_method, auth_header_prefix, auth_header_name, auth_query_name, test_url, encoded_paths } = body;
  if (auth_header_prefix !== undefined && !PREFIX.test(auth_header_prefix))
    bad("body.auth_header_prefix", "cannot stand in a header");
  if (auth_header_name !== undefined && (!NAME.test(auth_header_name) || FRAMING.test(auth_header_name)))
    bad("body.auth_header_name", "is not a header that can hold a credential");
  if (auth_query_name !== undefined && !NAME.test(auth_query_name))
    bad("body.auth_query_name", "is not the name of a parameter");
  const base_url = baseUrl(body.base_api_url, "body.base_api_url");
  return {
    base_url,
    auth_method,
    ...(auth_header_prefix === undefined ? {} : { auth_header_prefix }),
    ...(auth_header_name === undefined ? {} : { auth_header_name }),
    ...(auth_query_name === undefined ? {} : { auth_query_name }),
    ...(test_url === undefined ? {} : { test_path: testPath(test_url, base_url) }),
    ...(encoded_paths === undefined ? {} : { encoded_paths }),
  };
}

/** Normalizes a URL once, to the form that is stored and used. */
export function baseUrl(text: string, path: string): string {
  const url = URL.canParse(text) ? new URL(text) : undefined;
  if (!url || !/^https?:$/.test(url.protocol)) return bad(path, "is not an http or https address", "https://…");
  if (url.username !== "" || url.password !== "") bad(path, "must not hold a name or password");
  if (url.search !== "" || url.hash !== "") bad(path, "must not hold a query or a #");
  if (url.pathname.includes("//")) bad(path, "must not hold two slashes in a row");
  return url.href.replace(/\/$/, "").replace(/%7Btoken%7D/i, "{token}");
}

/** A path, or a URL below the base. */
function testPath(test_url: string, base_url: string): string {
  if (test_url.startsWith("/")) return test_url;
  if (!test_url.startsWith(`${base_url}/`)) bad("body.test_url", "is not below body.base_api_url");
  return test_url.slice(base_url.length);
}

/** Warnings at creation; access is checked at use. */
export function addressWarnings({ base_url }: ProviderInfo, allow_private: boolean): string[] {
  if (base_url === undefined) return [];
  const { hostname, protocol } = new URL(base_url);
  const inside = literalProblem(hostname);
  if (inside && allow_private) return [];
  return [
    ...(inside
      ? [`${inside.message}: the gateway refuses it unless the operator sets HANGAR_GATEWAY_ALLOW_PRIVATE=1`]
      : []),
    ...(protocol === "http:" && !inside ? ["the credential goes over the network unencrypted: use https"] : []),
  ];
}
