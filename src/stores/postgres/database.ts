import { setTimeout as delay } from "node:timers/promises";
import { LIMITS } from "#core/limits.ts";
import { parsePostgresUrl } from "#core/postgres-url.ts";
import { forgetPrefetched } from "#core/prefetched.ts";
import type { Database, Outcome, Query, Step, Value, WriteOptions } from "../database.ts";
import { BatchError, type Rows } from "./batch.ts";
import { Connector, PATIENT, type PostgresConnection, SHORT } from "./connection.ts";
import { type Deadline, deadlineIn } from "./deadline.ts";
import { Pool } from "./pool.ts";
import { guardedStatement, type Statement, statement, unguarded, unnamed, wrongRows } from "./statements.ts";
import { StuckSessions } from "./stuck.ts";
import { TIMELINES, type TimelineFile } from "./timelines.ts";
import { isUndone, storeError, type Trouble, troubleOf, unknownOutcome } from "./trouble.ts";

export interface PostgresOptions {
  /** Maximum number of connections. */
  connections?: number;
  /** application_name, for the database's operator. */
  name?: string;
  /** One call, including retries. */
  call_ms?: number;
  /** Connects at the first call. */
  lazy?: boolean;
  /** Called once when a pooler in transaction mode was detected. */
  onPooler?: () => void;
  /** Called when sessions of a stalled process were terminated, because others waited for their locks. */
  onStuck?: (sessions: number) => void;
  /** Called once for each old primary that is found; the hosts of the URL are probed regularly. */
  onOldPrimary?: (text: string) => void;
  /** Stores the newest timeline that was seen. */
  timelines?: TimelineFile;
}

const DEFAULT_CONNECTIONS = 10;

export async function openPostgres(url: string, options: PostgresOptions = {}): Promise<Database> {
  const database = new PostgresDatabase(url, options);
  if (options.lazy) return database;
  try {
    await database.read("SELECT 1");
  } catch (thrown) {
    await database.close();
    throw thrown;
  }
  return database;
}

class PostgresDatabase implements Database {
  readonly transactions = {
    current: "txid_current()",
    settled: "txid_snapshot_xmin(txid_current_snapshot())",
    endStuck: (): Promise<void> => this.#stuck.end(),
  };
  readonly #stuck: StuckSessions;
  readonly #pool: Pool;
  readonly #call_ms: number;
  /** Time for a stale connection to respond; the rest of the call is for another one. */
  readonly #probe_ms: number;
  readonly #onPooler: () => void;
  /** Sessions are not shared by a pooler. Otherwise they have no state: no prepared statements, no settings. */
  #own_sessions = true;
  readonly #survey: NodeJS.Timeout | undefined;

  constructor(url: string, options: PostgresOptions) {
    const { connections = DEFAULT_CONNECTIONS, name = "hangar", call_ms = LIMITS.postgres_call_ms } = options;
    const address = parsePostgresUrl(url);
    const connector = new Connector(address, name);
    this.#pool = new Pool(connector, connections);
    this.#stuck = new StuckSessions(new Connector(address, "hangar watch"), options.onStuck ?? (() => {}));
    this.#call_ms = call_ms;
    this.#probe_ms = Math.min(LIMITS.postgres_probe_ms, call_ms / 2);
    this.#onPooler = options.onPooler ?? (() => {});
    if (!options.timelines || !connector.chooses) return;
    TIMELINES.keepIn(options.timelines, options.onOldPrimary ?? (() => {}));
    this.#survey = setInterval(() => void connector.survey(), LIMITS.postgres_survey_ms);
    this.#survey.unref();
  }

  async read<Row>(sql: string, args: readonly Value[] = []): Promise<Row[]> {
    const [rows] = await this.readAll([{ sql, args }]);
    return (rows ?? []) as Row[];
  }

  async readAll(queries: readonly Query[]): Promise<Rows[]> {
    const statements = queries.map(({ sql, args }) => statement(sql, args));
    return await this.#again(this.#call_ms, async (connection, deadline) => {
      const until = connection.fresh ? deadline : Math.min(deadline, deadlineIn(this.#probe_ms));
      return await connection.run(this.#named(statements), until);
    });
  }

  async write(steps: readonly Step[], { patient = false }: WriteOptions = {}): Promise<Outcome> {
    forgetPrefetched();
    const began = performance.now();
    return await this.#again(patient ? LIMITS.postgres_patient_ms : this.#call_ms, async (connection, deadline) => {
      if (!connection.fresh) await this.#probe(connection, deadline);
      const bounds = patient ? [PATIENT] : this.#own_sessions ? [] : [SHORT];
      const statements = this.#named([...bounds, ...steps.map(guardedStatement)]);
      try {
        const results = (await this.#stuck.watch(() => connection.run(statements, deadline))).slice(bounds.length);
        return { ok: true, returned: steps.map((step, index) => unguarded(step, results[index] ?? [])) };
      } catch (thrown) {
        const refused = refusedStep(thrown, bounds.length);
        if (refused) return refused;
        if (!isUndone(thrown, statements.length)) throw unknownOutcome(thrown, performance.now() - began);
        throw thrown;
      }
    });
  }

