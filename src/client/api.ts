// Generated from the routes by `npm run docs`; do not edit.

/** Every route: what it takes and what it answers. */
export interface Api {
  /** Answers 200 when requests can be served. */
  "GET /healthz": {
    params: Record<string, never>;
    query: Record<string, never>;
    body: undefined;
    answer: { ok: boolean; version: string };
  };
  /** A page for people: that it runs, and where to go. */
  "GET /": {
    params: Record<string, never>;
    query: Record<string, never>;
    body: undefined;
    answer: string;
  };
  /** The API, readable. */
  "GET /docs": {
    params: Record<string, never>;
    query: Record<string, never>;
    body: undefined;
    answer: string;
  };
  /** The API as an OpenAPI 3.1 document. */
  "GET /openapi.json": {
    params: Record<string, never>;
    query: Record<string, never>;
    body: undefined;
    answer: string;
  };
  /** List the organizations this token can see. */
  "GET /v1/orgs": {
    params: Record<string, never>;
    query: Record<string, never>;
    body: undefined;
    answer: { organizations: ({ id: string; name: string; slug: string; internal_numeric_id: number; created_at: number })[] };
  };
  /** Create an organization. */
  "POST /v1/orgs": {
    params: Record<string, never>;
    query: Record<string, never>;
    body: { name: string; slug?: string | undefined };
    answer: { id: string; name: string; slug: string; internal_numeric_id: number; created_at: number };
  };
  /** Get an organization. */
  "GET /v1/orgs/:org_slug": {
    params: { org_slug: string };
    query: Record<string, never>;
    body: undefined;
    answer: { id: string; name: string; slug: string; internal_numeric_id: number; created_at: number };
  };
  /** Delete an organization that has no apps; its tokens stop working. */
  "DELETE /v1/orgs/:org_slug": {
    params: { org_slug: string };
    query: Record<string, never>;
    body: undefined;
    answer: undefined;
  };
  /** Create a token for one organization. */
  "POST /v1/orgs/:org_slug/tokens": {
    params: { org_slug: string };
    query: Record<string, never>;
    body: { kind: "org" | "readonly"; name?: string | undefined; expiry?: string | number | undefined };
    answer: { token: string; id: string; kind: string; name: string; created_at: string; expires_at: string | null; revoked_at: string | null };
  };
  /** List an organization's tokens, revoked ones too. */
  "GET /v1/orgs/:org_slug/tokens": {
    params: { org_slug: string };
    query: Record<string, never>;
    body: undefined;
    answer: { tokens: ({ id: string; kind: string; name: string; created_at: string; expires_at: string | null; revoked_at: string | null })[] };
  };
  /** Revoke a token, with everything that was made from it. */
  "DELETE /v1/orgs/:org_slug/tokens/:token_id": {
    params: { org_slug: string; token_id: string };
    query: Record<string, never>;
    body: undefined;
    answer: { id: string; kind: string; name: string; created_at: string; expires_at: string | null; revoked_at: string | null };
  };
  /** Create a token for one app. */
  "POST /v1/apps/:app_name/deploy_token": {
    params: { app_name: string };
    query: Record<string, never>;
    body: { name?: string | undefined; expiry?: string | number | undefined };
    answer: { token: string; id: string; kind: string; name: string; created_at: string; expires_at: string | null; revoked_at: string | null };
  };
  /** Who is calling, and what may they do. */
  "GET /v1/tokens/current": {
    params: Record<string, never>;
    query: Record<string, never>;
    body: undefined;
    answer: { tokens: ({ token_id: string; kind: string; name: string; org_slug: string | null; organization: string | null; rights: (string)[] })[] };
  };
  /** May this token do that?. */
  "POST /v1/tokens/authorize": {
    params: Record<string, never>;
    query: Record<string, never>;
    body: { action: "read" | "write" | "create" | "delete" | "control"; token?: string | undefined; org_slug?: string | undefined; app_name?: string | undefined; machine_id?: string | undefined };
    answer: { allowed: boolean; reason?: string | undefined };
  };
  /** Create an app. */
  "POST /v1/apps": {
    params: Record<string, never>;
    query: Record<string, never>;
    body: { app_name?: string | undefined; name?: string | undefined; org_slug?: string | undefined; network?: string | undefined };
    answer: { id: string; internal_numeric_id: number; name: string; status: string; network: string; machine_count: number; volume_count: number; organization: { name: string; slug: string; internal_numeric_id: number }; created_at: number };
  };
  /** List an organization's apps. */
  "GET /v1/apps": {
    params: Record<string, never>;
    query: { org_slug?: string | undefined };
    body: undefined;
    answer: { total_apps: number; apps: ({ id: string; internal_numeric_id: number; name: string; status: string; network: string; machine_count: number; volume_count: number; organization: { name: string; slug: string; internal_numeric_id: number }; created_at: number })[] };
  };
  /** Get an app. */
  "GET /v1/apps/:app_name": {
    params: { app_name: string };
    query: Record<string, never>;
    body: undefined;
    answer: { id: string; internal_numeric_id: number; name: string; status: string; network: string; machine_count: number; volume_count: number; organization: { name: string; slug: string; internal_numeric_id: number }; created_at: number };
  };
  /** Delete an app and its secrets. */
  "DELETE /v1/apps/:app_name": {
    params: { app_name: string };
    query: { force?: boolean | undefined };
    body: undefined;
    answer: undefined;
  };
  /** List an app's secrets: names and digests, never values. */
  "GET /v1/apps/:app_name/secrets": {
    params: { app_name: string };
    query: Record<string, never>;
    body: undefined;
    answer: { secrets: ({ name: string; digest: string; created_at: string; updated_at: string })[] };
  };
  /** Set and remove secrets, all at once. */
  "POST /v1/apps/:app_name/secrets": {
    params: { app_name: string };
    query: Record<string, never>;
    body: { values: Record<string, string | null> };
    answer: { secrets: ({ name: string; digest: string; created_at: string; updated_at: string })[]; version: number };
  };
  /** Get a secret's name and digest. */
  "GET /v1/apps/:app_name/secrets/:secret_name": {
    params: { app_name: string; secret_name: string };
    query: Record<string, never>;
    body: undefined;
    answer: { name: string; digest: string; created_at: string; updated_at: string };
  };
  /** Set one secret. */
  "POST /v1/apps/:app_name/secrets/:secret_name": {
    params: { app_name: string; secret_name: string };
    query: Record<string, never>;
    body: { value: string };
    answer: { name: string; digest: string; created_at: string; updated_at: string; version: number };
  };
  /** Remove a secret. */
  "DELETE /v1/apps/:app_name/secrets/:secret_name": {
    params: { app_name: string; secret_name: string };
    query: Record<string, never>;
    body: undefined;
    answer: { version: number };
  };
  /** What Grafana asks to learn which features there are. */
  "GET /prometheus/:org_slug/api/v1/status/buildinfo": {
    params: { org_slug: string };
    query: Record<string, never>;
    body: undefined;
    answer: { status: "success"; data: { version: string; revision: string; branch: string; buildUser: string; buildDate: string; goVersion: string } };
  };
}
