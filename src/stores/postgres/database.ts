import pg from "pg";
import { ApiError, StoreError } from "#core/errors.ts";
import { LIMITS } from "#core/limits.ts";
import type { Database, Outcome, Step, Value } from "../database.ts";

/** Every number of ours fits a double exactly; the driver would give strings for BIGINT. */
const types = new pg.TypeOverrides();
types.setTypeParser(pg.types.builtins.INT8, Number);

export async function openPostgres(url: string): Promise<Database> {
  const pool = new pg.Pool({
    connectionString: url,
    max: LIMITS.postgres_connections,
    types,
    connectionTimeoutMillis: 10_000,
    application_name: "hangar",
  });
  // An idle connection that breaks is replaced at the next use; without a listener it would end the process.
  pool.on("error", () => {});
  // The same for one that breaks between two statements of a transaction: the next statement fails and says so.
  pool.on("connect", (client) => client.on("error", () => {}));
  const database = new PostgresDatabase(pool);
  await database.read("SELECT 1");
  return database;
}

interface Prepared {
  name: string;
  text: string;
}

/** `?` becomes `$1`, and the statement gets a name so that the server plans it once per connection. */
const prepared = new Map<string, Prepared>();
function prepare(sql: string): Prepared {
  let found = prepared.get(sql);
  if (!found) {
    let argument = 0;
    const text = sql.replaceAll("?", () => `$${++argument}`).replaceAll(/\bBYTES\b/g, "BYTEA");
    found = { name: `h${prepared.size}`, text };
    prepared.set(sql, found);
  }
  return found;
}

const parameters = (args: readonly Value[]): unknown[] =>
  args.map((value) => (value instanceof Uint8Array ? Buffer.from(value) : value));

class PostgresDatabase implements Database {
  readonly #pool: pg.Pool;

  constructor(pool: pg.Pool) {
    this.#pool = pool;
  }

  async read<Row>(sql: string, args: readonly Value[] = []): Promise<Row[]> {
    return await this.#again(async () => {
      const result = await this.#pool.query<Row & pg.QueryResultRow>({ ...prepare(sql), values: parameters(args) });
      return result.rows;
    });
  }

  async write(steps: readonly Step[]): Promise<Outcome> {
    return await this.#again(async () => {
      const client = await this.#pool.connect();
      let committing = false;
      try {
        await client.query("BEGIN");
        const outcome = await runSteps(client, steps);
        committing = outcome.ok;
        await client.query(outcome.ok ? "COMMIT" : "ROLLBACK");
        client.release();
        return outcome;
      } catch (thrown) {
        // The connection goes with the transaction: whatever state it was in, nobody else meets it.
        client.release(true);
        if (committing) throw unknownOutcome(thrown);
        throw thrown;
      }
    });
  }

  async *snapshot(tables: readonly string[]): AsyncIterable<{ table: string; row: Record<string, Value> }> {
    const client = await this.#pool.connect();
    try {
      await client.query("BEGIN ISOLATION LEVEL REPEATABLE READ READ ONLY");
      for (const table of tables) {
        await client.query(`DECLARE rows NO SCROLL CURSOR FOR SELECT * FROM ${table}`);
        for (;;) {
          const { rows } = await client.query<Record<string, Value>>("FETCH 500 FROM rows");
          for (const row of rows) yield { table, row };
          if (rows.length === 0) break;
        }
        await client.query("CLOSE rows");
      }
      await client.query("COMMIT");
    } finally {
      client.release(true);
    }
  }

  async close(): Promise<void> {
    await this.#pool.end();
  }

  /** Runs `work` again when it lost a race or its connection before anything was committed. */
  async #again<T>(work: () => Promise<T>): Promise<T> {
    for (let attempt = 1; ; attempt++) {
      try {
        return await work();
      } catch (thrown) {
        const trouble = classify(thrown);
        if (trouble === "again" && attempt < LIMITS.write_retries) continue;
        if (trouble === "full") {
          throw new StoreError("storage_full", "the database's disk is full; nothing was changed", {
            cause: thrown,
            retry_after_s: 5,
          });
        }
        if (trouble === "bug") throw thrown;
        throw new StoreError("storage_failed", "the database cannot be reached", { cause: thrown, retry_after_s: 2 });
      }
    }
  }
}

async function runSteps(client: pg.PoolClient, steps: readonly Step[]): Promise<Outcome> {
  const returned: Record<string, Value>[][] = [];
  for (const [index, step] of steps.entries()) {
    const result = await client.query<Record<string, Value>>({
      ...prepare(step.sql),
      values: parameters(step.args ?? []),
    });
    const rows = result.rowCount ?? 0;
    if (step.rows !== undefined && rows !== step.rows) return { ok: false, failed: index, rows };
    returned.push(result.rows);
  }
  return { ok: true, returned };
}

function unknownOutcome(cause: unknown): StoreError {
  return new StoreError(
    "storage_failed",
    "the database went away during the commit; whether it happened is not known",
    {
      cause,
    },
  );
}

type Trouble = "again" | "full" | "bug";

function classify(thrown: unknown): Trouble {
  if (thrown instanceof ApiError) throw thrown;
  const code = (thrown as { code?: unknown } | null)?.code;
  if (typeof code !== "string")
    return thrown instanceof Error && /terminated|timeout/i.test(thrown.message) ? "again" : "bug";
  // Serialization failure, or deadlock.
  if (code === "40001" || code === "40P01") return "again";
  if (code === "53100") return "full";
  // The server said goodbye (57P0x), or the connection could not be made or broke (08xxx, system errors).
  if (/^(57P0|08)/.test(code) || /^E[A-Z]+$/.test(code)) return "again";
  return "bug";
}
