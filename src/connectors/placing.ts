/** Adds a credential where its provider expects it, independent of the caller's request. */
import { fail } from "#core/errors.ts";
import { signedHeaders } from "#s3/signature.ts";
import { type Placement, PROVIDERS, type Provider, type ProviderSetting } from "./providers.ts";
import type { Connection, Credential } from "./types.ts";

/** An outgoing request to the provider. */
export interface Outgoing {
  origin: string;
  /** Path and query. */
  path: string;
  headers: Record<string, string>;
  /** Values to mask in the response. */
  secrets: string[];
}

/** How the gateway reaches a connector's provider. */
export interface Destination {
  provider: Provider;
  placement: Placement;
  base_url: string;
  /** The connector's owner chose the address, so it must be public. */
  guarded: boolean;
}

type Settings = Readonly<Record<string, ProviderSetting>>;

export function destinationOf(
  { provider: name, provider_info: info }: Pick<Connection, "provider" | "provider_info">,
  settings: Settings,
  self_url: () => string,
): Destination {
  const provider = PROVIDERS[name] ?? fail("not_found", `there is no provider ${JSON.stringify(name)}`);
  const given = info.base_url;
  const own = name === "sprites_admin" ? self_url() : undefined;
  const base_url = given ?? own ?? settings[name]?.base_url ?? provider.base_url;
  if (!base_url) fail("connector_unusable", "this connector does not say where its provider is");
  return { provider, placement: placementOf(provider, info), base_url, guarded: given !== undefined };
}

function placementOf(provider: Provider, info: Connection["provider_info"]): Placement {
  const { auth_method, auth_header_name = "authorization", auth_header_prefix = "Bearer", auth_query_name } = info;
  if (auth_method === undefined) return provider.placement;
  if (auth_method === "query") return { in: "query", name: auth_query_name ?? "access_token" };
  if (auth_method === "path") return { in: "path" };
  return { in: "header", name: auth_header_name.toLowerCase(), prefix: auth_header_prefix };
}

/** The header of the credential, which the caller cannot set. */
export const secretHeader = (placement: Placement): string | undefined =>
  placement.in === "header" ? placement.name : undefined;

interface IncomingRequest {
  method: string;
  path: string;
  /** With its question mark, or empty. */
  query: string;
  headers: Record<string, string>;
  region: string | undefined;
  now_ms: number;
}

export function place(
  { base_url, placement }: Destination,
  credential: Credential,
  incoming: IncomingRequest,
): Outgoing {
  const base = new URL(base_url);
  const { token } = credential;
  const outgoing = (path: string, query: string, headers: Record<string, string>): Outgoing => ({
    origin: base.origin,
    path: `${path}${query}`,
    headers,
    secrets: [token],
  });
  const root = base.pathname.replace(/\/$/, "");
  const path = `${root}${incoming.path}`;
  switch (placement.in) {
    case "header": {
      const value = placement.prefix === "" ? token : `${placement.prefix} ${token}`;
      return outgoing(path, incoming.query, { ...incoming.headers, [placement.name]: value });
    }
    case "query": {
      const kept = withoutParameter(incoming.query, placement.name);
      const own = `${encodeURIComponent(placement.name)}=${encodeURIComponent(token)}`;
      return outgoing(path, `?${kept === "" ? "" : `${kept}&`}${own}`, incoming.headers);
    }
    case "path":
      return outgoing(pathWithToken(root, token, incoming.path), incoming.query, incoming.headers);
    case "signature": {
      const { access_key_id = "" } = credential;
      const { method, headers, now_ms, region = "us-east-1" } = incoming;
      const signing = { method, path, query: incoming.query.slice(1), host: base.host, headers, now_ms, region };
      return outgoing(path, incoming.query, {
        ...headers,
        ...signedHeaders({ ...signing, access_key_id, secret: token }),
      });
    }
  }
}

/** `{token}` in the base URL is replaced; otherwise the token is the first segment after the base. */
function pathWithToken(root: string, token: string, path: string): string {
  const encoded = encodeURIComponent(token).replaceAll("%3A", ":");
  const marked = root.replace(/\{token\}|%7Btoken%7D/i, () => encoded);
  return marked === root ? `${root}/${encoded}${path}` : `${marked}${path}`;
}

/** Removes a parameter from the query, in any encoding. */
function withoutParameter(query: string, name: string): string {
  return query
    .slice(1)
    .split("&")
    .filter((pair) => pair !== "" && parameterName(pair) !== name)
    .join("&");
}

function parameterName(pair: string): string {
  const [name = ""] = pair.split("=");
  try {
    return decodeURIComponent(name.replaceAll("+", " "));
  } catch {
    return name;
  }
}
