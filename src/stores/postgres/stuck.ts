import { LIMITS } from "#core/limits.ts";
import type { Connector } from "./connection.ts";
import { deadlineIn } from "./deadline.ts";
import { statement, unnamed } from "./statements.ts";

/**
 * Terminates sessions of this program that have written, have not committed, and wait for a stalled client: its process
 * was stopped, or its host lost, in the middle of a batch. The server itself has a timeout for that since version 17
 * (`transaction_timeout`). A session that blocks others has the shorter timeout; past the longer one a live process
 * would have ended the call itself.
 */
const END = `SELECT count(pg_terminate_backend(stuck.pid)) AS ended FROM pg_stat_activity stuck
  WHERE stuck.datname = current_database() AND stuck.usename = current_user AND stuck.pid <> pg_backend_pid()
  AND stuck.application_name LIKE 'hangar%' AND stuck.backend_xid IS NOT NULL AND stuck.wait_event = 'ClientRead'
  AND (stuck.state_change < clock_timestamp() - interval '${2 * LIMITS.postgres_call_ms} milliseconds'
    OR stuck.state_change < clock_timestamp() - interval '${LIMITS.postgres_stuck_ms} milliseconds'
      AND EXISTS (SELECT 1 FROM pg_stat_activity waiting WHERE waiting.wait_event_type = 'Lock'
        AND stuck.pid = ANY (pg_blocking_pids(waiting.pid))))`;

/** Searches for such sessions while a call waits, one search at a time. */
export class StuckSessions {
  readonly #connector: Connector;
  readonly #onEnded: (sessions: number) => void;
  #searching: Promise<void> | undefined;

  constructor(connector: Connector, onEnded: (sessions: number) => void) {
    this.#connector = connector;
    this.#onEnded = onEnded;
  }

  /** Searches when `work` takes long, and again while it does. */
  async watch<T>(work: () => Promise<T>): Promise<T> {
    const timer = setInterval(() => void this.end(), LIMITS.postgres_stuck_ms);
    timer.unref();
    try {
      return await work();
    } finally {
      clearInterval(timer);
    }
  }

  /** Never fails: the waiting call reports its own error. */
  async end(): Promise<void> {
    this.#searching ??= this.#search()
      .catch(() => {})
      .finally(() => {
        this.#searching = undefined;
      });
    await this.#searching;
  }

  /** On a separate connection: those of the pool may all be waiting. */
  async #search(): Promise<void> {
    const deadline = deadlineIn(LIMITS.postgres_connect_ms);
    const connection = await this.#connector.connect(deadline);
    try {
      const [rows] = await connection.run([unnamed(statement(END))], deadline);
      const ended = Number(rows?.[0]?.["ended"] ?? 0);
      if (ended > 0) this.#onEnded(ended);
    } finally {
      connection.close();
    }
  }
}
