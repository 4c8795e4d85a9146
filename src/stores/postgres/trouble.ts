import { ApiError, StoreError } from "#core/errors.ts";
import { LIMITS } from "#core/limits.ts";
import { BatchError } from "./batch.ts";
import { DeadlineError } from "./deadline.ts";

/** No host of the URL is usable. */
export class NoHostError extends Error {
  override readonly name = "NoHostError";
}

/**
 * Classifies an error by what it means for the failed call.
 *
 * - again: the connection closed before it had an effect
 * - raced: it lost against concurrent writes
 * - elsewhere: this server no longer accepts writes, another one may
 * - pooler: a pooler assigned another session's connection, without the prepared statements
 * - crowded: the server has no free connection
 * - slow: the server gave up by one of its timeouts
 * - full: its disk is full
 * - bug: a bug in this program
 */
export type Trouble = "again" | "raced" | "elsewhere" | "pooler" | "crowded" | "slow" | "full" | "bug";

const BY_CODE: readonly (readonly [RegExp, Trouble])[] = [
  // Serialization failure, deadlock.
  [/^40(001|P01)$/, "raced"],
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
  const error = causeOf(thrown);
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
  // The commit follows the last statement: an earlier error precedes it. A later one that ends the session may follow
  // the commit; any other is the commit's own.
  return thrown.completed < count || !ENDS_SESSION.test(String((thrown.cause as { code?: unknown }).code));
}

/** The server shuts down, or ended the session: administratively, or by its transaction_timeout. */
const ENDS_SESSION = /^(57P0|25P04)/;

/** What went wrong, for the caller of a call that took `passed_ms` in all, with every retry. */
function reasonOf(thrown: unknown, passed_ms: number): string {
  const cause = causeOf(thrown);
  const said = cause instanceof Error ? cause.message : String(cause);
  const ms = Math.round(passed_ms);
  return cause instanceof DeadlineError ? `${said} within ${ms} ms` : `${said} (after ${ms} ms)`;
}

const causeOf = (thrown: unknown): unknown => (thrown instanceof BatchError ? thrown.cause : thrown);

/** The error for the caller of a call that had no effect. */
export function storeError(thrown: unknown, trouble: Trouble, passed_ms: number): unknown {
  const cause = causeOf(thrown);
  if (trouble === "bug") return cause;
  if (trouble === "full")
    return new StoreError("storage_full", "the database's disk is full; nothing was changed", {
      cause,
      retry_after_s: 5,
    });
  const reason = reasonOf(thrown, passed_ms);
  if (trouble === "crowded") return crowded(cause, reason);
  const [code, text] = TEXTS[trouble];
  return new StoreError(code, `${text}; nothing was changed: ${reason}`, { cause, retry_after_s: 2 });
}

const UNREACHABLE = ["storage_failed", "the database cannot be reached"] as const;
const TEXTS = {
  again: UNREACHABLE,
  elsewhere: UNREACHABLE,
  pooler: UNREACHABLE,
  raced: ["overloaded", "concurrent writes of the same rows were preferred"],
  slow: [
    "overloaded",
    `the database gave up after its time (limits postgres_lock_ms ${LIMITS.postgres_lock_ms}, postgres_statement_ms ${LIMITS.postgres_statement_ms})`,
  ],
} as const;

function crowded(cause: unknown, reason: string): StoreError {
  const ours = cause instanceof DeadlineError;
  return new StoreError(
    "overloaded",
    ours
      ? `all connections of this process to the database are in use (setting database_connections); nothing was changed: ${reason}`
      : `the database accepts no further connection; nothing was changed: ${reason}`,
    {
      cause,
      retry_after_s: 2,
      hint: ours
        ? "raise HANGAR_DATABASE_CONNECTIONS, as far as max_connections of the database allows"
        : "raise max_connections of the database, or lower HANGAR_DATABASE_CONNECTIONS of every process (docs/operations.md)",
    },
  );
}

/** The error for the caller of a write that was sent, and of which no answer came. */
export function unknownOutcome(thrown: unknown, passed_ms: number): StoreError {
  return new StoreError(
    "storage_failed",
    `the connection to the database was lost during the commit; whether it happened is not known: ${reasonOf(thrown, passed_ms)}`,
    {
      cause: causeOf(thrown),
      retry_after_s: 2,
      hint: "repeat the request with the same Idempotency-Key, or check whether it took effect",
    },
  );
}
