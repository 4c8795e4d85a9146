import pg from "pg";
import { LIMITS } from "#core/limits.ts";
import type { PostgresAddress } from "#core/postgres-url.ts";
import { Batch, BatchError, type Rows } from "./batch.ts";
import { type Deadline, DeadlineError, deadlineIn, timeLeft } from "./deadline.ts";
import { type Statement, statement, unnamed } from "./statements.ts";
import { OldPrimaryError, TIMELINE, TIMELINES, type Timeline, type Timelines } from "./timelines.ts";
import { NoHostError } from "./trouble.ts";

interface Sockets {
  connection: { stream: { destroy(): void; unref(): void } };
}

/**
 * Timeouts of every session. The server's are shorter than the client's, so that its errors arrive;
 * `transaction_timeout` exists since version 17. The server's kernel also detects dead peers.
 */
const SESSION = `SELECT set_config('statement_timeout', '${LIMITS.postgres_statement_ms}', false),
  set_config('lock_timeout', '${LIMITS.postgres_lock_ms}', false),
  set_config('idle_in_transaction_session_timeout', '${LIMITS.postgres_idle_transaction_ms}', false),
  CASE WHEN current_setting('transaction_timeout', true) IS NOT NULL
    THEN set_config('transaction_timeout', '${LIMITS.postgres_call_ms}', false) END,
  set_config('tcp_keepalives_idle', '10', false), set_config('tcp_keepalives_interval', '5', false),
  set_config('tcp_keepalives_count', '3', false), set_config('tcp_user_timeout', '20000', false),
  pg_is_in_recovery() OR current_setting('transaction_read_only') = 'on' AS read_only`;

/** The same timeouts for one transaction, where sessions are shared. */
const bounds = (statement_ms: number, lock_ms: number, transaction_ms: number): string =>
  `SELECT set_config('statement_timeout', '${statement_ms}', true), set_config('lock_timeout', '${lock_ms}', true),
    set_config('idle_in_transaction_session_timeout', '${transaction_ms}', true),
    CASE WHEN current_setting('transaction_timeout', true) IS NOT NULL
      THEN set_config('transaction_timeout', '${transaction_ms}', true) END`;
export const SHORT = statement(
  bounds(LIMITS.postgres_statement_ms, LIMITS.postgres_lock_ms, LIMITS.postgres_idle_transaction_ms),
);
/** For migrations and restores, which depend on the amount of data. */
export const PATIENT = statement(bounds(0, LIMITS.postgres_patient_ms, 0));

/** One PostgreSQL session. Every call has a deadline; missing it closes the connection. */
export class PostgresConnection {
  readonly #client: pg.Client;
  readonly #parsed = new Set<string>();
  #answered_at = performance.now();
  #broken = false;
  /** Called once, when it can no longer be used. */
  onBroken: () => void = () => {};

