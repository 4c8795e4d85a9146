import { LIMITS } from "#core/limits.ts";
import { type Connector, deadlineIn } from "./connection.ts";
import { statement, unnamed } from "./statements.ts";

/**
 * Ends sessions of this program that have written, have not committed, and wait for a process that says nothing more:
 * it was stopped, or its box is gone, in the middle of what it sent. The server itself has a bound for that since
 * version 17 (`transaction_timeout`). One that others wait for has the shorter time; past the longer one a process that
 * lives would have ended the call by itself.
 */
const END = `SELECT count(pg_terminate_backend(stuck.pid)) AS ended FROM pg_stat_activity stuck
  WHERE stuck.datname = current_database() AND stuck.usename = current_user AND stuck.pid <> pg_backend_pid()
  AND stuck.application_name LIKE 'hangar%' AND stuck.backend_xid IS NOT NULL AND stuck.wait_event = 'ClientRead'
  AND (stuck.state_change < clock_timestamp() - interval '${2 * LIMITS.postgres_call_ms} milliseconds'
    OR stuck.state_change < clock_timestamp() - interval '${LIMITS.postgres_stuck_ms} milliseconds'
      AND EXISTS (SELECT 1 FROM pg_stat_activity waiting WHERE waiting.wait_event_type = 'Lock'
        AND stuck.pid = ANY (pg_blocking_pids(waiting.pid))))`;

/** Looks for such sessions while something waits, once at a time. */
export class StuckSessions {
  readonly #connector: Connector;
  readonly #onEnded: (sessions: number) => void;
  #looking: Promise<void> | undefined;

  constructor(connector: Connector, onEnded: (sessions: number) => void) {
    this.#connector = connector;
    this.#onEnded = onEnded;
  }

  /** Looks when `work` takes suspiciously long, and again while it does. */
  async watch<T>(work: () => Promise<T>): Promise<T> {
    const timer = setInterval(() => void this.end(), LIMITS.postgres_stuck_ms);
    timer.unref();
    try {
      return await work();
    } finally {
      clearInterval(timer);
    }
  }

  /** Never fails: whoever waits finds out by himself what is wrong. */
  async end(): Promise<void> {
    this.#looking ??= this.#look()
      .catch(() => {})
      .finally(() => {
        this.#looking = undefined;
      });
    await this.#looking;
  }

  /** On a connection of its own: those of the pool may all be waiting. */
  async #look(): Promise<void> {
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
