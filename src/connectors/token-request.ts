/** Requests to a provider's token endpoint, and to its account endpoint. */
import { ApiError, fail } from "#core/errors.ts";
import { CONNECTOR_LIMITS as LIMITS } from "./limits.ts";

export interface TokenResponse {
  access_token: string;
  refresh_token?: string;
  /** Seconds. */
  expires_in?: number;
  scope?: string;
}

export interface Account {
  id: string;
  name: string;
}

/** Errors have the platform's text: a token endpoint's response may contain a token, so only its error code is used. */
export async function tokenRequest(url: string, form: Record<string, string>): Promise<TokenResponse> {
  const { status, json } = await requestJson(url, { method: "POST", body: new URLSearchParams(form) });
  const error = textOf(json["error"]);
  // Some return 200 with an error.
  if (status >= 400 || error !== undefined) {
    const code = error !== undefined && /^[\w. -]{1,64}$/.test(error) ? error : `status ${status}`;
    return fail("connector_unusable", `the provider refused (${code})`);
  }
  const access_token = textOf(json["access_token"]);
  if (access_token === undefined) return fail("connector_unusable", "the provider's answer holds no token");
  const refresh_token = textOf(json["refresh_token"]);
  const scope = textOf(json["scope"]);
  const expires_in = Number(json["expires_in"]);
  return {
    access_token,
    ...(refresh_token === undefined ? {} : { refresh_token }),
    ...(scope === undefined ? {} : { scope }),
    ...(Number.isFinite(expires_in) && expires_in > 0 ? { expires_in } : {}),
  };
}

/** Undefined when the provider does not report it; the connector then has no account name. */
export async function accountOf(
  url: string,
  fields: { id: string; name: string },
  token: string,
): Promise<Account | undefined> {
  try {
    const { status, json } = await requestJson(url, { headers: { authorization: `Bearer ${token}` } });
    const id = json[fields.id];
    const name = json[fields.name];
    if (status >= 400 || (typeof id !== "string" && typeof id !== "number")) return undefined;
    return { id: String(id), name: typeof name === "string" ? name : String(id) };
  } catch {
    return undefined;
  }
}

async function requestJson(
  url: string,
  init: TokenRequest,
): Promise<{ status: number; json: Record<string, unknown> }> {
  try {
    const response = await fetch(url, {
      ...init,
      // A credential must not follow redirects.
      redirect: "manual",
      headers: { accept: "application/json", "user-agent": "hangar", ...init.headers },
      signal: AbortSignal.timeout(LIMITS.oauth_timeout_ms),
    });
    return { status: response.status, json: readJson(await limitedText(response)) };
  } catch (cause) {
    if (cause instanceof ApiError) throw cause;
    return fail("upstream_failed", "the provider's token endpoint could not be reached", { cause });
  }
}

interface TokenRequest {
  method?: string;
  body?: URLSearchParams;
  headers?: Record<string, string>;
}

async function limitedText(response: Response): Promise<string> {
  const chunks: Uint8Array[] = [];
  let bytes = 0;
  for await (const chunk of (response.body ?? []) as AsyncIterable<Uint8Array>) {
    bytes += chunk.length;
    if (bytes > LIMITS.oauth_answer_bytes)
      fail("upstream_failed", "the provider's answer is too long (limit oauth_answer_bytes)");
    chunks.push(chunk);
  }
  return Buffer.concat(chunks).toString();
}

function readJson(text: string): Record<string, unknown> {
  try {
    const value: unknown = JSON.parse(text);
    return value !== null && typeof value === "object" ? (value as Record<string, unknown>) : {};
  } catch {
    return {};
  }
}

const textOf = (value: unknown): string | undefined => (typeof value === "string" && value !== "" ? value : undefined);
