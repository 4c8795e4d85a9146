import { ApiError, StoreError } from "#core/errors.ts";
import { LIMITS } from "#core/limits.ts";
import { BatchError } from "./batch.ts";

/** A call exceeded its deadline. */
export class DeadlineError extends Error {
  override readonly name = "DeadlineError";
  /** `connection`: no response. `pool`: no free connection. */
  readonly waited_for: "connection" | "pool";

  constructor(waited_for: DeadlineError["waited_for"], ms: number) {
    super(
      waited_for === "pool" ? `no connection was free within ${ms} ms` : `the database did not answer within ${ms} ms`,
    );
    this.waited_for = waited_for;
  }
}

/** No host of the URL is usable. */
export class NoHostError extends Error {
  override readonly name = "NoHostError";
}

/**
 * Classifies an error by what it means for the failed call.
 *
 * - again: it lost a race, or the connection closed before it had an effect
 * - elsewhere: this server no longer accepts writes, another one may
 * - pooler: a pooler assigned another session's connection, without the prepared statements
 * - crowded: the server has no free connection
 * - slow: the server gave up by one of its timeouts
 * - full: its disk is full
 * - bug: a bug in this program
 */
export type Trouble = "again" | "elsewhere" | "pooler" | "crowded" | "slow" | "full" | "bug";

const BY_CODE: readonly (readonly [RegExp, Trouble])[] = [
  // Serialization failure, deadlock.
  [/^40(001|P01)$/, "again"],
  [/^25006$/, "elsewhere"],
  [/^(26000|42P05)$/, "pooler"],
  [/^53(300|400)$/, "crowded"],
  [/^53100$/, "full"],
  // lock_timeout, statement_timeout, idle_in_transaction_session_timeout, transaction_timeout.
  [/^(55P03|57014|25P03|25P04)$/, "slow"],
  // The server shuts down or starts (57P0x), or the connection failed (08xxx, system errors).
  [/^57P0|^08|^E[A-Z_]+$/, "again"],
];

/** PgBouncer reports these with its generic protocol error code. */
const CROWDED =
  /too many (clients|connections)|no more connections allowed|query_wait_timeout|remaining connection slots/i;

export function troubleOf(thrown: unknown): Trouble {
  if (thrown instanceof ApiError) throw thrown;
  const error = thrown instanceof BatchError ? thrown.cause : thrown;
  if (error instanceof DeadlineError) return error.waited_for === "pool" ? "crowded" : "again";
  if (error instanceof NoHostError) return "again";
  const { code, message = "" } = (error ?? {}) as { code?: unknown; message?: string };
  if (CROWDED.test(message)) return "crowded";
  if (typeof code === "string") return BY_CODE.find(([pattern]) => pattern.test(code))?.[1] ?? "bug";
  return error instanceof Error && /terminated|timeout|not queryable/i.test(message) ? "again" : "bug";
}

/** Whether a batch of `count` statements with this error had no effect. */
export function isUndone(thrown: unknown, count: number): boolean {
  if (!(thrown instanceof BatchError)) return true;
  if (thrown.how !== "refused") return thrown.how === "unsent";
  // The commit follows the last statement: an earlier error precedes it. A later one that ends the connection may
  // follow the commit; any other is the commit's own.
  return thrown.completed < count || !String((thrown.cause as { code?: unknown }).code).startsWith("57P0");
}

/** The error for the caller. */
export function storeError(thrown: unknown, trouble: Trouble): unknown {
  const cause = thrown instanceof BatchError ? thrown.cause : thrown;
  const said = cause instanceof Error ? cause.message : String(cause);
  if (trouble === "bug") return cause;
  if (trouble === "full")
    return new StoreError("storage_full", "the database's disk is full; nothing was changed", {
      cause,
      retry_after_s: 5,
    });
  if (trouble === "crowded") return crowded(cause, said);
  if (trouble === "slow")
    return new StoreError(
      "overloaded",
      `the database gave up after its time (limits postgres_lock_ms ${LIMITS.postgres_lock_ms}, postgres_statement_ms ${LIMITS.postgres_statement_ms}); nothing was changed: ${said}`,
      { cause, retry_after_s: 2 },
    );
  return new StoreError("storage_failed", `the database cannot be reached: ${said}`, { cause, retry_after_s: 2 });
}

function crowded(cause: unknown, said: string): StoreError {
  const ours = cause instanceof DeadlineError;
  return new StoreError(
    "overloaded",
    ours
      ? `all connections of this process to the database are in use (setting database_connections); nothing was changed: ${said}`
      : `the database accepts no further connection; nothing was changed: ${said}`,
    {
      cause,
      retry_after_s: 2,
      hint: ours
        ? "raise HANGAR_DATABASE_CONNECTIONS, as far as max_connections of the database allows"
        : "raise max_connections of the database, or lower HANGAR_DATABASE_CONNECTIONS of every process (docs/operations.md)",
    },
  );
}

export function unknownOutcome(thrown: unknown): StoreError {
  const cause = thrown instanceof BatchError ? thrown.cause : thrown;
  return new StoreError(
    "storage_failed",
    "the connection to the database was lost during the commit; whether it happened is not known",
    {
      cause,
      retry_after_s: 2,
      hint: "repeat the request with the same Idempotency-Key, or check whether it took effect",
    },
  );
}
