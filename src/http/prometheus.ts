import type { ErrorBody } from "#core/errors.ts";

/** The error types of Prometheus' API, by HTTP status. */
const TYPES: Record<number, string> = {
  400: "bad_data",
  401: "unauthorized",
  403: "forbidden",
  404: "not_found",
  422: "execution",
  429: "unavailable",
  499: "canceled",
  503: "unavailable",
};

/** The error format of Prometheus' clients, with the platform's own fields added. */
export function prometheusError({ error, status, ...rest }: ErrorBody, http: number): object {
  const errorType = status === "query_timeout" ? "timeout" : (TYPES[http] ?? (http < 500 ? "bad_data" : "internal"));
  return { status: "error", errorType, error, code: status, ...rest };
}

export const PROMETHEUS_ERROR_SCHEMA = {
  type: "object",
  required: ["status", "errorType", "error"],
  properties: {
    status: { type: "string", const: "error" },
    errorType: { type: "string" },
    error: { type: "string" },
    code: { type: "string", description: "The stable code, as in the other parts' `status`." },
    request_id: { type: "string" },
  },
} as const;
