/** API responses about connectors, without secrets. */
import { isoTime } from "#core/clock.ts";
import { PROVIDERS } from "./providers.ts";
import type { AccessPolicy, AuditEntry, Connection, Usage } from "./types.ts";

export function connectionResponse(connection: Connection, sprites_base_url: string) {
  const { id, provider, connection_type, provider_account_id, provider_account_name, scopes, user_id } = connection;
  const { provider_info, access_policy, token_expires_at } = connection;
  return {
    id,
    provider,
    connection_type,
    provider_account_id,
    provider_account_name,
    provider_info: { ...provider_info },
    scopes,
    ...(token_expires_at === null ? {} : { token_expires_at: isoTime(token_expires_at) }),
    inserted_at: isoTime(connection.inserted_at),
    updated_at: isoTime(connection.updated_at),
    usage_snippet: usageSnippet(connection, sprites_base_url),
    user_id,
    access_policy: { ...access_policy },
  };
}

export const gatewayUrl = ({ provider, id }: Pick<Connection, "provider" | "id">, sprites_base_url: string): string =>
  `${sprites_base_url}/v1/gateway/${provider}/${id}`;

/** A command for a machine's shell, through its socket, which needs neither a token nor a network. */
export function usageSnippet(connection: Connection, sprites_base_url: string): string {
  const path = connection.provider_info.test_path ?? PROVIDERS[connection.provider]?.test_path ?? "/";
  const url = gatewayUrl(connection, sprites_base_url.replace(/^https:/, "http:"));
  return `curl --unix-socket /.svc/api '${url}${path.replaceAll("'", "%27")}'`;
}

export function usageResponse({ calls, denials, failures, bytes_sent, bytes_received, last_used_at }: Usage) {
  return {
    calls,
    denials,
    failures,
    bytes_sent,
    bytes_received,
    ...(last_used_at === null ? {} : { last_used_at: isoTime(last_used_at) }),
  };
}

export function auditResponse({ id, at, connection_id, action, actor, method, path, status, rule }: AuditEntry) {
  return {
    id,
    at: isoTime(at),
    connection_id,
    action,
    actor,
    ...(method === null ? {} : { method }),
    ...(path === null ? {} : { path }),
    ...(status === null ? {} : { status }),
    ...(rule === null ? {} : { rule }),
  };
}

/** Picks the fields of a policy from a request. */
export function policyOf(given: AccessPolicy): AccessPolicy {
  const { allow_all, allowed_endpoints, blocked_endpoints, name_prefix, sprite_labels } = given;
  return {
    ...(allow_all === undefined ? {} : { allow_all }),
    ...(allowed_endpoints === undefined ? {} : { allowed_endpoints }),
    ...(blocked_endpoints === undefined ? {} : { blocked_endpoints }),
    ...(name_prefix === undefined ? {} : { name_prefix }),
    ...(sprite_labels === undefined ? {} : { sprite_labels }),
  };
}
