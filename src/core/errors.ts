/**
 * The one list of what can go wrong for a caller. A code is stable: clients branch on it (`status` in the
 * answer), the HTTP status only groups codes. docs/errors.md is generated from this table.
 */
export const CATALOGUE = {
  invalid_request: {
    http: 400,
    retryable: false,
    meaning: "The request is not valid; `details` lists every problem with its place.",
  },
  malformed_json: {
    http: 400,
    retryable: false,
    meaning: "The body is not JSON, names a key twice, or is nested too deeply.",
  },
  malformed_http: {
    http: 400,
    retryable: false,
    meaning: "The request's framing or target is ambiguous, so it was not read further.",
  },
  image_not_found: {
    http: 400,
    retryable: false,
    meaning: "There is no such image, here or in its registry; the text names registry, repository and tag.",
  },
  image_refused: {
    http: 400,
    retryable: false,
    meaning: "The image cannot be used: no right to it, not for this kind of machine, damaged, or not safe to unpack.",
  },
  unauthorized: {
    http: 401,
    retryable: false,
    meaning: "No token, an unknown, expired or revoked one, or the wrong scheme for its kind.",
  },
  forbidden: {
    http: 403,
    retryable: false,
    meaning: "The token is good but does not allow this; the text names what refused.",
  },
  not_found: { http: 404, retryable: false, meaning: "There is no such thing, or none that this token may see." },
  connector_denied: {
    http: 403,
    retryable: false,
    meaning: "The connector's policy does not allow this; `rule` names the rule that decided.",
  },
  address_refused: {
    http: 403,
    retryable: false,
    meaning: "The connector or registry leads to an address that is not public, and the operator has not allowed that.",
  },
  path_not_canonical: {
    http: 400,
    retryable: false,
    meaning: "The provider's path can be read in more than one way, so it was not passed on.",
  },
  method_not_allowed: {
    http: 405,
    retryable: false,
    meaning: "The path exists, but not with this method; `Allow` lists the ones it has.",
  },
  wait_timeout: {
    http: 408,
    retryable: true,
    meaning:
      "What was waited for did not come in time: a machine's state (the text and `current_state` say where it is), or a transaction of a replicated database.",
  },
  request_timeout: { http: 408, retryable: true, meaning: "The request did not arrive completely in time." },
  conflict: {
    http: 409,
    retryable: true,
    meaning: "Someone else changed the same thing at the same moment; read it again.",
  },
  transaction_lost: {
    http: 409,
    retryable: false,
    meaning:
      "The transaction is not part of the replicated database any more: another primary took over without it. Write it again.",
  },
  no_primary: {
    http: 503,
    retryable: true,
    meaning:
      "No node of the replicated database is primary, and none was elected while the request waited. Nothing was done.",
  },
  outcome_unknown: {
    http: 502,
    retryable: false,
    meaning:
      "The primary was lost while its application worked on the request, which may have been done. With an `Idempotency-Key` the proxy of the replicated database repeats it.",
  },
  app_unreachable: {
    http: 502,
    retryable: true,
    meaning:
      "The application behind the proxy of the replicated database does not accept connections. Nothing was done.",
  },
  not_acknowledged: {
    http: 504,
    retryable: false,
    meaning:
      "The application has done it, but replicas did not have it on disk in time: it is safe only if the primary survives.",
  },
  lease_held: {
    http: 409,
    retryable: true,
    meaning: "The machine is leased; send the lease's nonce, wait for its end, or ask its holder.",
  },
  lease_lost: {
    http: 409,
    retryable: false,
    meaning: "The nonce is not that of the machine's lease: it ran out, was released, or is someone else's.",
  },
  version_conflict: {
    http: 409,
    retryable: false,
    meaning: "The machine is no longer the version the request speaks of; read it again.",
  },
  machine_running: {
    http: 409,
    retryable: false,
    meaning: "The machine is running and the request needs it stopped; stop it, or use force.",
  },
  not_movable: {
    http: 409,
    retryable: false,
    meaning: "The machine cannot go to another host: it mounts a volume, and the hosts share no object store.",
  },
  app_not_empty: {
    http: 409,
    retryable: false,
    meaning: "The app still has machines or volumes; destroy them first, or delete with force.",
  },
  org_not_empty: { http: 409, retryable: false, meaning: "The organization still has apps; delete them first." },
  idempotency_in_progress: {
    http: 409,
    retryable: true,
    meaning: "The first request with this Idempotency-Key is still being worked on elsewhere.",
  },
  name_invalid: {
    http: 400,
    retryable: false,
    meaning: "Registry: this is not the name of a repository; names are ORGANIZATION/REPOSITORY in lower case.",
  },
  name_unknown: { http: 404, retryable: false, meaning: "Registry: there is no such repository." },
  blob_unknown: { http: 404, retryable: false, meaning: "Registry: the repository does not have this blob." },
  blob_upload_unknown: {
    http: 404,
    retryable: false,
    meaning: "Registry: there is no such upload; it was finished, cancelled or removed.",
  },
  manifest_unknown: {
    http: 404,
    retryable: false,
    meaning: "Registry: the repository does not have this manifest or tag.",
  },
  manifest_blob_unknown: {
    http: 404,
    retryable: false,
    meaning: "Registry: the manifest names a blob or a manifest that the repository does not have.",
  },
  manifest_invalid: {
    http: 400,
    retryable: false,
    meaning: "Registry: the manifest cannot be used; the text says why.",
  },
  digest_invalid: {
    http: 400,
    retryable: false,
    meaning: "Registry: the digest is neither sha256 nor sha512, or not that of what was sent.",
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
    meaning: "The image was imported by another process of the platform, which does not answer; the text names it.",
  },
  registry_unreachable: {
    http: 412,
    retryable: true,
    meaning: "The image's registry does not answer as it should, and the image is not here.",
  },
  no_certificate_authority: {
    http: 412,
    retryable: false,
    meaning: "The platform has no certificate authority to ask; set `HANGAR_ACME_DIRECTORY`, or bring a certificate.",
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
      "No host that may take the machine has room; the text says what was asked, what is free, and where it fits.",
  },
  volume_elsewhere: {
    http: 412,
    retryable: false,
    meaning: "The volume is on another host or in another region than the machine can be; the text names both.",
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
    meaning: "The volume is still being made, restored or copied, or it is deleted; the text says which.",
  },
  volume_placement_capacity: {
    http: 412,
    retryable: false,
    meaning:
      "Every zone of the region has a volume of this name already, and `require_unique_zone` does not allow a second.",
  },
  encryption_unavailable: {
    http: 412,
    retryable: false,
    meaning: "No way to encrypt a volume works on this box; the text says what to install, or pass `encrypted: false`.",
  },
  host_unreachable: {
    http: 412,
    retryable: true,
    meaning: "The host of the machine has failed; nothing can be done there until it is back.",
  },
  version_stale: {
    http: 412,
    retryable: false,
    meaning: "The machine changed since the version the request names; nothing was changed.",
  },
  payload_too_large: { http: 413, retryable: false, meaning: "The body is larger than this endpoint accepts." },
  uri_too_long: { http: 414, retryable: false, meaning: "The request target is longer than the limit." },
  unsupported_media_type: {
    http: 415,
    retryable: false,
    meaning: "The body is of a kind this endpoint does not read; send application/json.",
  },
  name_taken: { http: 422, retryable: false, meaning: "Another resource has this name." },
  invalid_name: { http: 422, retryable: false, meaning: "The name does not follow the rule for names." },
  limit_reached: { http: 422, retryable: false, meaning: "A named limit does not allow one more." },
  idempotency_mismatch: {
    http: 422,
    retryable: false,
    meaning: "This Idempotency-Key was used before with another request.",
  },
  rate_limited: {
    http: 429,
    retryable: true,
    meaning:
      "Too many requests, or too many open at once; the text names the bound, `Retry-After` says when to come back.",
  },
  headers_too_large: { http: 431, retryable: false, meaning: "The request's headers are larger than the limit." },
  query_invalid: {
    http: 400,
    retryable: false,
    meaning: "The query cannot be read; the text points at the place.",
  },
  query_failed: {
    http: 422,
    retryable: false,
    meaning: "The query cannot be answered: it does not fit the data, or meets a named limit.",
  },
  query_canceled: { http: 499, retryable: true, meaning: "The caller left before the query was answered." },
  query_timeout: { http: 503, retryable: true, meaning: "The query took longer than its limit." },
  internal: {
    http: 500,
    retryable: false,
    meaning: "A mistake of ours. The log has the details under the request id.",
  },
  upstream_failed: {
    http: 502,
    retryable: true,
    meaning: "The connector's provider could not be reached, or broke off before it answered.",
  },
  connector_unusable: {
    http: 502,
    retryable: false,
    meaning: "The connector's credential is no longer good and could not be renewed; connect it again.",
  },
  upstream_timeout: { http: 504, retryable: true, meaning: "The connector's provider did not answer in time." },
  upgrade_required: {
    http: 426,
    retryable: false,
    meaning: "This is no page to read but a line to speak on: ask for it over WebSocket.",
  },
  storage_full: { http: 503, retryable: true, meaning: "The disk is full. Nothing was changed; reads still work." },
  storage_failed: {
    http: 503,
    retryable: true,
    meaning: "The store cannot be reached or failed; the outcome is not known to have happened.",
  },
  overloaded: { http: 503, retryable: true, meaning: "A queue with a named limit is full; nothing was changed." },
  not_ready: {
    http: 503,
    retryable: true,
    meaning: "A part of the platform does not work at the moment; `reasons` says which, and why.",
  },
  shutting_down: { http: 503, retryable: true, meaning: "The platform is stopping; ask again in a moment." },
} as const satisfies Record<string, { http: number; retryable: boolean; meaning: string }>;

