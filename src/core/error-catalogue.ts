/**
 * The catalogue of API errors. A code is stable: clients branch on it (`status` in the response); the HTTP status only
 * groups codes. docs/errors.md is generated from this table.
 */
export const CATALOGUE = {
  invalid_request: {
    http: 400,
    retryable: false,
    meaning: "The request is invalid; `details` lists every problem with the path of its field.",
  },
  malformed_json: {
    http: 400,
    retryable: false,
    meaning: "The body is not valid JSON, has a duplicate key, or is nested too deeply.",
  },
  malformed_http: {
    http: 400,
    retryable: false,
    meaning: "The request line, target or framing is ambiguous or malformed; the rest was not read.",
  },
  image_not_found: {
    http: 400,
    retryable: false,
    meaning: "The image is neither stored here nor in its registry; the text names registry, repository and tag.",
  },
  image_refused: {
    http: 400,
    retryable: false,
    meaning: "The image cannot be used: access denied, wrong architecture, corrupt, or not safe to unpack.",
  },
  build_refused: {
    http: 400,
    retryable: false,
    meaning: "The image cannot be built: the build context, the Dockerfile or the platform does not allow it.",
  },
  deploy_failed: {
    http: 422,
    retryable: false,
    meaning: "The deploy failed and was rolled back; the text has the reason.",
  },
  git_refused: {
    http: 422,
    retryable: false,
    meaning: "Git is not installed or rejected the request; the text is Git's message.",
  },
  build_files_missing: {
    http: 409,
    retryable: true,
    meaning: "Files of the build context are not stored here; upload them and retry.",
  },
  unauthorized: {
    http: 401,
    retryable: false,
    meaning: "The token is missing, unknown, expired or revoked, or sent with the wrong scheme.",
  },
  forbidden: {
    http: 403,
    retryable: false,
    meaning: "The token is valid but does not allow this; the text names the caveat or rule.",
  },
  not_found: { http: 404, retryable: false, meaning: "The resource does not exist, or this token may not see it." },
  connector_denied: {
    http: 403,
    retryable: false,
    meaning: "The connector's policy denies this; `rule` names the rule.",
  },
  address_refused: {
    http: 403,
    retryable: false,
    meaning: "The connector or registry resolves to a private address that the operator has not allowed.",
  },
  path_not_canonical: {
    http: 400,
    retryable: false,
    meaning: "The path is ambiguous (not canonical), so the gateway did not forward it.",
  },
  method_not_allowed: {
    http: 405,
    retryable: false,
    meaning: "The path exists, but not with this method; the `Allow` header lists the allowed ones.",
  },
  wait_timeout: {
    http: 408,
    retryable: true,
    meaning:
      "The wait timed out: for a machine's state (`current_state` is the state it is in), or for a transaction of a replicated database.",
  },
  request_timeout: { http: 408, retryable: true, meaning: "The request did not arrive completely in time." },
  conflict: {
    http: 409,
    retryable: true,
    meaning: "A concurrent request changed the same resource; read it again and retry.",
  },
  transaction_lost: {
    http: 409,
    retryable: false,
    meaning: "The transaction was lost in a failover: another primary took over without it. Write it again.",
  },
  no_primary: {
    http: 503,
    retryable: true,
    meaning:
      "The replicated database has no primary, and none was elected while the request waited. The request was not executed.",
  },
  outcome_unknown: {
    http: 502,
    retryable: false,
    meaning:
      "The primary was lost while its application handled the request, which may have been executed. With an `Idempotency-Key` the proxy of the replicated database retries it.",
  },
  app_unreachable: {
    http: 502,
    retryable: true,
    meaning:
      "The application behind the proxy of the replicated database does not accept connections. The request was not executed.",
  },
  not_acknowledged: {
    http: 504,
    retryable: false,
    meaning:
      "The application executed the request, but replicas did not acknowledge it in time: it is lost if the primary is lost.",
  },
  lease_held: {
    http: 409,
    retryable: true,
    meaning: "Another caller holds the machine's lease; send its nonce, or wait until it expires.",
  },
  lease_lost: {
    http: 409,
    retryable: false,
    meaning: "The nonce does not match the machine's lease: it expired, was released, or belongs to another caller.",
  },
  version_conflict: {
    http: 409,
    retryable: false,
    meaning: "The machine has another version than the request names; read it again.",
  },
  machine_running: {
    http: 409,
    retryable: false,
    meaning: "The machine is running and the request needs it stopped; stop it, or use force.",
  },
  not_movable: {
    http: 409,
    retryable: false,
    meaning: "The machine cannot move to another host: it mounts a volume, and the hosts share no object store.",
  },
  app_not_empty: {
    http: 409,
    retryable: false,
    meaning: "The app still has machines or volumes; destroy them first, or delete with force.",
  },
  file_denied: {
    http: 403,
    retryable: false,
    meaning: "Sprites: the sprite's file system does not permit this; `code` is that of the system call.",
  },
  file_conflict: {
    http: 409,
    retryable: false,
    meaning: "Sprites: what is at the path does not allow this; `code` is that of the system call.",
  },
  file_failed: {
    http: 422,
    retryable: false,
    meaning: "Sprites: the sprite's file system failed, or is full; `code` is that of the system call.",
  },
  sprite_exists: { http: 409, retryable: false, meaning: "Sprites: the organization has a sprite of this name." },
  org_not_empty: { http: 409, retryable: false, meaning: "The organization still has apps; delete them first." },
  idempotency_in_progress: {
    http: 409,
    retryable: true,
    meaning: "The first request with this Idempotency-Key is still in progress.",
  },
  name_invalid: {
    http: 400,
    retryable: false,
    meaning: "Registry: the repository name is invalid; names are ORGANIZATION/REPOSITORY in lower case.",
  },
  name_unknown: { http: 404, retryable: false, meaning: "Registry: the repository does not exist." },
  blob_unknown: { http: 404, retryable: false, meaning: "Registry: the repository does not have this blob." },
  blob_upload_unknown: {
    http: 404,
    retryable: false,
    meaning: "Registry: the upload does not exist; it was finished, cancelled or removed.",
  },
  manifest_unknown: {
    http: 404,
    retryable: false,
    meaning: "Registry: the repository does not have this manifest or tag.",
  },
  manifest_blob_unknown: {
    http: 404,
    retryable: false,
    meaning: "Registry: the manifest references a blob or a manifest that the repository does not have.",
  },
  manifest_invalid: {
    http: 400,
    retryable: false,
    meaning: "Registry: the manifest is invalid; the text has the reason.",
  },
  digest_invalid: {
    http: 400,
    retryable: false,
    meaning: "Registry: the digest is neither sha256 nor sha512, or does not match the content.",
  },
  range_invalid: {
    http: 416,
    retryable: false,
    meaning: "Registry: the chunk does not begin where the upload ends, or the range is outside the blob.",
  },
  image_in_use: {
    http: 409,
    retryable: false,
    meaning: "Machines boot from the image; destroy or update them first. `machines` lists them.",
  },
  image_elsewhere: {
    http: 503,
    retryable: true,
    meaning: "The image was imported by another process of the platform, which does not respond; the text names it.",
  },
  registry_unreachable: {
    http: 412,
    retryable: true,
    meaning: "The image's registry cannot be reached or returned an error, and the image is not stored here.",
  },
  no_certificate_authority: {
    http: 412,
    retryable: false,
    meaning: "No certificate authority is configured; set `HANGAR_ACME_DIRECTORY`, or upload a certificate.",
  },
  wrong_state: {
    http: 412,
    retryable: false,
    meaning: "The machine's state does not allow this; the text names the state.",
  },
  insufficient_capacity: {
    http: 412,
    retryable: true,
    meaning:
      "No eligible host has enough free CPU or memory; the text says what was requested, what is free, and where it fits.",
  },
  volume_elsewhere: {
    http: 412,
    retryable: false,
    meaning: "The volume is on another host or in another region than the machine; the text names both.",
  },
  volume_in_use: {
    http: 412,
    retryable: false,
    meaning:
      "The volume is mounted by a machine, which the text names; destroy that machine first, or fork the volume.",
  },
  volume_not_ready: {
    http: 412,
    retryable: true,
    meaning: "The volume is still being created, restored or copied, or it is deleted; the text says which.",
  },
  volume_placement_capacity: {
    http: 412,
    retryable: false,
    meaning:
      "Every zone of the region already has a volume of this name, and `require_unique_zone` allows one per zone.",
  },
  encryption_unavailable: {
    http: 412,
    retryable: false,
    meaning:
      "Volume encryption is not available on this host; install what the text names, or pass `encrypted: false`.",
  },
  host_unreachable: {
    http: 412,
    retryable: true,
    meaning: "The machine's host is lost; operations on the machine are refused until it is back.",
  },
  port_unreachable: {
    http: 412,
    retryable: true,
    meaning: "Nothing accepts connections on this port of the machine; the text says what the machine listens on.",
  },
  version_stale: {
    http: 412,
    retryable: false,
    meaning: "The machine has changed since the version that the request names; the request was not applied.",
  },
  payload_too_large: { http: 413, retryable: false, meaning: "The body is larger than this endpoint accepts." },
  uri_too_long: { http: 414, retryable: false, meaning: "The request target is longer than the limit." },
  unsupported_media_type: {
    http: 415,
    retryable: false,
    meaning: "The body's content type is not supported by this endpoint; send application/json.",
  },
  name_taken: { http: 422, retryable: false, meaning: "Another resource has this name." },
  invalid_name: { http: 422, retryable: false, meaning: "The name does not match the naming rules." },
  limit_reached: { http: 422, retryable: false, meaning: "A limit is reached; the text names it." },
  idempotency_mismatch: {
    http: 422,
    retryable: false,
    meaning: "This Idempotency-Key was already used with a different request.",
  },
  rate_limited: {
    http: 429,
    retryable: true,
    meaning: "Too many requests, or too many open at once; the text names the limit, `Retry-After` says when to retry.",
  },
  sprite_creation_rate_limited: {
    http: 429,
    retryable: true,
    meaning: "Sprites: the organization has created many lately; `retry_after_seconds` says when to retry.",
  },
  concurrent_sprite_limit_exceeded: {
    http: 429,
    retryable: true,
    meaning:
      "Sprites: the organization has as many as it may have; delete some. `limit` and `current_count` are the numbers.",
  },
  headers_too_large: { http: 431, retryable: false, meaning: "The request's headers are larger than the limit." },
  query_invalid: {
    http: 400,
    retryable: false,
    meaning: "The query has a syntax error; the text points at it.",
  },
  query_failed: {
    http: 422,
    retryable: false,
    meaning: "The query cannot be evaluated: it does not fit the data, or reaches a limit that the text names.",
  },
  query_canceled: { http: 499, retryable: true, meaning: "The client disconnected before the query was answered." },
  query_timeout: { http: 503, retryable: true, meaning: "The query took longer than its limit." },
  internal: {
    http: 500,
    retryable: false,
    meaning: "An internal error. The log has the details under the request id.",
  },
  upstream_failed: {
    http: 502,
    retryable: true,
    meaning: "The connector's provider could not be reached, or closed the connection before it responded.",
  },
  connector_unusable: {
    http: 502,
    retryable: false,
    meaning: "The connector's credential is no longer valid and could not be renewed; connect it again.",
  },
  upstream_timeout: { http: 504, retryable: true, meaning: "The connector's provider did not respond in time." },
  upgrade_required: {
    http: 426,
    retryable: false,
    meaning: "This endpoint is a WebSocket; send an Upgrade request.",
  },
  storage_full: {
    http: 503,
    retryable: true,
    meaning: "The disk is full. The request was not applied; reads still work.",
  },
  storage_failed: {
    http: 503,
    retryable: true,
    meaning:
      "The database cannot be reached or failed. Unless the text says that nothing was changed, it is unknown whether the write happened.",
  },
  overloaded: {
    http: 503,
    retryable: true,
    meaning: "A queue is full; the text names its limit. The request was not applied.",
  },
  not_ready: {
    http: 503,
    retryable: true,
    meaning: "A part of the platform is not ready; `reasons` says which, and why.",
  },
  shutting_down: { http: 503, retryable: true, meaning: "The platform is shutting down; retry in a moment." },
} as const satisfies Record<string, { http: number; retryable: boolean; meaning: string }>;

export type ErrorCode = keyof typeof CATALOGUE;
