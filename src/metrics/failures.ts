import type { ErrorCode } from "#core/error-catalogue.ts";
import { ApiError } from "#core/errors.ts";

/** Error codes of the query language's errors. */
const CODES: Record<string, ErrorCode> = {
  bad_data: "query_invalid",
  execution: "query_failed",
  timeout: "query_timeout",
  canceled: "query_canceled",
};

/** Runs a query; an error of the language becomes an API error. */
export async function answering<T>(work: () => Promise<T>): Promise<T> {
  try {
    return await work();
  } catch (thrown) {
    throw translated(thrown);
  }
}

/** Errors cross threads as plain data, so they are identified by name. */
function translated(thrown: unknown): unknown {
  if (!(thrown instanceof Error)) return thrown;
  if (thrown.name === "AbortError") return new ApiError("query_canceled", "the client disconnected", { cause: thrown });
  const { kind } = ("details" in thrown ? (thrown.details ?? {}) : {}) as { kind?: string };
  const code = kind === undefined ? undefined : CODES[kind];
  return code ? new ApiError(code, thrown.message, { cause: thrown }) : thrown;
}
