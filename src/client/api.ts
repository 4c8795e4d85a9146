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
    answer: { tokens: ({ token_id: string; kind: string; name: string; org_slug: string | null; organization: string | null; rights: string[] })[] };
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
  /** Where machines can run. */
  "GET /v1/platform/regions": {
    params: Record<string, never>;
    query: Record<string, never>;
    body: undefined;
    answer: { nearest: string; regions: ({ code: string; name: string; latitude: number; longitude: number; gateway_available: boolean; requires_paid_plan: boolean; deprecated: boolean; capacity: number })[] };
  };
  /** The hosts, their size and what is taken. */
  "GET /v1/platform/hosts": {
    params: Record<string, never>;
    query: Record<string, never>;
    body: undefined;
    answer: { hosts: ({ id: string; region: string; zone: string; cpus: number; memory_mb: number; state: string; used_cpus: number; used_memory_mb: number })[] };
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
  /** List an app's machines. */
  "GET /v1/apps/:app_name/machines": {
    params: { app_name: string };
    query: { include_deleted?: boolean | undefined; region?: string | undefined; state?: string[] | undefined; summary?: boolean | undefined; include_leases?: boolean | undefined };
    body: undefined;
    answer: ({ id: string; name: string; state: string; region: string; instance_id: string; version: string; private_ip: string; image_ref: { registry: string; repository: string; tag?: string | undefined; digest: string; labels?: Record<string, string> | undefined }; created_at: string; updated_at: string; cordoned: boolean; config?: Record<string, unknown> | undefined; checks?: Record<string, { name: string; status: string; output: string; updated_at: string }> | undefined; events?: ({ id: string; type: string; status: string; source: string; timestamp: number; request?: Record<string, unknown> | undefined })[] | undefined; host_status?: string | undefined; host?: string | undefined; nonce?: string | undefined; lease?: { owner: string; description: string; expires_at: number } | undefined; warnings?: string[] | undefined })[];
  };
  /** List an organization's machines in pages, the one changed longest ago first. */
  "GET /v1/orgs/:org_slug/machines": {
    params: { org_slug: string };
    query: { include_deleted?: boolean | undefined; region?: string | undefined; state?: string[] | undefined; summary?: boolean | undefined; cursor?: string | undefined; updated_after?: string | undefined; limit?: number | undefined };
    body: undefined;
    answer: { machines: ({ id: string; name: string; app_name: string; state: string; region: string; version: string; private_ip: string; config: Record<string, unknown>; created_at: string; updated_at: string })[]; next_cursor?: string | undefined; last_machine_id?: string | undefined; last_updated_at?: string | undefined; error_regions: string[] };
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
  /** Destroy a machine for good. */
  "DELETE /v1/apps/:app_name/machines/:machine_id": {
    params: { app_name: string; machine_id: string };
    query: { force?: boolean | undefined; kill?: boolean | undefined };
    body: undefined;
    answer: { ok: boolean };
  };
  /** The configs a machine has had, newest first. */
  "GET /v1/apps/:app_name/machines/:machine_id/versions": {
    params: { app_name: string; machine_id: string };
    query: Record<string, never>;
    body: undefined;
    answer: ({ version: string; created_at: string; user_config: Record<string, unknown> })[];
  };
  /** Start a machine; one that runs is left alone. */
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
    query: Record<string, never>;
    body: undefined;
    answer: ({ pid: number; stime: number; rtime: number; command: string; directory: string; cpu: number; rss: number; listen_sockets: ({ proto: string; address: string })[] })[];
  };
  /** The newest lines a machine wrote, oldest first. */
  "GET /v1/apps/:app_name/machines/:machine_id/logs": {
    params: { app_name: string; machine_id: string };
    query: { tail?: number | undefined };
    body: undefined;
    answer: { lines: ({ timestamp: number; stream: string; message: string })[] };
  };
  /** Take a machine's lease, or refresh one's own. */
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
  /** Give a machine's lease back. */
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
  /** What happened to a machine, newest first. */
  "GET /v1/apps/:app_name/machines/:machine_id/events": {
    params: { app_name: string; machine_id: string };
    query: { limit?: number | undefined; from_event_id?: string | undefined };
    body: undefined;
    answer: ({ id: string; type: string; status: string; source: string; timestamp: number; request?: Record<string, unknown> | undefined })[];
  };
  /** What happens to an app's machines, as it happens. */
  "GET /v1/apps/:app_name/events": {
    params: { app_name: string };
    query: { cursor?: number | undefined; limit?: number | undefined };
    body: undefined;
    answer: { events: ({ id: string; type: string; status: string; source: string; timestamp: number; request?: Record<string, unknown> | undefined; cursor: number; app_name: string; machine_id: string; machine_name: string; instance_id: string })[]; cursor: number };
  };
  /** What happens to an organization's machines, as it happens. */
  "GET /v1/orgs/:org_slug/events": {
    params: { org_slug: string };
    query: { cursor?: number | undefined; limit?: number | undefined };
    body: undefined;
    answer: { events: ({ id: string; type: string; status: string; source: string; timestamp: number; request?: Record<string, unknown> | undefined; cursor: number; app_name: string; machine_id: string; machine_name: string; instance_id: string })[]; cursor: number };
  };
  /** Send machine events to an address, signed, until they arrive. */
  "POST /v1/orgs/:org_slug/webhooks": {
    params: { org_slug: string };
    query: Record<string, never>;
    body: { url: string; app_name?: string | undefined };
    answer: { id: string; url: string; app_name?: string | undefined; created_at: string; cursor: number; failures: number; last_error?: string | undefined; secret: string };
  };
  /** An organization's webhooks, and how far each got. */
  "GET /v1/orgs/:org_slug/webhooks": {
    params: { org_slug: string };
    query: Record<string, never>;
    body: undefined;
    answer: { webhooks: ({ id: string; url: string; app_name?: string | undefined; created_at: string; cursor: number; failures: number; last_error?: string | undefined })[] };
  };
  /** Send nothing there any more. */
  "DELETE /v1/orgs/:org_slug/webhooks/:webhook_id": {
    params: { org_slug: string; webhook_id: string };
    query: Record<string, never>;
    body: undefined;
    answer: undefined;
  };
  /** Evaluate a query at one time. */
  "GET /prometheus/:org_slug/api/v1/query": {
    params: { org_slug: string };
    query: { query: string; time?: string | undefined; step?: string | undefined; timeout?: string | undefined; dialect?: "metricsql" | "promql" | undefined; nocache?: boolean | undefined };
    body: undefined;
    answer: string;
  };
  /** Evaluate a query at one time. */
  "POST /prometheus/:org_slug/api/v1/query": {
    params: { org_slug: string };
    query: { query: string; time?: string | undefined; step?: string | undefined; timeout?: string | undefined; dialect?: "metricsql" | "promql" | undefined; nocache?: boolean | undefined };
    body: undefined;
    answer: string;
  };
  /** Evaluate a query over a range of time. */
  "GET /prometheus/:org_slug/api/v1/query_range": {
    params: { org_slug: string };
    query: { query: string; start: string; end: string; step: string; timeout?: string | undefined; dialect?: "metricsql" | "promql" | undefined; nocache?: boolean | undefined };
    body: undefined;
    answer: string;
  };
  /** Evaluate a query over a range of time. */
  "POST /prometheus/:org_slug/api/v1/query_range": {
    params: { org_slug: string };
    query: { query: string; start: string; end: string; step: string; timeout?: string | undefined; dialect?: "metricsql" | "promql" | undefined; nocache?: boolean | undefined };
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
  /** What is stored: series by metric, by label, by value. */
  "GET /prometheus/:org_slug/api/v1/status/tsdb": {
    params: { org_slug: string };
    query: { topN?: number | undefined; focusLabel?: string | undefined; "match[]"?: string[] | undefined };
    body: undefined;
    answer: string;
  };
  /** What Grafana asks to learn which features there are. */
  "GET /prometheus/:org_slug/api/v1/status/buildinfo": {
    params: { org_slug: string };
    query: Record<string, never>;
    body: undefined;
    answer: string;
  };
  /** Recording and alerting rules: there are none. */
  "GET /prometheus/:org_slug/api/v1/rules": {
    params: { org_slug: string };
    query: Record<string, never>;
    body: undefined;
    answer: string;
  };
  /** Alerts: there are none. */
  "GET /prometheus/:org_slug/api/v1/alerts": {
    params: { org_slug: string };
    query: Record<string, never>;
    body: undefined;
    answer: string;
  };
  /** Exemplars: there are none. */
  "GET /prometheus/:org_slug/api/v1/query_exemplars": {
    params: { org_slug: string };
    query: Record<string, never>;
    body: undefined;
    answer: string;
  };
  /** Exemplars: there are none. */
  "POST /prometheus/:org_slug/api/v1/query_exemplars": {
    params: { org_slug: string };
    query: Record<string, never>;
    body: undefined;
    answer: string;
  };
  /** What senders said about their metrics. */
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
  /** Machines that are asked for metrics of their own, and how that goes. */
  "GET /prometheus/:org_slug/api/v1/targets": {
    params: { org_slug: string };
    query: Record<string, never>;
    body: undefined;
    answer: string;
  };
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
  host: string;
  nonce?: string | undefined;
  lease?: { owner: string; description: string; expires_at: number } | undefined;
  warnings?: string[] | undefined;
}

export interface MachineService {
  protocol: "tcp" | "udp";
  internal_port: number;
  concurrency?: { type?: "connections" | "requests" | undefined; soft_limit?: number | undefined; hard_limit?: number | undefined } | undefined;
  ports?: ({ port?: number | undefined; start_port?: number | undefined; end_port?: number | undefined; "end-port"?: number | undefined; handlers?: ("http" | "tcp" | "tls" | "proxy_proto" | "pg_tls")[] | undefined; force_https?: boolean | undefined; http_options?: { compress?: boolean | undefined; h2_backend?: boolean | undefined; idle_timeout?: number | undefined; headers_read_timeout?: number | undefined; replay_cache?: unknown[] | undefined; response?: { headers?: Record<string, string | string[] | boolean | null> | undefined; pristine?: boolean | undefined } | undefined } | undefined; tls_options?: { alpn?: string[] | undefined; default_self_signed?: boolean | undefined; versions?: string[] | undefined } | undefined; proxy_proto_options?: { version?: string | undefined } | undefined })[] | undefined;
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
  dns?: { nameservers?: string[] | undefined; searches?: string[] | undefined; options?: unknown[] | undefined; dns_forward_rules?: unknown[] | undefined; skip_registration?: boolean | undefined; hostname?: string | undefined; hostname_fqdn?: string | undefined } | undefined;
  env?: Record<string, string> | undefined;
  files?: ({ guest_path: string; raw_value?: string | undefined; secret_name?: string | undefined; mode?: number | undefined; image_config?: string | undefined })[] | undefined;
  guest?: { cpu_kind?: string | undefined; gpu_kind?: string | undefined; host_dedication_id?: string | undefined; cpus?: number | undefined; gpus?: number | undefined; memory_mb?: number | undefined; max_memory_mb?: number | undefined; required_host_features?: string[] | undefined; kernel_args?: string[] | undefined; persist_rootfs?: "never" | "restart" | "always" | number | undefined } | undefined;
  init?: { exec?: string[] | undefined; entrypoint?: string[] | undefined; cmd?: string[] | undefined; kernel_args?: string[] | undefined; tty?: boolean | undefined; swap_size_mb?: number | undefined } | undefined;
  metadata?: Record<string, string> | undefined;
  metrics?: { port: number; path: string; https?: boolean | undefined } | undefined;
  mounts?: ({ volume?: string | undefined; path: string; name?: string | undefined; extend_threshold_percent?: number | undefined; add_size_gb?: number | undefined; size_gb_limit?: number | undefined; encrypted?: boolean | undefined; add_size_percent?: number | undefined; min_add_size_gb?: number | undefined; size_gb?: number | undefined })[] | undefined;
  processes?: ({ entrypoint?: string[] | undefined; cmd?: string[] | undefined; env?: Record<string, string> | undefined; env_from?: ({ env_var?: string | undefined; field_ref?: string | undefined })[] | undefined; exec?: string[] | undefined; user?: string | undefined; ignore_app_secrets?: boolean | undefined; secrets?: ({ env_var: string; name?: string | undefined })[] | undefined })[] | undefined;
  restart?: { policy: "no" | "on-failure" | "always" | ""; max_retries?: number | undefined } | undefined;
  schedule?: "hourly" | "daily" | "weekly" | "monthly" | undefined;
  services?: MachineService[] | undefined;
  size?: string | undefined;
  standbys?: string[] | undefined;
  statics?: { guest_path: string; url_prefix: string; tigris_bucket?: string | undefined; index_document?: string | undefined } | ({ guest_path: string; url_prefix: string; tigris_bucket?: string | undefined; index_document?: string | undefined })[] | undefined;
  stop_config?: { signal?: "SIGHUP" | "SIGINT" | "SIGQUIT" | "SIGKILL" | "SIGUSR1" | "SIGUSR2" | "SIGTERM" | undefined; timeout?: number | string | undefined } | undefined;
  containers?: unknown[] | undefined;
  volumes?: unknown[] | undefined;
  rootfs?: unknown;
  cache_drive?: unknown;
  spot?: unknown;
  disable_machine_autostart?: boolean | undefined;
}
