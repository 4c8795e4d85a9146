// Generated from the routes by `npm run docs`; do not edit.

/** Every route with its parameters, body and response. */
export interface Api {
  /** Liveness: 200 while the process runs. */
  "GET /healthz": {
    params: Record<string, never>;
    query: Record<string, never>;
    body: undefined;
    answer: { ok: boolean; version: string };
  };
  /** Readiness: 200 when requests can be served, 503 with reasons otherwise. */
  "GET /readyz": {
    params: Record<string, never>;
    query: Record<string, never>;
    body: undefined;
    answer: { ok: boolean; version: string; checks: Record<string, string> };
  };
  /** The dashboard, for people. */
  "GET /": {
    params: Record<string, never>;
    query: Record<string, never>;
    body: undefined;
    answer: string;
  };
  /** API documentation. */
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
  /** Versions and health of the platform and its host. */
  "GET /v1/platform/facts": {
    params: Record<string, never>;
    query: Record<string, never>;
    body: undefined;
    answer: { version: string; base_url: string; driver: string; database: string; machine_io: string; started_at: string; node: string; system: string; cpus: number; load: number[]; memory_bytes: number; box_memory_bytes: number; box_free_bytes: number; disk_bytes: number; disk_free_bytes: number };
  };
  /** List the organizations this token can see. */
  "GET /v1/orgs": {
    params: Record<string, never>;
    query: { limit?: number | undefined; cursor?: string | undefined };
    body: undefined;
    answer: { organizations: ({ id: string; name: string; slug: string; internal_numeric_id: number; created_at: number })[]; next_cursor?: string | undefined };
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
    query: { limit?: number | undefined; cursor?: string | undefined };
    body: undefined;
    answer: { tokens: ({ id: string; kind: string; name: string; created_at: string; expires_at: string | null; revoked_at: string | null })[]; next_cursor?: string | undefined };
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
  /** Show the caller's token and its rights. */
  "GET /v1/tokens/current": {
    params: Record<string, never>;
    query: Record<string, never>;
    body: undefined;
    answer: { tokens: ({ token_id: string; kind: string; name: string; org_slug: string | null; organization: string | null; rights: string[] })[] };
  };
  /** Check whether a token allows an action. */
  "POST /v1/tokens/authorize": {
    params: Record<string, never>;
    query: Record<string, never>;
    body: { action: "read" | "write" | "create" | "delete" | "control"; token?: string | undefined; org_slug?: string | undefined; app_name?: string | undefined; machine_id?: string | undefined };
    answer: { allowed: boolean; reason?: string | undefined };
  };
  /** Create a one-time sign-in code for the dashboard. */
  "POST /v1/tokens/sign_in_codes": {
    params: Record<string, never>;
    query: Record<string, never>;
    body: undefined;
    answer: { code: string; expires_at: string };
  };
  /** Exchange a sign-in code for its token. */
  "POST /v1/tokens/sign_in": {
    params: Record<string, never>;
    query: Record<string, never>;
    body: { code: string };
    answer: { token: string };
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
    query: { org_slug?: string | undefined; limit?: number | undefined; cursor?: string | undefined };
    body: undefined;
    answer: { total_apps: number; apps: ({ id: string; internal_numeric_id: number; name: string; status: string; network: string; machine_count: number; volume_count: number; organization: { name: string; slug: string; internal_numeric_id: number }; created_at: number })[]; next_cursor?: string | undefined };
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
    query: { limit?: number | undefined; cursor?: string | undefined };
    body: undefined;
    answer: { secrets: ({ name: string; digest: string; created_at: string; updated_at: string })[]; next_cursor?: string | undefined };
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
  /** List an app's releases, the newest first. */
  "GET /v1/apps/:app_name/releases": {
    params: { app_name: string };
    query: { limit?: number | undefined; cursor?: string | undefined };
    body: undefined;
    answer: { releases: ({ version: number; status: "running" | "complete" | "failed"; description: string; message: string; git_commit: string | null; git_branch: string | null; failure: string | null; progress: string | null; duration_ms: number | null; strategy: string; lease_ttl: number | null; image: string | null; image_digest: string | null; created_by: string; created_at: string; updated_at: string })[]; next_cursor?: string | undefined };
  };
  /** List an organization's releases that are being deployed, the newest first. */
  "GET /v1/orgs/:org_slug/deployments": {
    params: { org_slug: string };
    query: { limit?: number | undefined; cursor?: string | undefined };
    body: undefined;
    answer: { deployments: ({ app_name: string; version: number; status: "running" | "complete" | "failed"; description: string; message: string; git_commit: string | null; git_branch: string | null; failure: string | null; progress: string | null; duration_ms: number | null; strategy: string; lease_ttl: number | null; image: string | null; image_digest: string | null; created_by: string; created_at: string; updated_at: string })[]; next_cursor?: string | undefined };
  };
  /** Record the start of a release. */
  "POST /v1/apps/:app_name/releases": {
    params: { app_name: string };
    query: Record<string, never>;
    body: { description?: string | undefined; message?: string | undefined; git_commit?: string | undefined; git_branch?: string | undefined; strategy?: string | undefined; definition: unknown; image?: string | undefined; image_digest?: string | undefined; lease_ttl?: number | undefined; after?: number | undefined };
    answer: { version: number; status: "running" | "complete" | "failed"; description: string; message: string; git_commit: string | null; git_branch: string | null; failure: string | null; progress: string | null; duration_ms: number | null; strategy: string; lease_ttl: number | null; image: string | null; image_digest: string | null; created_by: string; created_at: string; updated_at: string; definition: unknown };
  };
  /** Get a release with its definition. */
  "GET /v1/apps/:app_name/releases/:version": {
    params: { app_name: string; version: string };
    query: Record<string, never>;
    body: undefined;
    answer: { version: number; status: "running" | "complete" | "failed"; description: string; message: string; git_commit: string | null; git_branch: string | null; failure: string | null; progress: string | null; duration_ms: number | null; strategy: string; lease_ttl: number | null; image: string | null; image_digest: string | null; created_by: string; created_at: string; updated_at: string; definition: unknown };
  };
  /** Record the outcome of a release, or renew its lease with the status `running`. */
  "POST /v1/apps/:app_name/releases/:version": {
    params: { app_name: string; version: string };
    query: Record<string, never>;
    body: { status: "running" | "complete" | "failed"; failure?: string | undefined; progress?: string | undefined };
    answer: { version: number; status: "running" | "complete" | "failed"; description: string; message: string; git_commit: string | null; git_branch: string | null; failure: string | null; progress: string | null; duration_ms: number | null; strategy: string; lease_ttl: number | null; image: string | null; image_digest: string | null; created_by: string; created_at: string; updated_at: string; definition: unknown };
  };
  /** List regions. */
  "GET /v1/platform/regions": {
    params: Record<string, never>;
    query: { limit?: number | undefined; cursor?: string | undefined };
    body: undefined;
    answer: { nearest: string; regions: ({ code: string; name: string; latitude: number; longitude: number; gateway_available: boolean; requires_paid_plan: boolean; deprecated: boolean; capacity: number })[]; next_cursor?: string | undefined };
  };
  /** Hosts, their size and usage. */
  "GET /v1/platform/hosts": {
    params: Record<string, never>;
    query: { limit?: number | undefined; cursor?: string | undefined };
    body: undefined;
    answer: { hosts: ({ id: string; region: string; zone: string; cpus: number; memory_mb: number; state: string; used_cpus: number; used_memory_mb: number; cordoned: boolean; draining: boolean; held: boolean; lease_seconds: number; lease_ends_at: string; address: string; driver: string; builds: string; version: string; last_seen: string })[]; next_cursor?: string | undefined };
  };
  /** One host. */
  "GET /v1/platform/hosts/:host_id": {
    params: { host_id: string };
    query: Record<string, never>;
    body: undefined;
    answer: { id: string; region: string; zone: string; cpus: number; memory_mb: number; state: string; used_cpus: number; used_memory_mb: number; cordoned: boolean; draining: boolean; held: boolean; lease_seconds: number; lease_ends_at: string; address: string; driver: string; builds: string; version: string; last_seen: string };
  };
  /** Delete a host without machines whose lease has ended. */
  "DELETE /v1/platform/hosts/:host_id": {
    params: { host_id: string };
    query: Record<string, never>;
    body: undefined;
    answer: { ok: boolean };
  };
  /** Take a host for failed: its machines are marked, and those that stand by for them start. */
  "POST /v1/platform/hosts/:host_id/fail": {
    params: { host_id: string };
    query: Record<string, never>;
    body: undefined;
    answer: { ok: boolean };
  };
  /** Take a failed host back. */
  "POST /v1/platform/hosts/:host_id/recover": {
    params: { host_id: string };
    query: Record<string, never>;
    body: undefined;
    answer: { ok: boolean };
  };
  /** Mark a host unschedulable; its machines stay. */
  "POST /v1/platform/hosts/:host_id/cordon": {
    params: { host_id: string };
    query: Record<string, never>;
    body: undefined;
    answer: { ok: boolean };
  };
  /** Place machines on a host again. */
  "POST /v1/platform/hosts/:host_id/uncordon": {
    params: { host_id: string };
    query: Record<string, never>;
    body: undefined;
    answer: { ok: boolean };
  };
  /** Cordon a host and move its machines elsewhere; those that cannot yet are listed with the reason. */
  "POST /v1/platform/hosts/:host_id/drain": {
    params: { host_id: string };
    query: Record<string, never>;
    body: undefined;
    answer: { moving: string[]; stuck: ({ id: string; reason: string })[] };
  };
  /** Create a join token for one new host. */
  "POST /v1/platform/host_join_tokens": {
    params: Record<string, never>;
    query: Record<string, never>;
    body: undefined;
    answer: { token: string; expires_at: string };
  };
  /** List an organization's images and the platform's. */
  "GET /v1/images": {
    params: Record<string, never>;
    query: { org_slug?: string | undefined; limit?: number | undefined; cursor?: string | undefined };
    body: undefined;
    answer: { images: Image[]; next_cursor?: string | undefined };
  };
  /** Show an image: its config, its layers, the machines that boot from it. */
  "GET /v1/images/show": {
    params: Record<string, never>;
    query: { image: string; org_slug?: string | undefined };
    body: undefined;
    answer: ImageDetails;
  };
  /** Import an image: a tar of a root file system, an OCI layout or a docker archive. */
  "POST /v1/images/import": {
    params: Record<string, never>;
    query: { name: string; org_slug?: string | undefined };
    body: undefined;
    answer: Image;
  };
  /** Pull an image; as a stream, with the progress of each layer. */
  "POST /v1/images/pull": {
    params: Record<string, never>;
    query: Record<string, never>;
    body: { image: string; org_slug?: string | undefined };
    answer: Image;
  };
  /** Remove an image's name, and the layers that only it used. */
  "DELETE /v1/images": {
    params: Record<string, never>;
    query: { image: string; org_slug?: string | undefined };
    body: undefined;
    answer: undefined;
  };
  /** Remove unused images and layers. */
  "POST /v1/images/gc": {
    params: Record<string, never>;
    query: Record<string, never>;
    body: { dry_run?: boolean | undefined; all?: boolean | undefined };
    answer: { dry_run: boolean; images: ({ name: string; owner: string; digest: string })[]; layers: ({ diff_id: string; bytes: number })[]; bytes: number };
  };
  /** Resolve an image name to the digest a machine of the app would boot. */
  "GET /v1/apps/:app_name/images/resolve": {
    params: { app_name: string };
    query: { image: string };
    body: undefined;
    answer: { image: string; digest: string; reference: string; healthcheck?: { test: string[]; interval_ms?: number | undefined; timeout_ms?: number | undefined; start_period_ms?: number | undefined } | undefined };
  };
  /** List the files of a build context that have to be uploaded. */
  "POST /v1/apps/:app_name/builds/files/missing": {
    params: { app_name: string };
    query: Record<string, never>;
    body: { files: string[] };
    answer: { missing: string[] };
  };
  /** Upload files of a build context. */
  "POST /v1/apps/:app_name/builds/files": {
    params: { app_name: string };
    query: Record<string, never>;
    body: undefined;
    answer: { files: number; bytes: number };
  };
  /** Build an image from a Dockerfile; answers when the build is queued. */
  "POST /v1/apps/:app_name/builds": {
    params: { app_name: string };
    query: Record<string, never>;
    body: { files: ({ path: string; sha256?: string | undefined; link?: string | undefined; mode?: number | undefined })[]; dockerfile?: string | undefined; target?: string | undefined; args?: Record<string, string> | undefined; secrets?: Record<string, string> | undefined; no_cache?: boolean | undefined; platform?: string | undefined };
    answer: { id: string; state: "queued" | "running" | "complete" | "failed" | "cancelled"; dockerfile: string; target: string | null; no_cache: boolean; files: number; image: string; digest: string | null; step: string | null; error: string | null; created_by: string; created_at: string; started_at: string | null; ended_at: string | null };
  };
  /** List an app's builds, the newest first. */
  "GET /v1/apps/:app_name/builds": {
    params: { app_name: string };
    query: { limit?: number | undefined; cursor?: string | undefined };
    body: undefined;
    answer: { builds: ({ id: string; state: "queued" | "running" | "complete" | "failed" | "cancelled"; dockerfile: string; target: string | null; no_cache: boolean; files: number; image: string; digest: string | null; step: string | null; error: string | null; created_by: string; created_at: string; started_at: string | null; ended_at: string | null })[]; next_cursor?: string | undefined };
  };
  /** List an organization's builds, the newest first. */
  "GET /v1/orgs/:org_slug/builds": {
    params: { org_slug: string };
    query: { state?: ("queued" | "running" | "complete" | "failed" | "cancelled")[] | undefined; limit?: number | undefined; cursor?: string | undefined };
    body: undefined;
    answer: { builds: ({ app_name: string; id: string; state: "queued" | "running" | "complete" | "failed" | "cancelled"; dockerfile: string; target: string | null; no_cache: boolean; files: number; image: string; digest: string | null; step: string | null; error: string | null; created_by: string; created_at: string; started_at: string | null; ended_at: string | null })[]; next_cursor?: string | undefined };
  };
  /** Get a build. */
  "GET /v1/apps/:app_name/builds/:build_id": {
    params: { app_name: string; build_id: string };
    query: Record<string, never>;
    body: undefined;
    answer: { id: string; state: "queued" | "running" | "complete" | "failed" | "cancelled"; dockerfile: string; target: string | null; no_cache: boolean; files: number; image: string; digest: string | null; step: string | null; error: string | null; created_by: string; created_at: string; started_at: string | null; ended_at: string | null };
  };
  /** Cancel a build; one that has ended stays as it is. */
  "POST /v1/apps/:app_name/builds/:build_id/cancel": {
    params: { app_name: string; build_id: string };
    query: Record<string, never>;
    body: undefined;
    answer: { id: string; state: "queued" | "running" | "complete" | "failed" | "cancelled"; dockerfile: string; target: string | null; no_cache: boolean; files: number; image: string; digest: string | null; step: string | null; error: string | null; created_by: string; created_at: string; started_at: string | null; ended_at: string | null };
  };
  /** The output of a build. */
  "GET /v1/apps/:app_name/builds/:build_id/logs": {
    params: { app_name: string; build_id: string };
    query: { follow?: boolean | undefined };
    body: undefined;
    answer: { log: string };
  };
  /** Get an app's egress policy: what its machines may reach outside their private network. */
  "GET /v1/apps/:app_name/egress": {
    params: { app_name: string };
    query: Record<string, never>;
    body: undefined;
    answer: { mode: string; allow: string[] };
  };
  /** Set an app's egress policy; running machines follow at once. */
  "PUT /v1/apps/:app_name/egress": {
    params: { app_name: string };
    query: Record<string, never>;
    body: { mode: "all" | "none" | "list"; allow?: string[] | undefined };
    answer: { mode: string; allow: string[] };
  };
  /** List an app's machines. */
  "GET /v1/apps/:app_name/machines": {
    params: { app_name: string };
    query: { include_deleted?: boolean | undefined; region?: string | undefined; state?: string[] | undefined; summary?: boolean | undefined; include_leases?: boolean | undefined; limit?: number | undefined; cursor?: string | undefined };
    body: undefined;
    answer: ({ id: string; name: string; state: string; region: string; instance_id: string; version: string; private_ip: string; image_ref: { registry: string; repository: string; tag?: string | undefined; digest: string; labels?: Record<string, string> | undefined }; created_at: string; updated_at: string; cordoned: boolean; config?: Record<string, unknown> | undefined; checks?: Record<string, { name: string; status: string; output: string; updated_at: string }> | undefined; events?: ({ id: string; type: string; status: string; source: string; timestamp: number; request?: Record<string, unknown> | undefined })[] | undefined; host_status?: string | undefined; waiting?: string | undefined; host?: string | undefined; nonce?: string | undefined; lease?: { owner: string; description: string; expires_at: number } | undefined; warnings?: string[] | undefined })[];
  };
  /** List an organization's machines in pages, the one changed longest ago first. */
  "GET /v1/orgs/:org_slug/machines": {
    params: { org_slug: string };
    query: { include_deleted?: boolean | undefined; region?: string | undefined; state?: string[] | undefined; search?: string | undefined; sort?: "changed" | "created" | undefined; count?: boolean | undefined; summary?: boolean | undefined; host_status?: string[] | undefined; updated_after?: string | undefined; limit?: number | undefined; cursor?: string | undefined };
    body: undefined;
    answer: { machines: ({ id: string; name: string; app_name: string; state: string; region: string; version: string; private_ip: string; host_status: string; config: Record<string, unknown>; created_at: string; updated_at: string })[]; counts?: { machines: number; states: Record<string, number>; exact: boolean } | undefined; next_cursor?: string | undefined; last_machine_id?: string | undefined; last_updated_at?: string | undefined; error_regions: string[] };
  };
  /** Create a machine; it boots unless skip_launch. */
  "POST /v1/apps/:app_name/machines": {
    params: { app_name: string };
    query: Record<string, never>;
    body: { name?: string | undefined; region?: string | undefined; lease_ttl?: number | undefined; skip_service_registration?: boolean | undefined; lsvd?: boolean | undefined; min_secrets_version?: number | undefined; skip_secrets?: boolean | undefined; skip_launch?: boolean | undefined; config: MachineConfig };
    answer: Machine;
  };
  /** Get a machine; a destroyed one can be read for a week. */
  "GET /v1/apps/:app_name/machines/:machine_id": {
    params: { app_name: string; machine_id: string };
    query: { include_leases?: boolean | undefined };
    body: undefined;
    answer: Machine;
  };
  /** Replace a machine's whole config; it becomes a new version and boots unless skip_launch. */
  "POST /v1/apps/:app_name/machines/:machine_id": {
    params: { app_name: string; machine_id: string };
    query: Record<string, never>;
    body: { name?: string | undefined; region?: string | undefined; lease_ttl?: number | undefined; skip_service_registration?: boolean | undefined; lsvd?: boolean | undefined; min_secrets_version?: number | undefined; skip_secrets?: boolean | undefined; skip_launch?: boolean | undefined; current_version?: string | undefined; id?: string | undefined; config: MachineConfig };
    answer: Machine;
  };
  /** Change part of a machine's config (JSON merge patch). */
  "PATCH /v1/apps/:app_name/machines/:machine_id": {
    params: { app_name: string; machine_id: string };
    query: Record<string, never>;
    body: { name?: string | undefined; region?: string | undefined; lease_ttl?: number | undefined; skip_service_registration?: boolean | undefined; lsvd?: boolean | undefined; min_secrets_version?: number | undefined; skip_secrets?: boolean | undefined; skip_launch?: boolean | undefined; current_version?: string | undefined; id?: string | undefined; config: Record<string, unknown> };
    answer: Machine;
  };
  /** Destroy a machine; this cannot be undone. */
  "DELETE /v1/apps/:app_name/machines/:machine_id": {
    params: { app_name: string; machine_id: string };
    query: { force?: boolean | undefined; kill?: boolean | undefined };
    body: undefined;
    answer: { ok: boolean };
  };
  /** A machine's config versions, newest first. */
  "GET /v1/apps/:app_name/machines/:machine_id/versions": {
    params: { app_name: string; machine_id: string };
    query: { limit?: number | undefined; cursor?: string | undefined };
    body: undefined;
    answer: ({ version: string; created_at: string; user_config: Record<string, unknown> })[];
  };
  /** Start a machine; a running one is left alone. */
  "POST /v1/apps/:app_name/machines/:machine_id/start": {
    params: { app_name: string; machine_id: string };
    query: Record<string, never>;
    body: undefined;
    answer: { previous_state: string; migrated: boolean; new_host: string };
  };
  /** Stop a machine: its stop signal, then SIGKILL. */
  "POST /v1/apps/:app_name/machines/:machine_id/stop": {
    params: { app_name: string; machine_id: string };
    query: Record<string, never>;
    body: { signal?: string | number | Record<string, unknown> | undefined; timeout?: string | number | undefined; id?: string | undefined };
    answer: { ok: boolean };
  };
  /** Suspend a running machine with its memory; stopped where that is impossible. */
  "POST /v1/apps/:app_name/machines/:machine_id/suspend": {
    params: { app_name: string; machine_id: string };
    query: Record<string, never>;
    body: undefined;
    answer: { ok: boolean };
  };
  /** Stop and start a machine. */
  "POST /v1/apps/:app_name/machines/:machine_id/restart": {
    params: { app_name: string; machine_id: string };
    query: { force_stop?: boolean | undefined; timeout?: string | undefined; signal?: string | undefined };
    body: undefined;
    answer: { ok: boolean };
  };
  /** Move a machine to another host: stopped here, started there, with a new address and a clean root. */
  "POST /v1/apps/:app_name/machines/:machine_id/move": {
    params: { app_name: string; machine_id: string };
    query: Record<string, never>;
    body: { host_id?: string | undefined };
    answer: { ok: boolean; state: string; from: string };
  };
  /** Send no more requests to a machine; its state stays. */
  "POST /v1/apps/:app_name/machines/:machine_id/cordon": {
    params: { app_name: string; machine_id: string };
    query: Record<string, never>;
    body: undefined;
    answer: { ok: boolean };
  };
  /** Send requests to a machine again. */
  "POST /v1/apps/:app_name/machines/:machine_id/uncordon": {
    params: { app_name: string; machine_id: string };
    query: Record<string, never>;
    body: undefined;
    answer: { ok: boolean };
  };
  /** Send a signal to a machine's first process. */
  "POST /v1/apps/:app_name/machines/:machine_id/signal": {
    params: { app_name: string; machine_id: string };
    query: Record<string, never>;
    body: { signal: string | number | Record<string, unknown> };
    answer: { ok: boolean };
  };
  /** Run a command in a machine and wait for it. */
  "POST /v1/apps/:app_name/machines/:machine_id/exec": {
    params: { app_name: string; machine_id: string };
    query: Record<string, never>;
    body: { command?: string[] | undefined; cmd?: string | undefined; stdin?: string | undefined; container?: string | undefined; timeout?: number | undefined };
    answer: { exit_code: number; exit_signal?: number | undefined; stdout: string; stderr: string };
  };
  /** The processes of a machine. */
  "GET /v1/apps/:app_name/machines/:machine_id/ps": {
    params: { app_name: string; machine_id: string };
    query: { limit?: number | undefined; cursor?: string | undefined };
    body: undefined;
    answer: ({ pid: number; stime: number; rtime: number; command: string; directory: string; cpu: number; rss: number; listen_sockets: ({ proto: string; address: string })[] })[];
  };
  /** Acquire a machine's lease, or refresh your own. */
  "POST /v1/apps/:app_name/machines/:machine_id/lease": {
    params: { app_name: string; machine_id: string };
    query: { ttl?: number | undefined; description?: string | undefined; wait?: number | undefined };
    body: { ttl?: number | undefined; description?: string | undefined };
    answer: { status: string; data: { nonce: string; expires_at: number; owner: string; description: string; version: string } };
  };
  /** A machine's lease. */
  "GET /v1/apps/:app_name/machines/:machine_id/lease": {
    params: { app_name: string; machine_id: string };
    query: Record<string, never>;
    body: undefined;
    answer: { status: string; data: { nonce: string; expires_at: number; owner: string; description: string; version: string } };
  };
  /** Release a machine's lease. */
  "DELETE /v1/apps/:app_name/machines/:machine_id/lease": {
    params: { app_name: string; machine_id: string };
    query: Record<string, never>;
    body: undefined;
    answer: { status: string; data: { ok: boolean } };
  };
  /** Wait until a machine is in a state. */
  "GET /v1/apps/:app_name/machines/:machine_id/wait": {
    params: { app_name: string; machine_id: string };
    query: { state?: string[] | undefined; instance_id?: string | undefined; version?: string | undefined; from_event_id?: string | undefined; timeout?: string | undefined };
    body: undefined;
    answer: { ok: boolean; state: string; version: string; event_id: string };
  };
  /** A machine's metadata. */
  "GET /v1/apps/:app_name/machines/:machine_id/metadata": {
    params: { app_name: string; machine_id: string };
    query: Record<string, never>;
    body: undefined;
    answer: Record<string, string>;
  };
  /** Set and remove metadata; what is not named stays. */
  "PATCH /v1/apps/:app_name/machines/:machine_id/metadata": {
    params: { app_name: string; machine_id: string };
    query: Record<string, never>;
    body: { metadata: Record<string, string | null>; machine_version?: string | undefined; updated_at?: string | undefined };
    answer: undefined;
  };
  /** Replace all metadata. */
  "PUT /v1/apps/:app_name/machines/:machine_id/metadata": {
    params: { app_name: string; machine_id: string };
    query: Record<string, never>;
    body: { metadata: Record<string, string | null>; machine_version?: string | undefined; updated_at?: string | undefined };
    answer: undefined;
  };
  /** One value of a machine's metadata. */
  "GET /v1/apps/:app_name/machines/:machine_id/metadata/:key": {
    params: { app_name: string; machine_id: string; key: string };
    query: Record<string, never>;
    body: undefined;
    answer: { value: string };
  };
  /** Set one value of a machine's metadata; no new version, no restart. */
  "POST /v1/apps/:app_name/machines/:machine_id/metadata/:key": {
    params: { app_name: string; machine_id: string; key: string };
    query: Record<string, never>;
    body: { value: string };
    answer: undefined;
  };
  /** Remove one value of a machine's metadata. */
  "DELETE /v1/apps/:app_name/machines/:machine_id/metadata/:key": {
    params: { app_name: string; machine_id: string; key: string };
    query: Record<string, never>;
    body: undefined;
    answer: undefined;
  };
  /** A machine's events, newest first. */
  "GET /v1/apps/:app_name/machines/:machine_id/events": {
    params: { app_name: string; machine_id: string };
    query: { from_event_id?: string | undefined; limit?: number | undefined; cursor?: string | undefined };
    body: undefined;
    answer: ({ id: string; type: string; status: string; source: string; timestamp: number; request?: Record<string, unknown> | undefined })[];
  };
  /** Stream the events of an app's machines. */
  "GET /v1/apps/:app_name/events": {
    params: { app_name: string };
    query: { cursor?: number | undefined; tail?: number | undefined; limit?: number | undefined };
    body: undefined;
    answer: { events: ({ id: string; type: string; status: string; source: string; timestamp: number; request?: Record<string, unknown> | undefined; cursor: number; app_name: string; machine_id: string; machine_name: string; instance_id: string })[]; cursor: number; next_cursor?: string | undefined };
  };
  /** Stream the events of an organization's machines. */
  "GET /v1/orgs/:org_slug/events": {
    params: { org_slug: string };
    query: { cursor?: number | undefined; tail?: number | undefined; ongoing?: boolean | undefined; limit?: number | undefined };
    body: undefined;
    answer: { events: ({ id: string; type: string; status: string; source: string; timestamp: number; request?: Record<string, unknown> | undefined; cursor: number; app_name: string; machine_id: string; machine_name: string; instance_id: string })[]; cursor: number; next_cursor?: string | undefined };
  };
  /** The newest lines a machine wrote, oldest first; or a search. */
  "GET /v1/apps/:app_name/machines/:machine_id/logs": {
    params: { app_name: string; machine_id: string };
    query: { tail?: number | undefined; since?: string | undefined; until?: string | undefined; search?: string | undefined; level?: "error" | "warn" | "info" | "debug" | undefined; field?: string[] | undefined; order?: "newest" | "oldest" | undefined; limit?: number | undefined; cursor?: string | undefined; follow?: boolean | undefined };
    body: undefined;
    answer: { lines: ({ timestamp: number; stream: string; message: string })[]; cursor?: string | undefined; stopped?: "time" | "bytes" | undefined; damaged?: string[] | undefined; away?: ({ host_id: string; reason: string })[] | undefined };
  };
  /** The newest lines of all machines of an app, by time; or a search. */
  "GET /v1/apps/:app_name/logs": {
    params: { app_name: string };
    query: { tail?: number | undefined; since?: string | undefined; until?: string | undefined; search?: string | undefined; level?: "error" | "warn" | "info" | "debug" | undefined; field?: string[] | undefined; order?: "newest" | "oldest" | undefined; limit?: number | undefined; cursor?: string | undefined; follow?: boolean | undefined; machine?: string | undefined };
    body: undefined;
    answer: { lines: ({ timestamp: number; stream: string; message: string; machine_id: string; machine_name: string })[]; cursor?: string | undefined; stopped?: "time" | "bytes" | undefined; damaged?: string[] | undefined; away?: ({ host_id: string; reason: string })[] | undefined; left_out?: number | undefined };
  };
  /** List an app's runs of one-off tasks, schedules and release commands, the newest first. */
  "GET /v1/apps/:app_name/runs": {
    params: { app_name: string };
    query: { machine_id?: string | undefined; state?: "running" | "complete" | "failed" | "stopped" | "skipped" | undefined; limit?: number | undefined; cursor?: string | undefined };
    body: undefined;
    answer: { runs: ({ id: string; kind: "once" | "schedule" | "release"; state: "running" | "complete" | "failed" | "stopped" | "skipped"; command: string; image: string; machine_id: string; machine_name: string; instance_id: string; started_by: string; started_at: string; ended_at: string | null; duration_ms: number | null; exit_code: number | null; signal: number | null; oom_killed: boolean; error: string | null })[]; next_cursor?: string | undefined };
  };
  /** Get a run. */
  "GET /v1/apps/:app_name/runs/:run_id": {
    params: { app_name: string; run_id: string };
    query: Record<string, never>;
    body: undefined;
    answer: { id: string; kind: "once" | "schedule" | "release"; state: "running" | "complete" | "failed" | "stopped" | "skipped"; command: string; image: string; machine_id: string; machine_name: string; instance_id: string; started_by: string; started_at: string; ended_at: string | null; duration_ms: number | null; exit_code: number | null; signal: number | null; oom_killed: boolean; error: string | null };
  };
  /** What a run wrote, oldest first. */
  "GET /v1/apps/:app_name/runs/:run_id/logs": {
    params: { app_name: string; run_id: string };
    query: { tail?: number | undefined; follow?: boolean | undefined };
    body: undefined;
    answer: { lines: ({ timestamp: number; stream: string; message: string })[] };
  };
  /** A terminal into a machine, over WebSocket. */
  "GET /v1/apps/:app_name/machines/:machine_id/terminal": {
    params: { app_name: string; machine_id: string };
    query: { command?: string[] | undefined; rows?: number | undefined; cols?: number | undefined; term?: string | undefined };
    body: undefined;
    answer: undefined;
  };
  /** A TCP connection to a private port of a machine, over WebSocket. */
  "GET /v1/apps/:app_name/machines/:machine_id/tunnel": {
    params: { app_name: string; machine_id: string };
    query: { port: number };
    body: undefined;
    answer: undefined;
  };
  /** Create a webhook: signed machine events, retried until delivered. */
  "POST /v1/orgs/:org_slug/webhooks": {
    params: { org_slug: string };
    query: Record<string, never>;
    body: { url: string; app_name?: string | undefined };
    answer: { id: string; url: string; app_name?: string | undefined; created_at: string; cursor: number; failures: number; last_error?: string | undefined; secret: string };
  };
  /** An organization's webhooks and their delivery state. */
  "GET /v1/orgs/:org_slug/webhooks": {
    params: { org_slug: string };
    query: { limit?: number | undefined; cursor?: string | undefined };
    body: undefined;
    answer: { webhooks: ({ id: string; url: string; app_name?: string | undefined; created_at: string; cursor: number; failures: number; last_error?: string | undefined })[]; next_cursor?: string | undefined };
  };
  /** Delete a webhook. */
  "DELETE /v1/orgs/:org_slug/webhooks/:webhook_id": {
    params: { org_slug: string; webhook_id: string };
    query: Record<string, never>;
    body: undefined;
    answer: undefined;
  };
  /** Create a log drain: lines are sent to Loki, VictoriaLogs, OTLP or syslog. */
  "POST /v1/orgs/:org_slug/log-drains": {
    params: { org_slug: string };
    query: Record<string, never>;
    body: { kind: "loki" | "victorialogs" | "otlp" | "syslog"; url: string; app_name?: string | undefined; since?: string | undefined; headers?: Record<string, string> | undefined; ca?: string | undefined; cert?: string | undefined; key?: string | undefined };
    answer: { id: string; kind: string; address: string; app_name?: string | undefined; since: string; created_at: string; hosts: ({ host_id: string; sent: number; refused: number; lost_gaps: number; lost_bytes: number; lag_s: number; failures: number; last_success_at?: string | undefined; last_error?: string | undefined; updated_at: string })[] };
  };
  /** An organization's log drains and how far they have got. */
  "GET /v1/orgs/:org_slug/log-drains": {
    params: { org_slug: string };
    query: { limit?: number | undefined; cursor?: string | undefined };
    body: undefined;
    answer: { log_drains: ({ id: string; kind: string; address: string; app_name?: string | undefined; since: string; created_at: string; hosts: ({ host_id: string; sent: number; refused: number; lost_gaps: number; lost_bytes: number; lag_s: number; failures: number; last_success_at?: string | undefined; last_error?: string | undefined; updated_at: string })[] })[]; next_cursor?: string | undefined };
  };
  /** Delete a log drain. */
  "DELETE /v1/orgs/:org_slug/log-drains/:drain_id": {
    params: { org_slug: string; drain_id: string };
    query: Record<string, never>;
    body: undefined;
    answer: undefined;
  };
  /** Send a test line to a log drain now. */
  "POST /v1/orgs/:org_slug/log-drains/:drain_id/test": {
    params: { org_slug: string; drain_id: string };
    query: Record<string, never>;
    body: undefined;
    answer: { delivered: boolean; error?: string | undefined; took_ms: number };
  };
  /** List an app's volumes. */
  "GET /v1/apps/:app_name/volumes": {
    params: { app_name: string };
    query: { summary?: boolean | undefined; include_deleted?: boolean | undefined; limit?: number | undefined; cursor?: string | undefined };
    body: undefined;
    answer: Volume[];
  };
  /** Create a volume: empty, from a snapshot, or as a fork. */
  "POST /v1/apps/:app_name/volumes": {
    params: { app_name: string };
    query: Record<string, never>;
    body: { name: string; region?: string | undefined; size_gb?: number | undefined; fstype?: "ext4" | "" | undefined; encrypted?: boolean | undefined; auto_backup_enabled?: boolean | undefined; snapshot_retention?: number | undefined; require_unique_zone?: boolean | undefined; unique_zone_app_wide?: boolean | undefined; machines_only?: boolean | undefined; snapshot_id?: string | undefined; source_volume_id?: string | undefined; compute?: { cpu_kind?: "shared" | "performance" | undefined; gpu_kind?: string | undefined; gpus?: number | undefined; host_dedication_id?: string | undefined; kernel_args?: string[] | undefined; cpus?: number | undefined; memory_mb?: number | undefined; persist_rootfs?: string | undefined } | undefined; compute_image?: string | undefined };
    answer: Volume;
  };
  /** Get a volume; also a deleted one while it can be restored. */
  "GET /v1/apps/:app_name/volumes/:volume_id": {
    params: { app_name: string; volume_id: string };
    query: Record<string, never>;
    body: undefined;
    answer: Volume;
  };
  /** Change a volume's daily snapshots and their retention. */
  "PUT /v1/apps/:app_name/volumes/:volume_id": {
    params: { app_name: string; volume_id: string };
    query: Record<string, never>;
    body: { auto_backup_enabled?: boolean | undefined; snapshot_retention?: number | undefined };
    answer: Volume;
  };
  /** Delete an unattached volume; its snapshots stay, and it can be restored for a while. */
  "DELETE /v1/apps/:app_name/volumes/:volume_id": {
    params: { app_name: string; volume_id: string };
    query: Record<string, never>;
    body: undefined;
    answer: Volume;
  };
  /** Extend a volume; it cannot shrink. */
  "PUT /v1/apps/:app_name/volumes/:volume_id/extend": {
    params: { app_name: string; volume_id: string };
    query: Record<string, never>;
    body: { size_gb: number };
    answer: { volume: Volume; needs_restart: boolean };
  };
  /** Restore a deleted volume. */
  "POST /v1/apps/:app_name/volumes/:volume_id/undelete": {
    params: { app_name: string; volume_id: string };
    query: Record<string, never>;
    body: undefined;
    answer: Volume;
  };
  /** List a volume's snapshots, newest first; those of a deleted volume until they expire. */
  "GET /v1/apps/:app_name/volumes/:volume_id/snapshots": {
    params: { app_name: string; volume_id: string };
    query: { limit?: number | undefined; cursor?: string | undefined };
    body: undefined;
    answer: VolumeSnapshot[];
  };
  /** Take a snapshot now; it is listed when it is stored. */
  "POST /v1/apps/:app_name/volumes/:volume_id/snapshots": {
    params: { app_name: string; volume_id: string };
    query: Record<string, never>;
    body: undefined;
    answer: { Msg: { backup: { id: string; app_id: string; volume_id: string; state: string; type: string; message: string; created_at: string; updated_at: string; finished_at: string | null; graph_id: string } } };
  };
  /** Get a snapshot, also while it is being stored, or why that failed. */
  "GET /v1/apps/:app_name/volumes/:volume_id/snapshots/:snapshot_id": {
    params: { app_name: string; volume_id: string; snapshot_id: string };
    query: Record<string, never>;
    body: undefined;
    answer: VolumeSnapshot;
  };
  /** Delete a snapshot before it expires. */
  "DELETE /v1/apps/:app_name/volumes/:volume_id/snapshots/:snapshot_id": {
    params: { app_name: string; volume_id: string; snapshot_id: string };
    query: Record<string, never>;
    body: undefined;
    answer: { ok: boolean };
  };
  /** Disk usage of volumes and snapshots, and what the disk supports. */
  "GET /v1/platform/disk": {
    params: Record<string, never>;
    query: { limit?: number | undefined; cursor?: string | undefined };
    body: undefined;
    answer: { driver: string; encryption: string | null; encryption_reason: string; reflink: boolean; reflink_reason: string; total_bytes: number; free_bytes: number; objects: { place: string; bytes: number; count: number }; volumes: ({ id: string; name: string; app: string; state: string; size_bytes: number; taken_bytes: number; snapshots: number; snapshot_bytes: number })[]; next_cursor?: string | undefined };
  };
  /** List or delete unused data. */
  "POST /v1/platform/disk/collect": {
    params: Record<string, never>;
    query: Record<string, never>;
    body: { apply?: boolean | undefined; deleted?: boolean | undefined };
    answer: { applied: boolean; bytes: number; waste: ({ kind: string; id: string; bytes: number; reason: string })[] };
  };
  /** An app's addresses. */
  "GET /v1/apps/:app_name/ip_assignments": {
    params: { app_name: string };
    query: { limit?: number | undefined; cursor?: string | undefined };
    body: undefined;
    answer: { ips: ({ ip: string; type: string; region: string; shared: boolean; egress: boolean; service_name: string; network: string; created_at: string })[]; next_cursor?: string | undefined };
  };
  /** Allocate an address to an app, which opens its service ports. */
  "POST /v1/apps/:app_name/ip_assignments": {
    params: { app_name: string };
    query: Record<string, never>;
    body: { type: "shared_v4" | "v4" | "v6" | "private_v6" | "egress_v4" | "egress_v6" | "egress_pair"; region?: string | undefined; org_slug?: string | undefined; network?: string | undefined; service_name?: string | undefined };
    answer: { ip: string; type: string; region: string; shared: boolean; egress: boolean; service_name: string; network: string; created_at: string };
  };
  /** Release an address; without any, the app's ports are closed. */
  "DELETE /v1/apps/:app_name/ip_assignments/:ip": {
    params: { app_name: string; ip: string };
    query: Record<string, never>;
    body: undefined;
    answer: undefined;
  };
  /** An app's host names and their certificates. */
  "GET /v1/apps/:app_name/certificates": {
    params: { app_name: string };
    query: { filter?: string | undefined; limit?: number | undefined; cursor?: string | undefined };
    body: undefined;
    answer: { certificates: ({ hostname: string; kind: string; status: string; configured: boolean; problem?: string | undefined; ownership: { proved: boolean; type: string; name: string; value: string }; created_at: string; updated_at: string; expires_at?: string | undefined })[]; total_count: number; next_cursor?: string | undefined };
  };
  /** One certificate. */
  "GET /v1/apps/:app_name/certificates/:hostname": {
    params: { app_name: string; hostname: string };
    query: Record<string, never>;
    body: undefined;
    answer: { hostname: string; kind: string; status: string; configured: boolean; problem?: string | undefined; ownership: { proved: boolean; type: string; name: string; value: string }; created_at: string; updated_at: string; expires_at?: string | undefined };
  };
  /** Upload your own certificate; the name routes to the app once its ownership is verified. */
  "POST /v1/apps/:app_name/certificates/custom": {
    params: { app_name: string };
    query: Record<string, never>;
    body: { hostname: string; fullchain: string; private_key: string };
    answer: { hostname: string; kind: string; status: string; configured: boolean; problem?: string | undefined; ownership: { proved: boolean; type: string; name: string; value: string }; created_at: string; updated_at: string; expires_at?: string | undefined };
  };
  /** Get a certificate from the authority, and keep it renewed. */
  "POST /v1/apps/:app_name/certificates/acme": {
    params: { app_name: string };
    query: Record<string, never>;
    body: { hostname: string };
    answer: { hostname: string; kind: string; status: string; configured: boolean; problem?: string | undefined; ownership: { proved: boolean; type: string; name: string; value: string }; created_at: string; updated_at: string; expires_at?: string | undefined };
  };
  /** Check the ownership record of a host name, and retry its certificate now. */
  "POST /v1/apps/:app_name/certificates/:hostname/check": {
    params: { app_name: string; hostname: string };
    query: Record<string, never>;
    body: undefined;
    answer: { hostname: string; kind: string; status: string; configured: boolean; problem?: string | undefined; ownership: { proved: boolean; type: string; name: string; value: string }; created_at: string; updated_at: string; expires_at?: string | undefined };
  };
  /** Remove a host name and its certificate. */
  "DELETE /v1/apps/:app_name/certificates/:hostname": {
    params: { app_name: string; hostname: string };
    query: Record<string, never>;
    body: undefined;
    answer: undefined;
  };
  /** Remove a host name whose certificate is acme. */
  "DELETE /v1/apps/:app_name/certificates/:hostname/acme": {
    params: { app_name: string; hostname: string };
    query: Record<string, never>;
    body: undefined;
    answer: { ok: boolean };
  };
  /** Remove a host name whose certificate is custom. */
  "DELETE /v1/apps/:app_name/certificates/:hostname/custom": {
    params: { app_name: string; hostname: string };
    query: Record<string, never>;
    body: undefined;
    answer: { ok: boolean };
  };
  /** An app's open ports, addresses, machines and their load. */
  "GET /v1/apps/:app_name/services": {
    params: { app_name: string };
    query: { limit?: number | undefined; cursor?: string | undefined };
    body: undefined;
    answer: { open: boolean; services: ({ protocol: string; port: number; end_port: number; handlers: string[]; urls: string[]; problems: string[]; machines: ({ id: string; state: string; internal_port: number; serving: boolean; problem?: string | undefined; in_progress: number; soft_limit: number; hard_limit?: number | undefined; autostart: boolean; autostop: string })[] })[]; statics: ({ url_prefix: string; source: string; problem?: string | undefined })[]; next_cursor?: string | undefined };
  };
  /** Replace the proxy's workers without a dropped request; proxy_id changes its colour. */
  "POST /v1/proxy/reload": {
    params: Record<string, never>;
    query: Record<string, never>;
    body: undefined;
    answer: { proxy_id: string; workers: number };
  };
  /** List an app's recent failed and slow requests, newest first. */
  "GET /v1/apps/:app_name/requests": {
    params: { app_name: string };
    query: Record<string, never>;
    body: undefined;
    answer: { requests: ({ at: string; method: string; path: string; status: number; duration_ms: number; machine_id: string | null; request_id: string; trace_id: string | null; reason: string | null })[] };
  };
  /** Get an app's state (healthy, degraded, down, asleep) with its reason, URLs and release. */
  "GET /v1/apps/:app_name/status": {
    params: { app_name: string };
    query: Record<string, never>;
    body: undefined;
    answer: { app_name: string; state: "healthy" | "degraded" | "down" | "asleep" | "starting" | "empty"; reason: string; urls: string[]; regions: string[]; machines: Record<string, number>; failures: ({ machine_id: string; machine_name: string; reason: string })[]; release: { version: number; status: string; description: string; image: string | null; image_digest: string | null; created_by: string; created_at: string; failure: string | null } | null; last_release: { version: number; status: string; description: string; image: string | null; image_digest: string | null; created_by: string; created_at: string; failure: string | null } | null };
  };
  /** List the status of an organization's apps. */
  "GET /v1/orgs/:org_slug/app_statuses": {
    params: { org_slug: string };
    query: { limit?: number | undefined; cursor?: string | undefined };
    body: undefined;
    answer: { apps: ({ app_name: string; state: "healthy" | "degraded" | "down" | "asleep" | "starting" | "empty"; reason: string; urls: string[]; regions: string[]; machines: Record<string, number>; failures: ({ machine_id: string; machine_name: string; reason: string })[]; release: { version: number; status: string; description: string; image: string | null; image_digest: string | null; created_by: string; created_at: string; failure: string | null } | null; last_release: { version: number; status: string; description: string; image: string | null; image_digest: string | null; created_by: string; created_at: string; failure: string | null } | null })[]; next_cursor?: string | undefined };
  };
  /** Evaluate a query at one time. */
  "GET /prometheus/:org_slug/api/v1/query": {
    params: { org_slug: string };
    query: { query: string; time?: string | undefined; step?: string | undefined; timeout?: string | undefined; limit?: number | undefined; dialect?: "metricsql" | "promql" | undefined; nocache?: boolean | undefined; stats?: string | undefined };
    body: undefined;
    answer: string;
  };
  /** Evaluate a query at one time. */
  "POST /prometheus/:org_slug/api/v1/query": {
    params: { org_slug: string };
    query: { query: string; time?: string | undefined; step?: string | undefined; timeout?: string | undefined; limit?: number | undefined; dialect?: "metricsql" | "promql" | undefined; nocache?: boolean | undefined; stats?: string | undefined };
    body: undefined;
    answer: string;
  };
  /** Evaluate a query over a range of time. */
  "GET /prometheus/:org_slug/api/v1/query_range": {
    params: { org_slug: string };
    query: { query: string; start: string; end: string; step: string; timeout?: string | undefined; limit?: number | undefined; dialect?: "metricsql" | "promql" | undefined; nocache?: boolean | undefined; stats?: string | undefined };
    body: undefined;
    answer: string;
  };
  /** Evaluate a query over a range of time. */
  "POST /prometheus/:org_slug/api/v1/query_range": {
    params: { org_slug: string };
    query: { query: string; start: string; end: string; step: string; timeout?: string | undefined; limit?: number | undefined; dialect?: "metricsql" | "promql" | undefined; nocache?: boolean | undefined; stats?: string | undefined };
    body: undefined;
    answer: string;
  };
  /** The newest samples of the series that match, as Prometheus text. */
  "GET /prometheus/:org_slug/federate": {
    params: { org_slug: string };
    query: { "match[]"?: string[] | undefined };
    body: undefined;
    answer: string;
  };
  /** Remote read: not supported. */
  "POST /prometheus/:org_slug/api/v1/read": {
    params: { org_slug: string };
    query: Record<string, never>;
    body: undefined;
    answer: string;
  };
  /** Series that match. */
  "GET /prometheus/:org_slug/api/v1/series": {
    params: { org_slug: string };
    query: { "match[]"?: string[] | undefined; start?: string | undefined; end?: string | undefined; limit?: number | undefined };
    body: undefined;
    answer: string;
  };
  /** Series that match. */
  "POST /prometheus/:org_slug/api/v1/series": {
    params: { org_slug: string };
    query: { "match[]"?: string[] | undefined; start?: string | undefined; end?: string | undefined; limit?: number | undefined };
    body: undefined;
    answer: string;
  };
  /** Label names. */
  "GET /prometheus/:org_slug/api/v1/labels": {
    params: { org_slug: string };
    query: { "match[]"?: string[] | undefined; start?: string | undefined; end?: string | undefined; limit?: number | undefined };
    body: undefined;
    answer: string;
  };
  /** Label names. */
  "POST /prometheus/:org_slug/api/v1/labels": {
    params: { org_slug: string };
    query: { "match[]"?: string[] | undefined; start?: string | undefined; end?: string | undefined; limit?: number | undefined };
    body: undefined;
    answer: string;
  };
  /** Values of a label. */
  "GET /prometheus/:org_slug/api/v1/label/:label_name/values": {
    params: { org_slug: string; label_name: string };
    query: { "match[]"?: string[] | undefined; start?: string | undefined; end?: string | undefined; limit?: number | undefined };
    body: undefined;
    answer: string;
  };
  /** Cardinality: series by metric, by label, by value. */
  "GET /prometheus/:org_slug/api/v1/status/tsdb": {
    params: { org_slug: string };
    query: { topN?: number | undefined; focusLabel?: string | undefined; "match[]"?: string[] | undefined };
    body: undefined;
    answer: string;
  };
  /** Version information, from which Grafana detects features. */
  "GET /prometheus/:org_slug/api/v1/status/buildinfo": {
    params: { org_slug: string };
    query: Record<string, never>;
    body: undefined;
    answer: string;
  };
  /** Exemplars: there are none. */
  "GET /prometheus/:org_slug/api/v1/query_exemplars": {
    params: { org_slug: string };
    query: { query: string; start?: string | undefined; end?: string | undefined };
    body: undefined;
    answer: string;
  };
  /** Exemplars: there are none. */
  "POST /prometheus/:org_slug/api/v1/query_exemplars": {
    params: { org_slug: string };
    query: { query: string; start?: string | undefined; end?: string | undefined };
    body: undefined;
    answer: string;
  };
  /** Metric metadata: built-in ones of the last day, and what senders reported. */
  "GET /prometheus/:org_slug/api/v1/metadata": {
    params: { org_slug: string };
    query: { metric?: string | undefined; limit?: number | undefined };
    body: undefined;
    answer: string;
  };
  /** A query, written as we would. */
  "GET /prometheus/:org_slug/api/v1/format_query": {
    params: { org_slug: string };
    query: { query: string; dialect?: "metricsql" | "promql" | undefined };
    body: undefined;
    answer: string;
  };
  /** A query, written as we would. */
  "POST /prometheus/:org_slug/api/v1/format_query": {
    params: { org_slug: string };
    query: { query: string; dialect?: "metricsql" | "promql" | undefined };
    body: undefined;
    answer: string;
  };
  /** A query of the strict dialect as a tree. */
  "GET /prometheus/:org_slug/api/v1/parse_query": {
    params: { org_slug: string };
    query: { query: string };
    body: undefined;
    answer: string;
  };
  /** A query of the strict dialect as a tree. */
  "POST /prometheus/:org_slug/api/v1/parse_query": {
    params: { org_slug: string };
    query: { query: string };
    body: undefined;
    answer: string;
  };
  /** List scrape targets and their health. */
  "GET /prometheus/:org_slug/api/v1/targets": {
    params: { org_slug: string };
    query: { state?: "active" | "dropped" | "any" | undefined; scrapePool?: string | undefined };
    body: undefined;
    answer: string;
  };
  /** Prometheus' configuration file: there is none. */
  "GET /prometheus/:org_slug/api/v1/status/config": {
    params: { org_slug: string };
    query: Record<string, never>;
    body: undefined;
    answer: string;
  };
  /** Prometheus' flags: there are none. */
  "GET /prometheus/:org_slug/api/v1/status/flags": {
    params: { org_slug: string };
    query: Record<string, never>;
    body: undefined;
    answer: string;
  };
  /** The server's start time and the retention of samples. */
  "GET /prometheus/:org_slug/api/v1/status/runtimeinfo": {
    params: { org_slug: string };
    query: Record<string, never>;
    body: undefined;
    answer: string;
  };
  /** Progress of the start: queries wait until it is complete. */
  "GET /prometheus/:org_slug/api/v1/status/walreplay": {
    params: { org_slug: string };
    query: Record<string, never>;
    body: undefined;
    answer: string;
  };
  /** Notifications of the server for its UI: there are none. */
  "GET /prometheus/:org_slug/api/v1/notifications": {
    params: { org_slug: string };
    query: Record<string, never>;
    body: undefined;
    answer: string;
  };
  /** Scrape pools: one for each app with scrape targets. */
  "GET /prometheus/:org_slug/api/v1/scrape_pools": {
    params: { org_slug: string };
    query: Record<string, never>;
    body: undefined;
    answer: string;
  };
  /** Alertmanagers of the server itself: an organization's are in its receivers. */
  "GET /prometheus/:org_slug/api/v1/alertmanagers": {
    params: { org_slug: string };
    query: Record<string, never>;
    body: undefined;
    answer: string;
  };
  /** Metadata of the metrics of scrape targets. */
  "GET /prometheus/:org_slug/api/v1/targets/metadata": {
    params: { org_slug: string };
    query: { match_target?: string | undefined; metric?: string | undefined; limit?: number | undefined };
    body: undefined;
    answer: string;
  };
  /** Remote write, version 1.0 or 2.0 by its Content-Type. */
  "POST /prometheus/:org_slug/api/v1/write": {
    params: { org_slug: string };
    query: Record<string, never>;
    body: undefined;
    answer: undefined;
  };
  /** Import series as VictoriaMetrics' JSON lines. */
  "POST /prometheus/:org_slug/api/v1/import": {
    params: { org_slug: string };
    query: Record<string, never>;
    body: undefined;
    answer: undefined;
  };
  /** Import series as Prometheus text. */
  "POST /prometheus/:org_slug/api/v1/import/prometheus": {
    params: { org_slug: string };
    query: Record<string, never>;
    body: undefined;
    answer: undefined;
  };
  /** OTLP metrics over HTTP, protobuf or JSON. */
  "POST /prometheus/:org_slug/opentelemetry/v1/metrics": {
    params: { org_slug: string };
    query: Record<string, never>;
    body: undefined;
    answer: string;
  };
  /** OTLP metrics over HTTP, protobuf or JSON. */
  "POST /prometheus/:org_slug/api/v1/otlp/v1/metrics": {
    params: { org_slug: string };
    query: Record<string, never>;
    body: undefined;
    answer: string;
  };
  /** Export raw samples as JSON lines. */
  "GET /prometheus/:org_slug/api/v1/export": {
    params: { org_slug: string };
    query: { "match[]"?: string[] | undefined; start?: string | undefined; end?: string | undefined };
    body: undefined;
    answer: string;
  };
  /** Nodes of an organization's replicated databases, with their events as they happen. */
  "GET /v1/orgs/:org_slug/db_nodes": {
    params: { org_slug: string };
    query: { limit?: number | undefined; cursor?: string | undefined };
    body: undefined;
    answer: { nodes: ({ app_name: string; machine_id: string; machine_name: string; instance_id: string; state: { primary: boolean; term: number; lag_ms: number; replicas: number; databases: Record<string, number>; problems: Record<string, { state: string; reason: string }> } | null; reason: string })[]; next_cursor?: string | undefined };
  };
  /** Create a sprite. */
  "POST /v1/sprites": {
    params: Record<string, never>;
    query: Record<string, never>;
    body: { name: string; config?: { cpus?: number | undefined; ram_mb?: number | undefined; storage_gb?: number | undefined; region?: string | undefined } | undefined; environment?: Record<string, string> | undefined; labels?: string[] | undefined; url_settings?: { auth?: "sprite" | "public" | undefined; private_access?: "org_users" | "admins" | undefined } | undefined; wait_for_capacity?: boolean | undefined; runtime?: "default" | "dev" | undefined; image?: string | undefined; org_slug?: string | undefined };
    answer: { id: string; name: string; organization: string; status: string; labels: string[]; url: string; url_settings: { auth: string; private_access?: string | undefined }; config: { cpus: number; ram_mb: number; storage_gb: number; region?: string | undefined }; image: string; environment: Record<string, string>; machine_id: string; app_name: string; version: string; created_at: string; updated_at: string; last_running_at?: string | undefined };
  };
  /** List sprites, by name; with `Accept: application/x-ndjson` their states as they change. */
  "GET /v1/sprites": {
    params: Record<string, never>;
    query: { org_slug?: string | undefined; prefix?: string | undefined; max_results?: number | undefined; continuation_token?: string | undefined; bulk_load?: boolean | undefined };
    body: undefined;
    answer: { sprites: ({ id: string; name: string; organization: string; status: string; labels: string[]; url: string; url_settings: { auth: string; private_access?: string | undefined }; config: { cpus: number; ram_mb: number; storage_gb: number; region?: string | undefined }; image: string; environment: Record<string, string>; machine_id: string; app_name: string; version: string; created_at: string; updated_at: string; last_running_at?: string | undefined })[]; has_more: boolean; next_continuation_token?: string | undefined; name: string; running: number; warm: number; cold: number };
  };
  /** Get a sprite. */
  "GET /v1/sprites/:sprite_name": {
    params: { sprite_name: string };
    query: { org_slug?: string | undefined };
    body: undefined;
    answer: { id: string; name: string; organization: string; status: string; labels: string[]; url: string; url_settings: { auth: string; private_access?: string | undefined }; config: { cpus: number; ram_mb: number; storage_gb: number; region?: string | undefined }; image: string; environment: Record<string, string>; machine_id: string; app_name: string; version: string; created_at: string; updated_at: string; last_running_at?: string | undefined };
  };
  /** Change a sprite's labels or URL settings; what is not named stays. */
  "PUT /v1/sprites/:sprite_name": {
    params: { sprite_name: string };
    query: { org_slug?: string | undefined };
    body: { labels?: string[] | undefined; url_settings?: { auth?: "sprite" | "public" | undefined; private_access?: "org_users" | "admins" | undefined } | undefined };
    answer: { id: string; name: string; organization: string; status: string; labels: string[]; url: string; url_settings: { auth: string; private_access?: string | undefined }; config: { cpus: number; ram_mb: number; storage_gb: number; region?: string | undefined }; image: string; environment: Record<string, string>; machine_id: string; app_name: string; version: string; created_at: string; updated_at: string; last_running_at?: string | undefined };
  };
  /** Delete a sprite with its disk. */
  "DELETE /v1/sprites/:sprite_name": {
    params: { sprite_name: string };
    query: { org_slug?: string | undefined };
    body: undefined;
    answer: undefined;
  };
  /** Stop and start a sprite; its disk stays. */
  "POST /v1/sprites/:sprite_name/restart": {
    params: { sprite_name: string };
    query: { org_slug?: string | undefined };
    body: undefined;
    answer: { sprite_name: string; machine_id: string; message: string };
  };
  /** Upgrade a sprite: it runs on the platform's own version, so there is nothing to do. */
  "POST /v1/sprites/:sprite_name/upgrade": {
    params: { sprite_name: string };
    query: { org_slug?: string | undefined };
    body: undefined;
    answer: undefined;
  };
  /** Check that a sprite runs commands, waking it. */
  "GET /v1/sprites/:sprite_name/check": {
    params: { sprite_name: string };
    query: { org_slug?: string | undefined };
    body: undefined;
    answer: { sprite_name: string; sprite_id: string; status: string; reason?: string | undefined; checked_at: string; elapsed: number };
  };
  /** Run a command in a sprite, over WebSocket; otherwise list the commands that run. */
  "GET /v1/sprites/:sprite_name/exec": {
    params: { sprite_name: string };
    query: { org_slug?: string | undefined; cmd?: string[] | undefined; path?: string | undefined; env?: string[] | undefined; dir?: string | undefined; tty?: boolean | undefined; rows?: number | undefined; cols?: number | undefined; stdin?: boolean | undefined; detachable?: boolean | undefined; cc?: string | undefined; max_run_after_disconnect?: string | undefined };
    body: undefined;
    answer: { sessions: ({ id: string; command: string; workdir: string; created: string; last_activity: string; bytes_per_second: number; is_active: boolean; tty: boolean })[] };
  };
  /** Run a command in a sprite, over plain HTTP. */
  "POST /v1/sprites/:sprite_name/exec": {
    params: { sprite_name: string };
    query: { org_slug?: string | undefined; cmd?: string[] | undefined; path?: string | undefined; env?: string[] | undefined; dir?: string | undefined; tty?: boolean | undefined; rows?: number | undefined; cols?: number | undefined; stdin?: boolean | undefined; detachable?: boolean | undefined; cc?: string | undefined; max_run_after_disconnect?: string | undefined };
    body: undefined;
    answer: string;
  };
  /** Attach to a running command, over WebSocket. */
  "GET /v1/sprites/:sprite_name/exec/:session_id": {
    params: { sprite_name: string; session_id: string };
    query: { org_slug?: string | undefined; cmd?: string[] | undefined; path?: string | undefined; env?: string[] | undefined; dir?: string | undefined; tty?: boolean | undefined; rows?: number | undefined; cols?: number | undefined; stdin?: boolean | undefined; detachable?: boolean | undefined; cc?: string | undefined; max_run_after_disconnect?: string | undefined };
    body: undefined;
    answer: undefined;
  };
  /** End a command: a signal, then SIGKILL; each step is a line of the answer. */
  "POST /v1/sprites/:sprite_name/exec/:session_id/kill": {
    params: { sprite_name: string; session_id: string };
    query: { org_slug?: string | undefined; signal?: string | undefined; timeout?: string | undefined };
    body: undefined;
    answer: string;
  };
  /** Run commands over one WebSocket, one after the other. */
  "GET /v1/sprites/:sprite_name/control": {
    params: { sprite_name: string };
    query: { org_slug?: string | undefined };
    body: undefined;
    answer: undefined;
  };
  /** Read a file of a sprite. */
  "GET /v1/sprites/:sprite_name/fs/read": {
    params: { sprite_name: string };
    query: { org_slug?: string | undefined; path?: string | undefined; workingDir?: string | undefined };
    body: undefined;
    answer: string;
  };
  /** Write a file of a sprite. */
  "PUT /v1/sprites/:sprite_name/fs/write": {
    params: { sprite_name: string };
    query: { org_slug?: string | undefined; path?: string | undefined; workingDir?: string | undefined; mode?: string | undefined; mkdirParents?: boolean | undefined; mkdir?: boolean | undefined };
    body: undefined;
    answer: { path: string; size: number; mode: string };
  };
  /** List a folder of a sprite; of a file, that file. */
  "GET /v1/sprites/:sprite_name/fs/list": {
    params: { sprite_name: string };
    query: { org_slug?: string | undefined; path?: string | undefined; workingDir?: string | undefined; recursive?: boolean | undefined; pattern?: string | undefined };
    body: undefined;
    answer: { path: string; entries: ({ name: string; path: string; type: string; size: number; mode: string; modTime: string; isDir: boolean; uid: number; gid: number })[]; count: number };
  };
  /** Show one file or folder of a sprite; of a link, where it points to. */
  "GET /v1/sprites/:sprite_name/fs/stat": {
    params: { sprite_name: string };
    query: { org_slug?: string | undefined; path?: string | undefined; workingDir?: string | undefined };
    body: undefined;
    answer: { name: string; path: string; type: string; size: number; mode: string; modTime: string; isDir: boolean; uid: number; gid: number; target?: string | undefined };
  };
  /** Delete a file or an empty folder of a sprite; with `recursive` a folder with what is in it. */
  "DELETE /v1/sprites/:sprite_name/fs/delete": {
    params: { sprite_name: string };
    query: { org_slug?: string | undefined; path?: string | undefined; workingDir?: string | undefined; recursive?: boolean | undefined; asRoot?: boolean | undefined };
    body: undefined;
    answer: { deleted: string[]; count: number };
  };
  /** Rename a file or folder of a sprite. */
  "POST /v1/sprites/:sprite_name/fs/rename": {
    params: { sprite_name: string };
    query: Record<string, never>;
    body: { source: string; dest: string; workingDir?: string | undefined; asRoot?: boolean | undefined };
    answer: { source: string; dest: string };
  };
  /** Copy a file of a sprite; with `recursive` a folder, whose links stay links. */
  "POST /v1/sprites/:sprite_name/fs/copy": {
    params: { sprite_name: string };
    query: Record<string, never>;
    body: { source: string; dest: string; workingDir?: string | undefined; asRoot?: boolean | undefined; recursive?: boolean | undefined; preserveAttrs?: boolean | undefined };
    answer: { source: string; dest: string };
  };
  /** Change the mode of a file or folder of a sprite. */
  "POST /v1/sprites/:sprite_name/fs/chmod": {
    params: { sprite_name: string };
    query: Record<string, never>;
    body: { path: string; workingDir?: string | undefined; recursive?: boolean | undefined; asRoot?: boolean | undefined; mode: string };
    answer: { path: string };
  };
  /** Change the owners of a file or folder of a sprite, by number or by the sprite's own names. */
  "POST /v1/sprites/:sprite_name/fs/chown": {
    params: { sprite_name: string };
    query: Record<string, never>;
    body: { path: string; workingDir?: string | undefined; recursive?: boolean | undefined; asRoot?: boolean | undefined; uid?: number | string | undefined; gid?: number | string | undefined };
    answer: { path: string };
  };
  /** Watch files of a sprite, over WebSocket. */
  "GET /v1/sprites/:sprite_name/fs/watch": {
    params: { sprite_name: string };
    query: { org_slug?: string | undefined };
    body: undefined;
    answer: undefined;
  };
  /** Connect to a TCP port of a sprite, over WebSocket. */
  "GET /v1/sprites/:sprite_name/proxy": {
    params: { sprite_name: string };
    query: { org_slug?: string | undefined };
    body: undefined;
    answer: undefined;
  };
  /** Watch the ports that a sprite listens on, over WebSocket. */
  "GET /v1/sprites/:sprite_name/ports/watch": {
    params: { sprite_name: string };
    query: { org_slug?: string | undefined };
    body: undefined;
    answer: undefined;
  };
  /** List the repositories that were pushed, with their tags. */
  "GET /v1/registry/repositories": {
    params: Record<string, never>;
    query: { org_slug?: string | undefined; limit?: number | undefined; cursor?: string | undefined };
    body: undefined;
    answer: { repositories: ({ name: string; tags: ({ tag: string; digest: string })[]; manifests: number; bytes: number; updated_at: number })[]; next_cursor?: string | undefined };
  };
  /** The registry: the OCI distribution API, for docker, podman, skopeo and crane. */
  "GET /v2/*": {
    params: Record<string, never>;
    query: Record<string, never>;
    body: undefined;
    answer: string;
  };
  /** The registry: the OCI distribution API, for docker, podman, skopeo and crane. */
  "POST /v2/*": {
    params: Record<string, never>;
    query: Record<string, never>;
    body: undefined;
    answer: string;
  };
  /** The registry: the OCI distribution API, for docker, podman, skopeo and crane. */
  "PUT /v2/*": {
    params: Record<string, never>;
    query: Record<string, never>;
    body: undefined;
    answer: string;
  };
  /** The registry: the OCI distribution API, for docker, podman, skopeo and crane. */
  "PATCH /v2/*": {
    params: Record<string, never>;
    query: Record<string, never>;
    body: undefined;
    answer: string;
  };
  /** The registry: the OCI distribution API, for docker, podman, skopeo and crane. */
  "DELETE /v2/*": {
    params: Record<string, never>;
    query: Record<string, never>;
    body: undefined;
    answer: string;
  };
  /** How an app is deployed from Git. */
  "GET /v1/apps/:app_name/git": {
    params: { app_name: string };
    query: Record<string, never>;
    body: undefined;
    answer: { url: string; deploy_branch: string; repository_bytes: number | null };
  };
  /** Change how an app is deployed from Git. */
  "PUT /v1/apps/:app_name/git": {
    params: { app_name: string };
    query: Record<string, never>;
    body: { deploy_branch?: string | undefined };
    answer: { url: string; deploy_branch: string; repository_bytes: number | null };
  };
  /** List an app's previews. */
  "GET /v1/apps/:app_name/previews": {
    params: { app_name: string };
    query: { limit?: number | undefined; cursor?: string | undefined };
    body: undefined;
    answer: { previews: ({ app_name: string; branch: string; state: "creating" | "ready" | "deleting"; git_commit: string | null; urls: string[]; secrets: string[]; created_by: string; created_at: string; pushed_at: string; expires_at: string })[]; next_cursor?: string | undefined };
  };
  /** Get a preview by the name of its app. */
  "GET /v1/apps/:app_name/previews/:preview_name": {
    params: { app_name: string; preview_name: string };
    query: Record<string, never>;
    body: undefined;
    answer: { app_name: string; branch: string; state: "creating" | "ready" | "deleting"; git_commit: string | null; urls: string[]; secrets: string[]; created_by: string; created_at: string; pushed_at: string; expires_at: string };
  };
  /** Delete a preview with its machines, volumes, images and secrets. */
  "DELETE /v1/apps/:app_name/previews/:preview_name": {
    params: { app_name: string; preview_name: string };
    query: Record<string, never>;
    body: undefined;
    answer: undefined;
  };
  /** Make the preview app of a branch, or prepare it for another deploy. */
  "POST /v1/apps/:app_name/previews": {
    params: { app_name: string };
    query: Record<string, never>;
    body: { branch: string; git_commit?: string | undefined };
    answer: { app_name: string; branch: string; state: "creating" | "ready" | "deleting"; git_commit: string | null; urls: string[]; secrets: string[]; created_by: string; created_at: string; pushed_at: string; expires_at: string; is_new: boolean; token: string };
  };
  /** Whether an app has previews, and what they get. */
  "GET /v1/apps/:app_name/previews/settings": {
    params: { app_name: string };
    query: Record<string, never>;
    body: undefined;
    answer: { enabled: boolean; days: number; most: number; secrets: string[] };
  };
  /** Switch an app's previews on or off, and choose what they get. */
  "PUT /v1/apps/:app_name/previews/settings": {
    params: { app_name: string };
    query: Record<string, never>;
    body: { enabled?: boolean | undefined; days?: number | undefined; most?: number | undefined; secrets?: string[] | undefined };
    answer: { enabled: boolean; days: number; most: number; secrets: string[] };
  };
  /** Deploy what is pushed to a repository of GitHub, Gitea or Forgejo. */
  "POST /v1/apps/:app_name/git/webhooks": {
    params: { app_name: string };
    query: Record<string, never>;
    body: { repository: string; username?: string | undefined; password?: string | undefined };
    answer: { id: string; url: string; repository: string; username: string; has_password: boolean; created_by: string; created_at: string; secret: string };
  };
  /** List the repositories elsewhere whose pushes are deployed. */
  "GET /v1/apps/:app_name/git/webhooks": {
    params: { app_name: string };
    query: { limit?: number | undefined; cursor?: string | undefined };
    body: undefined;
    answer: { webhooks: ({ id: string; url: string; repository: string; username: string; has_password: boolean; created_by: string; created_at: string })[]; next_cursor?: string | undefined };
  };
  /** Disconnect a Git repository: its pushes are no longer deployed. */
  "DELETE /v1/apps/:app_name/git/webhooks/:git_webhook_id": {
    params: { app_name: string; git_webhook_id: string };
    query: Record<string, never>;
    body: undefined;
    answer: undefined;
  };
  /** List the events that came, and what became of each. */
  "GET /v1/apps/:app_name/git/webhooks/:git_webhook_id/deliveries": {
    params: { app_name: string; git_webhook_id: string };
    query: { limit?: number | undefined; cursor?: string | undefined };
    body: undefined;
    answer: { deliveries: ({ id: string; delivery: string; event: string; branch: string | null; state: "queued" | "running" | "done" | "failed"; result: string; git_commit: string | null; received_at: string; ended_at: string | null })[]; next_cursor?: string | undefined };
  };
  /** Take an event of GitHub, Gitea or Forgejo. */
  "POST /v1/apps/:app_name/git/webhooks/:git_webhook_id": {
    params: { app_name: string; git_webhook_id: string };
    query: Record<string, never>;
    body: undefined;
    answer: { result: string; why?: string | undefined };
  };
  /** Git repositories of apps, over Git's smart HTTP protocol. */
  "GET /git/*": {
    params: Record<string, never>;
    query: Record<string, never>;
    body: undefined;
    answer: string;
  };
  /** Git repositories of apps, over Git's smart HTTP protocol. */
  "POST /git/*": {
    params: Record<string, never>;
    query: Record<string, never>;
    body: undefined;
    answer: string;
  };
  /** List rule files; `default` comes with the platform until one of that name replaces it. */
  "GET /v1/orgs/:org_slug/alerts/rules": {
    params: { org_slug: string };
    query: { limit?: number | undefined; cursor?: string | undefined };
    body: undefined;
    answer: { rule_files: ({ name: string; app_name?: string | undefined; dialect: "promql" | "metricsql"; built_in: boolean; groups: number; rules: number; updated_at?: string | undefined })[]; next_cursor?: string | undefined };
  };
  /** Show a rule file. */
  "GET /v1/orgs/:org_slug/alerts/rules/:rule_file": {
    params: { org_slug: string; rule_file: string };
    query: Record<string, never>;
    body: undefined;
    answer: { name: string; app_name?: string | undefined; dialect: "promql" | "metricsql"; built_in: boolean; groups: number; rules: number; updated_at?: string | undefined; content: string };
  };
  /** Create or replace a rule file; its rules are evaluated from now on. */
  "PUT /v1/orgs/:org_slug/alerts/rules/:rule_file": {
    params: { org_slug: string; rule_file: string };
    query: Record<string, never>;
    body: { content: string; dialect?: "promql" | "metricsql" | undefined };
    answer: { name: string; app_name?: string | undefined; dialect: "promql" | "metricsql"; built_in: boolean; groups: number; rules: number; updated_at?: string | undefined };
  };
  /** Delete a rule file; its alerts end. */
  "DELETE /v1/orgs/:org_slug/alerts/rules/:rule_file": {
    params: { org_slug: string; rule_file: string };
    query: Record<string, never>;
    body: undefined;
    answer: undefined;
  };
  /** Show an app's own rules. */
  "GET /v1/apps/:app_name/alerts/rules": {
    params: { app_name: string };
    query: Record<string, never>;
    body: undefined;
    answer: { name: string; app_name?: string | undefined; dialect: "promql" | "metricsql"; built_in: boolean; groups: number; rules: number; updated_at?: string | undefined; content: string };
  };
  /** Set an app's own rules; they see and write the series of this app only. */
  "PUT /v1/apps/:app_name/alerts/rules": {
    params: { app_name: string };
    query: Record<string, never>;
    body: { content: string; dialect?: "promql" | "metricsql" | undefined };
    answer: { name: string; app_name?: string | undefined; dialect: "promql" | "metricsql"; built_in: boolean; groups: number; rules: number; updated_at?: string | undefined };
  };
  /** Delete an app's own rules. */
  "DELETE /v1/apps/:app_name/alerts/rules": {
    params: { app_name: string };
    query: Record<string, never>;
    body: undefined;
    answer: undefined;
  };
  /** List alerts that are pending or firing. */
  "GET /v1/orgs/:org_slug/alerts": {
    params: { org_slug: string };
    query: { resolved?: boolean | undefined; app_name?: string | undefined; limit?: number | undefined; cursor?: string | undefined };
    body: undefined;
    answer: { alerts: ({ labels: Record<string, string>; annotations: Record<string, string>; state: "pending" | "firing" | "resolved"; value: string; active_at: string; fired_at?: string | undefined; resolved_at?: string | undefined; rule_file: string; group: string; silenced_by: string[] })[]; next_cursor?: string | undefined };
  };
  /** Recording and alerting rules with their state. */
  "GET /prometheus/:org_slug/api/v1/rules": {
    params: { org_slug: string };
    query: { type?: "alert" | "record" | undefined; "rule_name[]"?: string[] | undefined; "rule_group[]"?: string[] | undefined; "file[]"?: string[] | undefined; exclude_alerts?: boolean | undefined; group_limit?: number | undefined; group_next_token?: string | undefined };
    body: undefined;
    answer: string;
  };
  /** Pending and firing alerts. */
  "GET /prometheus/:org_slug/api/v1/alerts": {
    params: { org_slug: string };
    query: Record<string, never>;
    body: undefined;
    answer: string;
  };
  /** Show receivers and routes; secrets are masked. */
  "GET /v1/orgs/:org_slug/alerts/receivers": {
    params: { org_slug: string };
    query: Record<string, never>;
    body: undefined;
    answer: { content: string; receivers: ({ name: string; integrations: string[] })[]; updated_at: string };
  };
  /** Set receivers and routes, in Alertmanager's format. */
  "PUT /v1/orgs/:org_slug/alerts/receivers": {
    params: { org_slug: string };
    query: Record<string, never>;
    body: { content: string };
    answer: { content: string; receivers: ({ name: string; integrations: string[] })[]; updated_at: string };
  };
  /** Delete receivers and routes; no notifications are sent any more. */
  "DELETE /v1/orgs/:org_slug/alerts/receivers": {
    params: { org_slug: string };
    query: Record<string, never>;
    body: undefined;
    answer: undefined;
  };
  /** Send a test alert to a receiver now. */
  "POST /v1/orgs/:org_slug/alerts/receivers/:receiver/test": {
    params: { org_slug: string; receiver: string };
    query: Record<string, never>;
    body: undefined;
    answer: { results: ({ integration: string; problem: string | null })[] };
  };
  /** List silences that have not ended. */
  "GET /v1/orgs/:org_slug/alerts/silences": {
    params: { org_slug: string };
    query: { limit?: number | undefined; cursor?: string | undefined };
    body: undefined;
    answer: { silences: ({ id: string; matchers: string[]; starts_at: string; ends_at: string; created_by: string; comment: string })[]; next_cursor?: string | undefined };
  };
  /** Silence alerts whose labels match: no notifications are sent for them until it ends. */
  "POST /v1/orgs/:org_slug/alerts/silences": {
    params: { org_slug: string };
    query: Record<string, never>;
    body: { matchers: string[]; starts_at?: string | undefined; ends_at?: string | undefined; duration?: string | undefined; comment?: string | undefined };
    answer: { id: string; matchers: string[]; starts_at: string; ends_at: string; created_by: string; comment: string };
  };
  /** End a silence now. */
  "DELETE /v1/orgs/:org_slug/alerts/silences/:silence_id": {
    params: { org_slug: string; silence_id: string };
    query: Record<string, never>;
    body: undefined;
    answer: undefined;
  };
  /** List notifications and their delivery, newest first. */
  "GET /v1/orgs/:org_slug/alerts/notifications": {
    params: { org_slug: string };
    query: { limit?: number | undefined };
    body: undefined;
    answer: { notifications: ({ id: string; receiver: string; integration: string; group: string; created_at: string; state: "waiting" | "delivered" | "failed"; attempts: number; delivered_at?: string | undefined; next_attempt_at?: string | undefined; last_error?: string | undefined })[] };
  };
  /** Deploy an image, roll back or scale, as the `hangar` command does. */
  "POST /v1/apps/:app_name/deployments": {
    params: { app_name: string };
    query: Record<string, never>;
    body: { action: "deploy" | "rollback" | "scale"; image?: string | undefined; port?: number | undefined; strategy?: "rolling" | "canary" | "bluegreen" | "immediate" | undefined; preview?: string | undefined; version?: number | undefined; counts?: Record<string, number> | undefined; memory_mb?: number | undefined; cpus?: number | undefined; message?: string | undefined; dry_run?: boolean | undefined };
    answer: { command: string; lines: string[]; version: number | null };
  };
  /** Create a connector with a key. */
  "POST /v1/oauth/connections/api_key": {
    params: Record<string, never>;
    query: Record<string, never>;
    body: { provider: string; api_key: string; name?: string | undefined; base_url?: string | undefined; region?: string | undefined; access_policy?: AccessPolicy | undefined; encoded_paths?: boolean | undefined; org_slug?: string | undefined };
    answer: { connection: Connection; warnings?: string[] | undefined };
  };
  /** Create a connector to any HTTP API. */
  "POST /v1/oauth/connections/custom_api": {
    params: Record<string, never>;
    query: Record<string, never>;
    body: { name: string; base_api_url: string; access_token: string; auth_method: "header" | "query" | "path"; auth_header_prefix?: string | undefined; auth_header_name?: string | undefined; auth_query_name?: string | undefined; test_url?: string | undefined; access_policy?: AccessPolicy | undefined; encoded_paths?: boolean | undefined; org_slug?: string | undefined };
    answer: { connection: Connection; warnings?: string[] | undefined };
  };
  /** Create a connector whose key the platform provides. */
  "POST /v1/oauth/connections/provision": {
    params: Record<string, never>;
    query: Record<string, never>;
    body: { provider: string; access_policy?: AccessPolicy | undefined; org_slug?: string | undefined };
    answer: { connection: Connection; warnings?: string[] | undefined };
  };
  /** List an organization's connectors. */
  "GET /v1/oauth/connections": {
    params: Record<string, never>;
    query: { provider?: string | undefined; org_slug?: string | undefined; limit?: number | undefined; cursor?: string | undefined };
    body: undefined;
    answer: { connections: Connection[]; next_cursor?: string | undefined };
  };
  /** Get a connector; its secrets are never returned. */
  "GET /v1/oauth/connections/:connection_id": {
    params: { connection_id: string };
    query: Record<string, never>;
    body: undefined;
    answer: { connection: Connection; warnings?: string[] | undefined };
  };
  /** Replace a connector's access policy. */
  "PUT /v1/oauth/connections/:connection_id": {
    params: { connection_id: string };
    query: Record<string, never>;
    body: { access_policy: AccessPolicy };
    answer: { connection: Connection; warnings?: string[] | undefined };
  };
  /** Delete a connector and its credential, at once. */
  "DELETE /v1/oauth/connections/:connection_id": {
    params: { connection_id: string };
    query: Record<string, never>;
    body: undefined;
    answer: undefined;
  };
  /** Replace a connector's key. */
  "PUT /v1/oauth/connections/:connection_id/api_key": {
    params: { connection_id: string };
    query: Record<string, never>;
    body: { api_key: string };
    answer: { connection: Connection; warnings?: string[] | undefined };
  };
  /** Test a connector: call the provider through the gateway. */
  "POST /v1/oauth/connections/:connection_id/test_gateway": {
    params: { connection_id: string };
    query: Record<string, never>;
    body: { sprite?: string | undefined; labels?: string[] | undefined; path?: string | undefined };
    answer: { status: string; message: string; latency_ms: number };
  };
  /** Show the policy rule that applies to a sprite and a path. */
  "POST /v1/oauth/connections/:connection_id/explain": {
    params: { connection_id: string };
    query: Record<string, never>;
    body: { sprite: string; labels?: string[] | undefined; path: string; access_policy?: AccessPolicy | undefined };
    answer: { allowed: boolean; rule: string; reason: string };
  };
  /** Usage of a connector. */
  "GET /v1/oauth/connections/:connection_id/usage": {
    params: { connection_id: string };
    query: Record<string, never>;
    body: undefined;
    answer: { calls: number; denials: number; failures: number; bytes_sent: number; bytes_received: number; last_used_at?: string | undefined };
  };
  /** Audit log of an organization's connectors, newest first. */
  "GET /v1/oauth/audit": {
    params: Record<string, never>;
    query: { connection_id?: string | undefined; action?: string | undefined; before?: string | undefined; org_slug?: string | undefined; limit?: number | undefined; cursor?: string | undefined };
    body: undefined;
    answer: { entries: ({ id: string; at: string; connection_id: string; action: string; actor: string; method?: string | undefined; path?: string | undefined; status?: number | undefined; rule?: string | undefined })[]; next_cursor?: string | undefined };
  };
  /** The providers, and how each can be connected on this platform. */
  "GET /v1/oauth/providers": {
    params: Record<string, never>;
    query: { limit?: number | undefined; cursor?: string | undefined };
    body: undefined;
    answer: { providers: ({ provider: string; title: string; category: string; connected_by: string[]; default_scopes: string[] })[]; next_cursor?: string | undefined };
  };
  /** Begin an OAuth authorization: returns the URL to open. */
  "GET /v1/oauth/:provider/authorize": {
    params: { provider: string };
    query: { scopes?: string | undefined; add_scopes?: string | undefined; state?: string | undefined; redirect_uri?: string | undefined; org_slug?: string | undefined };
    body: undefined;
    answer: { authorize_url: string; state: string };
  };
  /** OAuth redirect target: shows how to finish. */
  "GET /v1/oauth/:provider/callback": {
    params: { provider: string };
    query: { code?: string | undefined; state?: string | undefined; error?: string | undefined; error_description?: string | undefined };
    body: undefined;
    answer: string;
  };
  /** Finish an OAuth authorization: creates the connector. */
  "POST /v1/oauth/:provider/callback": {
    params: { provider: string };
    query: Record<string, never>;
    body: { code: string; state: string; access_policy?: AccessPolicy | undefined; org_slug?: string | undefined };
    answer: { connection: Connection; warnings?: string[] | undefined };
  };
  /** Connectors this machine may use, and available providers. */
  "GET /v1/gateway/list": {
    params: Record<string, never>;
    query: Record<string, never>;
    body: undefined;
    answer: { connected: ({ provider: string; id: string; name: string; description: string; gateway_base_url: string; scopes: string; usage_snippet: string })[]; available: ({ provider: string; name: string; default_scopes: string[] })[] };
  };
  /** Call a provider with a connector's credential. */
  "GET /v1/gateway/:provider/:connection_id/*": {
    params: { provider: string; connection_id: string };
    query: Record<string, never>;
    body: undefined;
    answer: string;
  };
  /** Call a provider with a connector's credential. */
  "POST /v1/gateway/:provider/:connection_id/*": {
    params: { provider: string; connection_id: string };
    query: Record<string, never>;
    body: undefined;
    answer: string;
  };
  /** Call a provider with a connector's credential. */
  "PUT /v1/gateway/:provider/:connection_id/*": {
    params: { provider: string; connection_id: string };
    query: Record<string, never>;
    body: undefined;
    answer: string;
  };
  /** Call a provider with a connector's credential. */
  "PATCH /v1/gateway/:provider/:connection_id/*": {
    params: { provider: string; connection_id: string };
    query: Record<string, never>;
    body: undefined;
    answer: string;
  };
  /** Call a provider with a connector's credential. */
  "DELETE /v1/gateway/:provider/:connection_id/*": {
    params: { provider: string; connection_id: string };
    query: Record<string, never>;
    body: undefined;
    answer: string;
  };
  /** Call a provider with a connector's credential. */
  "OPTIONS /v1/gateway/:provider/:connection_id/*": {
    params: { provider: string; connection_id: string };
    query: Record<string, never>;
    body: undefined;
    answer: string;
  };
  /** The issuer of an organization's identity tokens. */
  "GET /oidc/:org_slug/.well-known/openid-configuration": {
    params: { org_slug: string };
    query: Record<string, never>;
    body: undefined;
    answer: { issuer: string; jwks_uri: string; response_types_supported: string[]; subject_types_supported: string[]; id_token_signing_alg_values_supported: string[]; scopes_supported: string[]; claims_supported: string[] };
  };
  /** The keys an organization's identity tokens are signed with. */
  "GET /oidc/:org_slug/.well-known/jwks.json": {
    params: { org_slug: string };
    query: Record<string, never>;
    body: undefined;
    answer: { keys: ({ kid: string; alg: "RS256" | "ES256"; use: "sig"; kty?: string | undefined; n?: string | undefined; e?: string | undefined; crv?: string | undefined; x?: string | undefined; y?: string | undefined })[] };
  };
  /** The issuer's keys and their states. */
  "GET /v1/orgs/:org_slug/oidc/keys": {
    params: { org_slug: string };
    query: { limit?: number | undefined; cursor?: string | undefined };
    body: undefined;
    answer: { keys: ({ kid: string; alg: string; state: string; created_at: string; sign_from: string; publish_until?: string | undefined })[]; next_cursor?: string | undefined };
  };
  /** Rotate the issuer's keys now. */
  "POST /v1/orgs/:org_slug/oidc/rotate": {
    params: { org_slug: string };
    query: Record<string, never>;
    body: { revoke?: boolean | undefined };
    answer: { keys: ({ kid: string; alg: string; state: string; created_at: string; sign_from: string; publish_until?: string | undefined })[] };
  };
  /** Which node of a replicated database is primary. */
  "GET /v1/apps/:app_name/db_leases/:lease_name": {
    params: { app_name: string; lease_name: string };
    query: Record<string, never>;
    body: undefined;
    answer: { lease: { node: string; url: string; term: number } | null };
  };
  /** Acquire the lease and become primary, if no node holds it. */
  "POST /v1/apps/:app_name/db_leases/:lease_name/acquire": {
    params: { app_name: string; lease_name: string };
    query: Record<string, never>;
    body: { node: string; url: string; term: number; complete_term: number; ttl_ms: number; force?: boolean | undefined };
    answer: { lease: { node: string; url: string; term: number } | null };
  };
  /** Stay primary. */
  "POST /v1/apps/:app_name/db_leases/:lease_name/renew": {
    params: { app_name: string; lease_name: string };
    query: Record<string, never>;
    body: { node: string; term: number; ttl_ms: number; in_sync?: { version: number; nodes: string[] } | undefined };
    answer: { renewed: boolean };
  };
  /** Stop being primary; a named successor alone may take over for a while. */
  "POST /v1/apps/:app_name/db_leases/:lease_name/release": {
    params: { app_name: string; lease_name: string };
    query: Record<string, never>;
    body: { node: string; term: number; successor?: { node: string; for_ms: number } | undefined };
    answer: { ok: boolean };
  };
}

export interface Image {
  name: string;
  digest: string;
  owner: string;
  source: string;
  layers: number;
  bytes: number;
  complete: boolean;
  machines: number;
  created_at: string;
  used_at: string;
}

export interface ImageDetails {
  name: string;
  digest: string;
  owner: string;
  source: string;
  layers: number;
  bytes: number;
  complete: boolean;
  machines: number;
  created_at: string;
  used_at: string;
  architecture: string;
  config: { entrypoint: string[]; cmd: string[]; env: Record<string, string>; user: string; working_dir: string; stop_signal?: string | undefined; healthcheck?: { test: string[]; interval_ms?: number | undefined; timeout_ms?: number | undefined; start_period_ms?: number | undefined } | undefined };
  labels: Record<string, string>;
  exposed_ports: string[];
  layer_list: ({ diff_id: string; bytes: number; entries: number; here: boolean })[];
  machine_ids: string[];
}

export interface Machine {
  id: string;
  name: string;
  state: string;
  region: string;
  instance_id: string;
  version: string;
  private_ip: string;
  image_ref: { registry: string; repository: string; tag?: string | undefined; digest: string; labels?: Record<string, string> | undefined };
  created_at: string;
  updated_at: string;
  cordoned: boolean;
  config: Record<string, unknown>;
  checks: Record<string, { name: string; status: string; output: string; updated_at: string }>;
  events: ({ id: string; type: string; status: string; source: string; timestamp: number; request?: Record<string, unknown> | undefined })[];
  host_status: string;
  waiting?: string | undefined;
  host: string;
  nonce?: string | undefined;
  lease?: { owner: string; description: string; expires_at: number } | undefined;
  warnings?: string[] | undefined;
}

export interface MachineService {
  protocol: "tcp" | "udp";
  internal_port: number;
  concurrency?: { type?: "connections" | "requests" | undefined; soft_limit?: number | undefined; hard_limit?: number | undefined } | undefined;
  ports?: ({ port?: number | undefined; start_port?: number | undefined; end_port?: number | undefined; "end-port"?: number | undefined; handlers?: ("http" | "tcp" | "tls" | "proxy_proto" | "pg_tls")[] | undefined; force_https?: boolean | undefined; http_options?: { compress?: boolean | undefined; h2_backend?: boolean | undefined; idle_timeout?: number | undefined; headers_read_timeout?: number | undefined; routes?: string[] | undefined; replay_cache?: unknown[] | undefined; response?: { headers?: Record<string, string | string[] | boolean | null> | undefined; pristine?: boolean | undefined } | undefined } | undefined; tls_options?: { alpn?: string[] | undefined; default_self_signed?: boolean | undefined; versions?: ("TLSv1.2" | "TLSv1.3")[] | undefined } | undefined; proxy_proto_options?: { version?: "v1" | "v2" | "1" | "2" | "" | undefined } | undefined })[] | undefined;
  autostart?: boolean | undefined;
  autostop?: boolean | "off" | "stop" | "suspend" | undefined;
  min_machines_running?: number | undefined;
  checks?: ({ type?: "tcp" | "http" | undefined; port?: number | undefined; interval?: number | string | undefined; timeout?: number | string | undefined; grace_period?: number | string | undefined; method?: string | undefined; path?: string | undefined; protocol?: "http" | "https" | undefined; tls_server_name?: string | undefined; tls_skip_verify?: boolean | undefined; kind?: "informational" | "readiness" | undefined; headers?: ({ name: string; values: string[] })[] | undefined })[] | undefined;
  force_instance_key?: string | undefined;
  force_instance_description?: string | undefined;
}

export interface MachineConfig {
  image: string;
  auto_destroy?: boolean | undefined;
  checks?: Record<string, { type?: "tcp" | "http" | undefined; port?: number | undefined; interval?: number | string | undefined; timeout?: number | string | undefined; grace_period?: number | string | undefined; method?: string | undefined; path?: string | undefined; protocol?: "http" | "https" | undefined; tls_server_name?: string | undefined; tls_skip_verify?: boolean | undefined; kind?: "informational" | "readiness" | undefined; headers?: ({ name: string; values: string[] })[] | undefined }> | undefined;
  dns?: { nameservers?: string[] | undefined; searches?: string[] | undefined; options?: (string | { name: string; value?: string | undefined })[] | undefined; dns_forward_rules?: unknown[] | undefined; skip_registration?: boolean | undefined; hostname?: string | undefined; hostname_fqdn?: string | undefined } | undefined;
  env?: Record<string, string> | undefined;
  files?: ({ guest_path: string; raw_value?: string | undefined; secret_name?: string | undefined; mode?: number | undefined; image_config?: string | undefined })[] | undefined;
  guest?: { cpu_kind?: "shared" | "performance" | undefined; gpu_kind?: string | undefined; gpus?: number | undefined; host_dedication_id?: string | undefined; kernel_args?: string[] | undefined; cpus?: number | undefined; memory_mb?: number | undefined; max_memory_mb?: number | undefined; required_host_features?: string[] | undefined; persist_rootfs?: "never" | "restart" | "always" | number | undefined } | undefined;
  init?: { exec?: string[] | undefined; entrypoint?: string[] | undefined; cmd?: string[] | undefined; kernel_args?: string[] | undefined; tty?: boolean | undefined; swap_size_mb?: number | undefined } | undefined;
  metadata?: Record<string, string> | undefined;
  metrics?: { port: number; path: string; https?: boolean | undefined; native_histograms?: boolean | undefined } | undefined;
  mounts?: ({ volume?: string | undefined; path: string; name?: string | undefined; extend_threshold_percent?: number | undefined; add_size_gb?: number | undefined; size_gb_limit?: number | undefined; encrypted?: boolean | undefined; add_size_percent?: number | undefined; min_add_size_gb?: number | undefined; size_gb?: number | undefined })[] | undefined;
  processes?: ({ entrypoint?: string[] | undefined; cmd?: string[] | undefined; env?: Record<string, string> | undefined; env_from?: ({ env_var?: string | undefined; field_ref?: "id" | "version" | "app_name" | "private_ip" | "region" | "image" | undefined })[] | undefined; exec?: string[] | undefined; user?: string | undefined; ignore_app_secrets?: boolean | undefined; secrets?: ({ env_var: string; name?: string | undefined })[] | undefined })[] | undefined;
  restart?: { policy: "no" | "on-failure" | "always" | ""; max_retries?: number | undefined } | undefined;
  schedule?: "hourly" | "daily" | "weekly" | "monthly" | undefined;
  services?: MachineService[] | undefined;
  size?: string | undefined;
  sqlite?: { dir: string; backup?: string | undefined; ack?: "none" | "one" | "quorum" | undefined; cluster_size?: number | undefined } | undefined;
  standbys?: string[] | undefined;
  statics?: { guest_path: string; url_prefix: string; tigris_bucket?: string | undefined; index_document?: string | undefined } | ({ guest_path: string; url_prefix: string; tigris_bucket?: string | undefined; index_document?: string | undefined })[] | undefined;
  stop_config?: { signal?: "SIGHUP" | "SIGINT" | "SIGQUIT" | "SIGKILL" | "SIGUSR1" | "SIGUSR2" | "SIGTERM" | undefined; timeout?: number | string | undefined } | undefined;
  containers?: unknown[] | undefined;
  volumes?: unknown[] | undefined;
  rootfs?: { persist?: "never" | "restart" | "always" | number | undefined; size_gb?: number | undefined } | undefined;
  cache_drive?: unknown;
  spot?: unknown;
  disable_machine_autostart?: boolean | undefined;
}

export interface Volume {
  id: string;
  name: string;
  state: string;
  size_gb: number;
  region: string;
  zone: string;
  encrypted: boolean;
  encryption?: string | undefined;
  attached_machine_id: string | null;
  attached_alloc_id: string | null;
  created_at: string;
  blocks: number;
  block_size: number;
  blocks_free: number;
  blocks_avail: number;
  bytes_total: number;
  bytes_used: number;
  fstype: string;
  snapshot_retention: number;
  auto_backup_enabled: boolean;
  needs_restart: boolean;
  host_dedication_key: string;
  host_status: string;
  error?: string | undefined;
  progress?: { done_bytes: number; total_bytes: number } | undefined;
  deleted_at?: string | undefined;
  recoverable_until?: string | undefined;
  warnings?: string[] | undefined;
}

export interface VolumeSnapshot {
  id: string;
  size: number;
  digest: string;
  created_at: string;
  retention_days: number;
  status: string;
  volume_id: string;
  volume_size: number;
  stored_bytes: number;
  expires_at: string;
  kind: string;
  message?: string | undefined;
  progress?: { done_bytes: number; total_bytes: number } | undefined;
}

export interface AccessPolicy {
  allow_all?: boolean | undefined;
  allowed_endpoints?: string[] | undefined;
  blocked_endpoints?: string[] | undefined;
  name_prefix?: string | undefined;
  sprite_labels?: string[] | undefined;
}

export interface Connection {
  id: string;
  provider: string;
  connection_type: string;
  provider_account_id: string;
  provider_account_name: string;
  provider_info: Record<string, unknown>;
  scopes: string;
  token_expires_at?: string | undefined;
  inserted_at: string;
  updated_at: string;
  usage_snippet: string;
  user_id: string;
  access_policy: AccessPolicy;
}