  private constructor(client: pg.Client) {
    this.#client = client;
    client.on("error", () => this.#break());
    client.on("end", () => this.#break());
  }

  static async open(url: string, name: string, deadline: Deadline): Promise<PostgresConnection> {
    const client = new pg.Client({
      connectionString: url,
      application_name: name,
      // The driver's timer is unreferenced; a connecting socket still keeps the process alive.
      connectionTimeoutMillis: Math.max(1, Math.min(LIMITS.postgres_connect_ms, timeLeft(deadline))),
      keepAlive: true,
      keepAliveInitialDelayMillis: LIMITS.postgres_keepalive_ms,
    });
    const connection = new PostgresConnection(client);
    try {
      await client.connect();
      return connection;
    } catch (thrown) {
      connection.destroy();
      throw thrown;
    }
  }

  get broken(): boolean {
    return this.#broken;
  }

  /** Responded a moment ago, so it needs no probe. */
  get fresh(): boolean {
    return performance.now() - this.#answered_at < LIMITS.postgres_fresh_ms;
  }

  get idle_ms(): number {
    return performance.now() - this.#answered_at;
  }

  /** Runs all statements as one transaction, in one round trip. Without statements it is a probe. */
  async run(statements: readonly Statement[], deadline: Deadline): Promise<Rows[]> {
    const batch = new Batch(statements, this.#parsed, deadline);
    const timer = setTimeout(() => {
      this.destroy();
      batch.handleError(new DeadlineError("connection"));
    }, timeLeft(deadline));
    try {
      this.#client.query(batch);
      const results = await batch.done;
      this.#answered_at = performance.now();
      return results;
    } catch (thrown) {
      if (thrown instanceof BatchError && thrown.how === "refused") this.#answered_at = performance.now();
      throw thrown;
    } finally {
      clearTimeout(timer);
    }
  }

  /** Called once, when it is over. */
  onEnd(listener: () => void): void {
    this.#client.once("end", listener);
  }

  onNotification(listener: (payload: string) => void): void {
    this.#client.on("notification", ({ payload = "" }) => listener(payload));
  }

  /** Sends Terminate without waiting. */
  close(): void {
    if (this.#broken) return;
    this.#client.end().catch(() => {});
    // A silent peer never closes its side.
    setTimeout(() => this.destroy(), LIMITS.postgres_connect_ms).unref();
    this.#break();
  }

  destroy(): void {
    (this.#client as unknown as Sockets).connection.stream.destroy();
    this.#break();
  }

  #break(): void {
    if (this.#broken) return;
    this.#broken = true;
    this.onBroken();
  }
}

/** Connects to the first suitable host of the URL, beginning with the last one used. */
export class Connector {
  readonly #address: PostgresAddress;
  readonly #name: string;
  readonly #timelines: Timelines;
  #first = 0;
  #surveyed = false;

  constructor(address: PostgresAddress, name: string, timelines = TIMELINES) {
    this.#address = address;
    this.#name = name;
    this.#timelines = timelines;
  }

  /** One of several hosts must accept writes, and there may be more that do. */
  get chooses(): boolean {
    return this.#address.urls.length > 1 && this.#address.target === "read-write";
  }

  /** Probes all hosts, so that of two that accept writes the newer primary is known. Unreachable hosts are skipped. */
  async survey(): Promise<void> {
    const deadline = deadlineIn(LIMITS.postgres_connect_ms);
    const inspect = async (url: string): Promise<void> => {
      const connection = await PostgresConnection.open(url, this.#name, deadline);
      try {
        const seen = await this.#timelineOf(connection, deadline);
        if (seen) this.#timelines.raise(seen);
      } finally {
        connection.close();
      }
    };
    await Promise.allSettled(this.#address.urls.map(inspect));
    this.#surveyed = true;
  }

  async connect(deadline: Deadline): Promise<PostgresConnection> {
    const { urls, target } = this.#address;
    if (this.chooses && !this.#surveyed) await this.survey();
    let problem: unknown;
    for (const offset of urls.keys()) {
      const index = (this.#first + offset) % urls.length;
      try {
        const connection = await this.#open(urls[index] ?? "", target, deadline);
        this.#first = index;
        return connection;
      } catch (thrown) {
        // Priority of errors: an old primary, then an unreachable host, then a read-only host.
        const says_more = problem instanceof NoHostError && !(problem instanceof OldPrimaryError);
        if (problem === undefined || says_more) problem = thrown;
      }
      if (timeLeft(deadline) === 0) break;
    }
    throw problem;
  }

  async #open(url: string, target: PostgresAddress["target"], deadline: Deadline): Promise<PostgresConnection> {
    const connection = await PostgresConnection.open(url, this.#name, deadline);
    try {
      const [session] = await connection.run([unnamed(statement(SESSION))], deadline);
      const read_only = Boolean(session?.[0]?.["read_only"]);
      if (read_only && target === "read-write")
        throw new NoHostError("the database accepts no writes: it is a standby, or was made read-only");
      if (this.chooses) await this.#admit(connection, deadline);
      return connection;
    } catch (thrown) {
      connection.destroy();
      throw thrown;
    }
  }

  async #admit(connection: PostgresConnection, deadline: Deadline): Promise<void> {
    const seen = await this.#timelineOf(connection, deadline);
    if (!seen) throw new NoHostError("the database accepts no writes: it became a standby");
    this.#timelines.admit(connection, seen);
    connection.onEnd(() => this.#timelines.forget(connection));
  }

  async #timelineOf(connection: PostgresConnection, deadline: Deadline): Promise<Timeline | undefined> {
    const [rows] = await connection.run([unnamed(statement(TIMELINE))], deadline);
    const [row] = rows ?? [];
    return row && { cluster: String(row["cluster"]), timeline: Number(row["timeline"]) };
  }
}
