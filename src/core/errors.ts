import { CATALOGUE, type ErrorCode } from "./error-catalogue.ts";

/** One validation problem of a request: the field, what is wrong, and what is allowed. */
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
  /** Further fields of the response body, for programs. */
  facts?: Record<string, unknown>;
  headers?: Record<string, string>;
  cause?: unknown;
}

/** An error that is reported to the caller. Anything else that is thrown is a bug and becomes `internal`. */
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

/** The database failed. The request itself may be valid, so it may be retried. */
export class StoreError extends ApiError {}

/** The error as JSON in the response body. */
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