  async *snapshot(tables: readonly string[]): AsyncIterable<{ table: string; row: Record<string, Value> }> {
    const connection = await this.#pool.acquire(deadlineIn(this.#call_ms));
    const run = async (sql: string): Promise<Rows> => {
      const deadline = deadlineIn(LIMITS.postgres_patient_ms);
      const [rows] = await connection.run([{ name: "", text: sql, values: [] }], deadline);
      return rows ?? [];
    };
    try {
      await run("BEGIN ISOLATION LEVEL REPEATABLE READ READ ONLY");
      // The consumer of the rows may be slow.
      await run(PATIENT.text);
      for (const table of tables) {
        await run(`DECLARE rows NO SCROLL CURSOR FOR SELECT * FROM ${table}`);
        for (;;) {
          const rows = await run("FETCH 500 FROM rows");
          for (const row of rows) yield { table, row };
          if (rows.length === 0) break;
        }
        await run("CLOSE rows");
      }
      await run("COMMIT");
    } finally {
      // Ends the transaction, wherever reading stopped.
      connection.destroy();
      this.#pool.release(connection);
    }
  }

  hurry(ms: number): void {
    setTimeout(() => void this.#pool.close(deadlineIn(0)), ms).unref();
  }

  async close(): Promise<void> {
    clearInterval(this.#survey);
    await this.#pool.close(deadlineIn(LIMITS.postgres_close_ms));
  }

  #named(statements: readonly Statement[]): readonly Statement[] {
    return this.#own_sessions ? statements : statements.map(unnamed);
  }

  /** A write on a dead connection has an unknown outcome; a probe has none. */
  async #probe(connection: PostgresConnection, deadline: Deadline): Promise<void> {
    try {
      await connection.run([], Math.min(deadline, deadlineIn(this.#probe_ms)));
    } catch (thrown) {
      throw thrown instanceof BatchError ? new BatchError(thrown.cause, 0, "unsent") : thrown;
    }
  }

  /** Retries `work`, if needed on another connection, when nothing was done. */
  async #again<T>(
    call_ms: number,
    work: (connection: PostgresConnection, deadline: Deadline) => Promise<T>,
  ): Promise<T> {
    const began = performance.now();
    const deadline = began + call_ms;
    for (let attempt = 1; ; attempt++) {
      try {
        return await this.#once(deadline, work);
      } catch (thrown) {
        const trouble = troubleOf(thrown);
        if (trouble === "pooler" && this.#own_sessions) {
          this.#own_sessions = false;
          this.#onPooler();
        }
        const pause_ms = RETRY_MS * 2 ** (attempt - 1);
        const now = performance.now();
        if (!RETRIED.has(trouble) || attempt >= LIMITS.write_retries || now + pause_ms >= deadline)
          throw storeError(thrown, trouble, now - began);
        await delay(pause_ms);
      }
    }
  }

  async #once<T>(
    deadline: Deadline,
    work: (connection: PostgresConnection, deadline: Deadline) => Promise<T>,
  ): Promise<T> {
    const connection = await this.#pool.acquire(deadline);
    try {
      return await work(connection, deadline);
    } catch (thrown) {
      // The server stopped responding or changed its role: idle connections are suspect too.
      if (connection.broken || (thrown instanceof BatchError && troubleOf(thrown) === "elsewhere")) {
        connection.destroy();
        this.#pool.doubt();
      }
      throw thrown;
    } finally {
      this.#pool.release(connection);
    }
  }
}

const RETRIED: ReadonlySet<Trouble> = new Set(["again", "raced", "elsewhere", "pooler"]);
/** First delay before a retry, doubled each time. */
const RETRY_MS = 20;

function refusedStep(thrown: unknown, before: number): Outcome | undefined {
  if (!(thrown instanceof BatchError)) return undefined;
  const rows = wrongRows(thrown.cause);
  return rows === undefined ? undefined : { ok: false, failed: thrown.completed - before, rows };
}
