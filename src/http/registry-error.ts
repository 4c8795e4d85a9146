import type { ErrorBody } from "#core/errors.ts";

/** Codes of the OCI distribution API that differ from the platform's codes in capital letters. */
const CODES: Record<string, string> = {
  invalid_request: "UNSUPPORTED",
  forbidden: "DENIED",
  image_in_use: "DENIED",
  limit_reached: "DENIED",
  not_found: "NAME_UNKNOWN",
  method_not_allowed: "UNSUPPORTED",
  range_invalid: "BLOB_UPLOAD_INVALID",
  payload_too_large: "SIZE_INVALID",
  rate_limited: "TOOMANYREQUESTS",
};

/** The error format of registry clients. They show the message, so it includes the hint. */
export function registryError({ error, status, hint, ...detail }: ErrorBody): object {
  const message = hint === undefined ? error : `${error}; ${hint}`;
  return { errors: [{ code: CODES[status] ?? status.toUpperCase(), message, detail }] };
}

export const REGISTRY_ERROR_SCHEMA = {
  type: "object",
  required: ["errors"],
  properties: {
    errors: {
      type: "array",
      items: {
        type: "object",
        required: ["code", "message"],
        properties: { code: { type: "string" }, message: { type: "string" }, detail: { type: "object" } },
      },
    },
  },
} as const;