export type ErrorCode = keyof typeof CATALOGUE;

/** One thing wrong with a request: where, what, and what would be right. */
export interface Problem {
  /** Path of the field, for example `body.config.guest.memory_mb` or `query.timeout`. */
  path: string;
  problem: string;
  allowed?: string;
}

export interface ErrorExtras {
  details?: Problem[];
  /** What to do next: a command, a field, a setting. */
  hint?: string;
  retry_after_s?: number;
  /** Further fields of the answer, by name: what a program needs beside the text. */
  facts?: Record<string, unknown>;
  headers?: Record<string, string>;
  cause?: unknown;
}

/** A mistake of the caller's or the world's, told in words. Anything else that is thrown is a bug of ours. */
export class ApiError extends Error {
  override readonly name = "ApiError";
  readonly code: ErrorCode;
  readonly extras: ErrorExtras;

  constructor(code: ErrorCode, message: string, extras: ErrorExtras = {}) {
    super(message, extras.cause === undefined ? undefined : { cause: extras.cause });
    this.code = code;
    this.extras = extras;
  }

  get http(): number {
    return CATALOGUE[this.code].http;
  }
}

/** The store itself could not do it. That says nothing about what was asked for: it may be tried again. */
export class StoreError extends ApiError {}

/** The error as it goes over the wire. */
export interface ErrorBody {
  error: string;
  status: ErrorCode;
  retryable: boolean;
  request_id: string;
  hint?: string;
  details?: Problem[];
  [fact: string]: unknown;
}

export function errorBody(error: ApiError, request_id: string): ErrorBody {
  const { hint, details, facts } = error.extras;
  return {
    ...facts,
    error: error.message,
    status: error.code,
    retryable: CATALOGUE[error.code].retryable,
    request_id,
    ...(hint === undefined ? {} : { hint }),
    ...(details === undefined ? {} : { details }),
  };
}

export function fail(code: ErrorCode, message: string, extras?: ErrorExtras): never {
  throw new ApiError(code, message, extras);
}
